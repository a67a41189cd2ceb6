// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// Which shards of a placement a rank holds.

namespace shardwise::inline SHARDWISE_ABI {

/// How sums of a table's rows travel, where `rank` stands for those that each rank begins with: its own, or in a home
/// of several ranks, whose owners hear from all of them, the home's.
[[nodiscard]] inline DenseSums own_sums(const Placement& placement, int table) {
    DenseSums dense = at(placement.tables, table).dense;
    if (placement.home.size > 1) dense.rank = dense.host;
    return dense;
}

/// The shards of a placement on one rank, by table, then shard. Where steps speak of a *slot*, it is a number in here.
struct HeldShards {
    static constexpr const char* state_name = "HeldShards";
    /// One of them.
    struct Shard {
        int table = 0;  ///< number in the placement
        int shard = 0;
        std::int64_t rows = 0;
        int dim = 0;           ///< columns of this shard
        DenseSums dense = {};  ///< of its rows, between their copies; `rank` of this rank's own
    };

    std::vector<Shard> shards;
    std::vector<std::vector<int>> slots;  ///< (table, shard): -1 where it lives elsewhere
    int widest = 0;                       ///< columns of the widest, 0 without any

    HeldShards() = default;
    HeldShards(const Placement& placement, int rank) {
        for (int t = 0; t < static_cast<int>(placement.tables.size()); ++t) {
            const TablePlacement& table = at(placement.tables, t);
            slots.emplace_back(table.shards.size(), -1);
            for (int s = 0; s < static_cast<int>(table.shards.size()); ++s) {
                const ShardPlacement& shard = at(table.shards, s);
                if (!placement.holds(rank, shard)) continue;
                at(slots.back(), s) = static_cast<int>(shards.size());
                shards.push_back({.table = t,
                                  .shard = s,
                                  .rows = shard.rows,
                                  .dim = shard.columns.count,
                                  .dense = own_sums(placement, t)});
                widest = std::max(widest, shard.columns.count);
            }
        }
    }

    [[nodiscard]] int slot(int table, int shard) const { return at(at(slots, table), shard); }
};

}  // namespace shardwise::inline SHARDWISE_ABI
