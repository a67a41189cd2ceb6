// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>

#include "shardwise/core/at.hpp"
#include "shardwise/embedding/tables/initial_weight.hpp"
#include "shardwise/embedding/tables/store.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE Store::Store(const HeldShards& held, int element_slots, int row_slots,
                              std::pmr::memory_resource& weights, std::pmr::memory_resource& moments)
    : element_slots_{element_slots}, row_slots_{row_slots} {
    for (const HeldShards::Shard& shard : held.shards) {
        ShardStore store{.table = shard.table,
                         .shard = shard.shard,
                         .rows = shard.rows,
                         .dim = shard.dim,
                         .weights = Buffer<float>{weights},
                         .element_state = Buffer<float>{moments},
                         .row_state = Buffer<float>{moments}};
        const auto rows = static_cast<std::size_t>(shard.rows);
        const auto dim = static_cast<std::size_t>(shard.dim);
        store.weights.resize(rows * dim);
        store.element_state.assign_zero(rows * static_cast<std::size_t>(element_slots) * dim);
        store.row_state.assign_zero(rows * static_cast<std::size_t>(row_slots));
        shards_.push_back(std::move(store));
    }
}

SHARDWISE_INLINE void initialize(Store& store, const Placement& placement, std::uint64_t seed,
                                 std::span<const InitialValues> laws) {
    for (ShardStore& shard : store.shards()) {
        const TablePlacement& table = at(placement.tables, shard.table);
        const int first = at(table.shards, shard.shard).columns.first;
        const InitialValues& law = laws[static_cast<std::size_t>(table.table)];
        const float bound = law.spread(table.rows);
        for (std::int64_t local = 0; local < shard.rows; ++local) {
            const std::int64_t row = table.map->row({.shard = shard.shard, .local = local});
            float* weights = shard.weights.data() + local * shard.dim;
            if (law.law() == InitialValues::Law::uniform)
                for (int d = 0; d < shard.dim; ++d)
                    weights[d] = initial_weight(seed, table.table, row, first + d, bound);
            else
                for (int d = 0; d < shard.dim; ++d)
                    weights[d] = law.at(seed, table.table, table.rows, row, first + d);
        }
    }
}

SHARDWISE_INLINE std::int64_t static_bytes(const Placement& placement, int rank, int element_slots, int row_slots) {
    std::size_t bytes = 0;
    for (const TablePlacement& table : placement.tables) {
        for (const ShardPlacement& shard : table.shards) {
            if (!placement.holds(rank, shard)) continue;
            const auto rows = static_cast<std::size_t>(shard.rows) * sizeof(float);
            const auto elements = rows * static_cast<std::size_t>(shard.columns.count);
            bytes += buffer_capacity(elements) + buffer_capacity(elements * static_cast<std::size_t>(element_slots)) +
                     buffer_capacity(rows * static_cast<std::size_t>(row_slots));
        }
    }
    return static_cast<std::int64_t>(bytes);
}

}  // namespace shardwise::inline SHARDWISE_ABI
