// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/lanes/forms.hpp"
#include "shardwise/embedding/steps/splitter.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/sharding/policy.hpp"

/// \file
/// The first step of plans that are given all ranks' ids where their rows are: nothing has to be asked for.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct OwnerSplitFamily {
    using Tapes = boost::mp11::mp_list<SplitTape>;
    using Sees = boost::mp11::mp_list<const Placement, const PlanPooling, const WorkMemory>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, OwnerSplitFamily);

/// Cuts every rank's bags by shard, and keeps the blocks whose rows are here; every bag has a part in each. From here
/// on the batch is this rank's own. Local; as Split once for each rank of the home.
template <class S>
struct OwnerSplit {
    using Home = HomeOf<S>;
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, Bags>, OwnedIds<Home, Unasked>>;
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<OwnerSplit>;
    using Sees = OwnerSplitFamily::Sees;
    using Family = OwnerSplitFamily;
    using Tape = SplitTape;
    static std::string name() { return concat({"OwnerSplit<", std::string{S::name}, ">"}); }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/owner_split.ipp"
#endif
