// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/batch_view.hpp"
#include "shardwise/embedding/blocks.hpp"
#include "shardwise/embedding/layer_towers.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// What the cost reader knows about one branch of an embedding plan: the batches of all ranks, and what follows from
/// them.

namespace shardwise::inline SHARDWISE_ABI {

/// The cost reader's lanes. It shares with the run reader only the placement and the policies' pure functions; it
/// counts on its own, and sees no communicator and no tape.
struct EmbeddingCost {
    struct Count {
        std::int64_t ids = 0;
        bool single = false;
    };
    /// A block of vectors somewhere on its way.
    struct Block {
        Head head;
        bool looked_up = false;  ///< in memory; else whoever reads it looks it up
    };
    using Blocks = std::vector<std::vector<Block>>;  // (rank): in the order of its lane

    const Placement* placement = nullptr;
    const std::vector<BatchView>* batches = nullptr;          ///< (rank)
    const LayerTowers* towers = nullptr;                      ///< of a layer with modules
    std::vector<std::vector<Count>> counts;                   ///< (source, block)
    std::vector<std::vector<std::vector<std::int64_t>>> ids;  ///< (source, block): local rows
    std::vector<std::vector<std::vector<std::int64_t>>>
        touched;              ///< (rank, table * shards + shard): distinct, ascending
    bool pooled = true;       ///< vectors are sums of bags
    Blocks vectors;           ///< where the vectors are now
    std::vector<Blocks> way;  ///< where they were before each step that moved them: the adjoints take the last

    [[nodiscard]] const Topology& topology() const noexcept { return placement->topology; }
    [[nodiscard]] int ranks() const noexcept { return placement->topology.ranks(); }
    /// Calls use(key, table, ShardPlacement) for every shard on `rank`, in the store's order; the shard's touched rows
    /// are touched[rank][key], its ids those of the blocks key + i * shards of the table's features i.
    template <class Use>
    void for_shards(int rank, Use use) const {
        for (std::size_t t = 0; t < placement->tables.size(); ++t) {
            std::size_t key = 0;
            for (const FeaturePlacement& feature : placement->features) {
                if (feature.table != static_cast<int>(t)) continue;
                key = static_cast<std::size_t>(feature.first_block);
                break;
            }
            for (std::size_t s = 0; s < placement->tables[t].shards.size(); ++s) {
                const ShardPlacement& shard = placement->tables[t].shards[s];
                if (placement->replicated || shard.owner == rank) use(key + s, static_cast<int>(t), shard);
            }
        }
    }
    /// Columns of the widest shard on `rank`, 0 without any.
    [[nodiscard]] int widest(int rank) const {
        int most = 0;
        for_shards(rank,
                   [&](std::size_t, int, const ShardPlacement& shard) { most = std::max(most, shard.columns.count); });
        return most;
    }
    /// Vectors of a block: one a sample when pooled, one an id otherwise.
    template <class Pooling>
    [[nodiscard]] std::int64_t rows_of(int source, std::size_t block) const {
        return Pooling::pooled ? samples(source) : counts[static_cast<std::size_t>(source)][block].ids;
    }

    [[nodiscard]] std::int64_t samples(int rank) const { return (*batches)[static_cast<std::size_t>(rank)].samples(); }
};

}  // namespace shardwise::inline SHARDWISE_ABI
