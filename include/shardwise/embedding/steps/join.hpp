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
#include "shardwise/embedding/steps/split.hpp"
#include "shardwise/embedding/tables/store.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"

/// \file
/// The shards of each bag or sequence put together, and the gradient cut up again.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct JoinTape;
struct CutTape;
struct JoinFamily {
    using Tapes = boost::mp11::mp_list<JoinTape, SplitTape>;
    using Sees = boost::mp11::mp_list<const Store, const Placement, const PlanPooling, const WorkMemory>;
};
struct CutFamily {
    using Tapes = boost::mp11::mp_list<CutTape, JoinTape, SplitTape>;
    using Sees = boost::mp11::mp_list<const Placement, const PlanPooling, const WorkMemory>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, JoinFamily);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, CutFamily);

/// The adjoint of Join: each shard gets its part of the gradient. Views of the user's gradient wherever no number
/// changes and the rows are whole; copies for means and for sequences split by rows.
template <class Joined, class Splitted>
struct CutGradients {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<CutGradients, Joined, Splitted>;
    using Sees = CutFamily::Sees;
    using Family = CutFamily;
    using Tape = CutTape;
    static std::string name() { return "CutGradients"; }
};

/// Puts the shards of every bag together and writes the result where the user reads it: a sum along the tree where rows
/// are split and pooled, interleaved where sequences are split by rows, side by side where columns are. Rows that this
/// rank has yet to look up go straight there. Local; one pass.
/// \tparam First  the step that cut them up
template <class S, class Pooling, class First = Split<S>>
struct Join {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, HomeVectors>, Outputs>;
    using Adjoint = Plan<CutGradients<Join, First>>;
    using Uses = boost::mp11::mp_list<Join, First>;
    using Sees = JoinFamily::Sees;
    using Family = JoinFamily;
    using Tape = JoinTape;
    static std::string name() { return concat({"Join<", std::string{S::name}, ", ", Pooling::name, ">"}); }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/join.ipp"
#endif
