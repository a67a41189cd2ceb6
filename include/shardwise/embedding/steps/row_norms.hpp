// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/kernels/fold.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/tables/held_shards.hpp"
#include "shardwise/embedding/tables/store.hpp"
#include "shardwise/embedding/tables/table_rules.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// The norms that row-wise rules need of rows whose columns are split.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct NormsTape;
struct NormsFamily {
    using Tapes = boost::mp11::mp_list<NormsTape>;
    using Sees = boost::mp11::mp_list<const Store, const Placement, const HeldShards, const TableRules,
                                      const OrderTraits, const WorkMemory>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, NormsFamily);

/// The norms of whole rows where columns are split: each owner of a row's columns sends the others the sum of squares
/// of its own, in double, and adds all of them in the order of the shards. One message a peer, 8 bytes a touched row.
/// \tparam G  in which a table's shards are: World, OneTower or OneHost
template <Group G>
struct RowNorms {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<RowNorms>;
    using Crosses = G;
    using Sees = NormsFamily::Sees;
    using Family = NormsFamily;
    using Tape = NormsTape;
    static std::string name() { return concat({"RowNorms<", G::name(), ">"}); }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/row_norms.ipp"
#endif
