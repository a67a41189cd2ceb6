// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/tables/held_shards.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"

/// \file
/// The adjoint of a lookup: gradients by touched row.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// What Lookup leaves to its adjoint: the ids that it looked up.
struct LookupTape {
    std::vector<IdBlock> ids;
};
struct GroupTape;
struct GroupFamily {
    using Tapes = boost::mp11::mp_list<GroupTape, LookupTape>;
    using Sees = boost::mp11::mp_list<const Placement, const HeldShards, const PlanPooling, const WorkMemory>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, GroupFamily);

/// Groups the gradients of all bags by the row they touched. Nothing is summed yet. Local; sorts the ids of each shard
/// once. \tparam Looked  the Lookup
template <class Looked>
struct GroupRows {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<GroupRows, Looked>;
    using Sees = GroupFamily::Sees;
    using Family = GroupFamily;
    using Tape = GroupTape;
    static std::string name() { return "GroupRows"; }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/group_rows.ipp"
#endif
