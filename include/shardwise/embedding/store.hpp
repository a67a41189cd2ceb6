// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/split_mix.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// The rows that a rank owns: weights, and the optimizer's state beside them.

namespace shardwise::inline SHARDWISE_ABI {

/// Initial weights: a pure function of (seed, table, row, column), uniform in [-bound, bound); no math library
/// involved.
[[nodiscard]] constexpr float initial_weight(std::uint64_t seed, int table, std::int64_t row, int column,
                                             float bound) noexcept {
    std::uint64_t x = split_mix(seed + split_mix_step);
    x = split_mix(x ^ static_cast<std::uint64_t>(table) * 0xd1342543de82ef95ULL);
    x = split_mix(x ^ static_cast<std::uint64_t>(row) * split_mix_step);
    x = split_mix(x ^ static_cast<std::uint64_t>(column) * 0xaf251af3b0f025b5ULL);
    const float unit = static_cast<float>(x >> 40U) * (1.0F / 16777216.0F);  // [0, 1), 24 bits
    return (unit - 0.5F) * (2.0F * bound);
}

/// One shard of a table on the rank that owns it (or on every rank, where it is replicated).
struct ShardStore {
    int table = 0;  ///< number in the placement
    int shard = 0;
    std::int64_t rows = 0;
    int dim = 0;                  ///< columns of this shard
    Buffer<float> weights;        ///< (rows, dim)
    Buffer<float> element_state;  ///< (rows, element slots, dim)
    Buffer<float> row_state;      ///< (rows, row slots)
};

/// The shards of one placement that live on one rank, by table, then shard.
class Store {
  public:
    /// Allocates `element_slots` and `row_slots` floats of zero state beside the weights. Weights are uninitialised.
    Store(const Placement& placement, int rank, int element_slots, int row_slots, std::pmr::memory_resource& memory)
        : element_slots_{element_slots}, row_slots_{row_slots} {
        for (std::size_t t = 0; t < placement.tables.size(); ++t) {
            const TablePlacement& table = placement.tables[t];
            slots_.emplace_back(table.shards.size(), -1);
            for (std::size_t s = 0; s < table.shards.size(); ++s) {
                const ShardPlacement& shard = table.shards[s];
                if (!placement.replicated && shard.owner != rank) continue;
                slots_[t][s] = static_cast<int>(shards_.size());
                ShardStore store{.table = static_cast<int>(t),
                                 .shard = static_cast<int>(s),
                                 .rows = shard.rows,
                                 .dim = shard.columns.count,
                                 .weights = Buffer<float>{memory},
                                 .element_state = Buffer<float>{memory},
                                 .row_state = Buffer<float>{memory}};
                const auto rows = static_cast<std::size_t>(shard.rows);
                store.weights.resize(rows * static_cast<std::size_t>(store.dim));
                store.element_state.assign_zero(rows * static_cast<std::size_t>(element_slots) *
                                                static_cast<std::size_t>(store.dim));
                store.row_state.assign_zero(rows * static_cast<std::size_t>(row_slots));
                shards_.push_back(std::move(store));
            }
        }
    }

    [[nodiscard]] std::vector<ShardStore>& shards() noexcept { return shards_; }
    [[nodiscard]] const std::vector<ShardStore>& shards() const noexcept { return shards_; }
    /// The number of the shard in `shards()`, or -1 when it lives elsewhere.
    [[nodiscard]] int slot(int table, int shard) const {
        return slots_[static_cast<std::size_t>(table)][static_cast<std::size_t>(shard)];
    }
    [[nodiscard]] int element_slots() const noexcept { return element_slots_; }
    [[nodiscard]] int row_slots() const noexcept { return row_slots_; }

  private:
    int element_slots_;
    int row_slots_;
    std::vector<ShardStore> shards_;
    std::vector<std::vector<int>> slots_;  // (table, shard)
};

/// Fills the weights of every shard with initial_weight, bound 1 / sqrt(rows of the table).
template <ShardingPolicy S>
void initialize(Store& store, const Placement& placement, std::uint64_t seed) {
    for (ShardStore& shard : store.shards()) {
        const TablePlacement& table = placement.tables[static_cast<std::size_t>(shard.table)];
        const int first = table.shards[static_cast<std::size_t>(shard.shard)].columns.first;
        const float bound = 1.0F / std::sqrt(static_cast<float>(table.rows));
        for (std::int64_t local = 0; local < shard.rows; ++local) {
            const std::int64_t row = S::row({.shard = shard.shard, .local = local}, table.shape);
            float* weights = shard.weights.data() + local * shard.dim;
            for (int d = 0; d < shard.dim; ++d)
                weights[d] = initial_weight(seed, table.table, row, first + d, bound);
        }
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
