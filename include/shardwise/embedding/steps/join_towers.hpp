// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/lanes/forms.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"

/// \file
/// The results of towers' modules where the samples are.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct JoinTowersFamily {};
struct CutTowersFamily {};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, JoinTowersFamily);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, CutTowersFamily);

/// The adjoint of JoinTowers: each tower gets its columns of the gradient. Local; copies no number.
struct CutTowers {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<>;
    using Family = CutTowersFamily;
    static std::string name() { return "CutTowers"; }
};

/// At home: the results of all towers side by side, where the user reads them. Local; one pass.
struct JoinTowers {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, HomeTowers>, Outputs>;
    using Adjoint = Plan<CutTowers>;
    using Uses = boost::mp11::mp_list<>;
    using Family = JoinTowersFamily;
    static std::string name() { return "JoinTowers"; }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/join_towers.ipp"
#endif
