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
#include "shardwise/embedding/tables/table_rules.hpp"
#include "shardwise/embedding/tables/touched_marks.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"

/// \file
/// The end of every backward plan: one fused pass over the touched rows.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct UpdateTape;
struct UpdateFamily {
    using Tapes = boost::mp11::mp_list<UpdateTape>;
    using Sees = boost::mp11::mp_list<Store, const Placement, const HeldShards, const TableRules, const OrderTraits,
                                      const WorkMemory, TouchedMarks>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, UpdateFamily);

/// Folds the gradient of every touched row and applies the rule to it, row by row. Local. Reads and writes each touched
/// row and its state once, and reads each contribution once. Where gradients are clipped by their norm it runs twice:
/// first it changes nothing and adds the squares of what it folds (TableRules::squares).
template <class Rule, class Order>
struct Update {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<Update>;
    static constexpr bool commits = true;
    using Sees = UpdateFamily::Sees;
    using Family = UpdateFamily;
    using Tape = UpdateTape;
    static std::string name() { return concat({"Update<", std::string{Rule::name}, ", ", Order::name, ">"}); }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/update.ipp"
#endif
