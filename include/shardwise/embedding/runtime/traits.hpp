// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shardwise/comm/wire.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/kernels/fold.hpp"
#include "shardwise/embedding/lanes/tower_module.hpp"
#include "shardwise/embedding/runtime/layer_bound.hpp"
#include "shardwise/embedding/runtime/layer_groups.hpp"
#include "shardwise/embedding/tables/row_rule.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/sharding/shard_map.hpp"

/// \file
/// What a layer's policies say, as values: all that differs from one composition to the next. Everything else of a
/// layer is compiled once, and does not know the steps.

namespace shardwise::inline SHARDWISE_ABI {

/// How each feature of a layer is pooled.
enum class Pools { sum, mean, none, by_table };
/// "sum", "mean", "none" or "by_table".
[[nodiscard]] std::string name_of(Pools pools);

/// What is known of the rows of a batch.
enum class BatchKind : std::uint8_t {
    any,  ///< nothing: the layer's plan
    hot   ///< every rank has all of them: the plan of the first tier alone, where that is replicated in the world
};

/// A layer's policies as values.
struct LayerTraits {
    Pools pools = Pools::sum;
    bool mixed = false;                     ///< several sharding policies: tables name theirs
    bool tiered = false;                    ///< several sharding policies: every table has rows in each
    bool hierarchical = false;              ///< tables are placed in towers
    bool two_stage = false;                 ///< parts of a bag are summed on each host
    bool coalesced = false;                 ///< plans are of lists of distinct ids, one a table
    bool at_owner = false;                  ///< ranks are given all ranks' ids of their own tables
    std::vector<ShardingTraits> shardings;  ///< a plan each; with Pools::by_table two, of pooled features and sequences
    std::shared_ptr<const RowRule> rule;
    const OrderTraits* order = nullptr;
    Wires wires;
    std::shared_ptr<const ModulePolicy> module;  ///< of each tower; null: towers pass their vectors on
    GroupOptions groups = {.count = 0};          ///< what a policy says of them
    BoundPolicy bound = {};                      ///< what a policy says of how far ranks may be apart
    Program program;
    Program hot_program;  ///< of hot batches; without segments where there are none

    /// \throws BadInput for hot batches where there are none
    [[nodiscard]] const Program& program_of(BatchKind kind) const;
    /// Whether vectors of tables of that policy come home by way of relays.
    [[nodiscard]] bool over_relays(const ShardingTraits& sharding, bool pooled) const noexcept {
        const bool parts = pooled && sharding.splits == Splits::rows;
        return sharding.in_world && (hierarchical || (two_stage && parts));
    }
    /// Whether partial sums of gradients travel in double: where sums are, and the wire loses nothing.
    [[nodiscard]] bool wide_partial_sums() const noexcept { return order->wide && wires.backward.exact; }
    /// How many plans the program has side by side; one is the program's own.
    [[nodiscard]] std::size_t plans() const noexcept {
        return shardings.size() * (pools == Pools::by_table && !coalesced ? 2 : 1);
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/runtime/traits.ipp"
#endif
