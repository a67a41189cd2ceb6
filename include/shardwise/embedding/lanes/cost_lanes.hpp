// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "shardwise/comm/wire.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/kernels/fold.hpp"
#include "shardwise/embedding/lanes/batch.hpp"
#include "shardwise/embedding/lanes/blocks.hpp"
#include "shardwise/embedding/lanes/lanes.hpp"
#include "shardwise/embedding/lanes/pooling.hpp"
#include "shardwise/embedding/lanes/row_tiers.hpp"
#include "shardwise/embedding/lanes/states.hpp"
#include "shardwise/embedding/lanes/towers.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// What the cost reader knows about one plan of embedding tables: the batches of all ranks, and what follows from them.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// The cost reader's lanes. It shares with the run reader only the placement and the policies' pure functions; it
/// counts on its own, and sees no communicator and no tape.
struct EmbeddingCost {
    struct Count {
        std::int64_t ids = 0;
        std::int64_t bags = 0;  ///< that the shard is told of
        bool single = false;    ///< each has one id
    };
    struct OwnBatch {
        std::vector<std::int64_t> ids;
        std::vector<float> weights;
        std::vector<std::int32_t> lengths;  // (feature, sample)
    };
    /// A block of vectors somewhere on its way.
    struct Block {
        Head head;
        bool looked_up = false;  ///< in memory; else whoever reads it looks it up
    };
    using Blocks = std::vector<std::vector<Block>>;  // (rank): in the order of its lane

    // the states that the plan's steps see
    const Placement* placement = nullptr;
    const PlanPooling* pooling = nullptr;
    const Wires* wires = nullptr;
    const OrderTraits* order = nullptr;
    const TowerModules* towers = nullptr;
    const FeaturesByPlan* features = nullptr;
    const RowTiers* tiers = nullptr;
    // what goes in, and the lanes
    std::vector<BatchView> batches;                           ///< (rank)
    std::vector<OwnBatch> own;                                ///< (rank): what they refer to, where it is not a user's
    std::vector<std::vector<Count>> counts;                   ///< (source, block)
    std::vector<std::vector<std::vector<std::int64_t>>> ids;  ///< (source, block): local rows
    std::vector<std::vector<std::vector<std::int64_t>>>
        touched;                ///< (rank, the block of a shard's first feature): distinct, ascending
    Blocks vectors;             ///< where the vectors are now
    std::vector<Blocks> trail;  ///< where they were before each step that moved them

    [[nodiscard]] int ranks() const noexcept { return placement->topology.ranks(); }
    /// Calls use(key, table, ShardPlacement) for every shard on `rank`, in the store's order; the shard's touched rows
    /// are touched[rank][key], its ids those of the blocks key + i * shards of the table's features i.
    template <class Use>
    void for_shards(int rank, Use use) const {
        for (int t = 0; t < static_cast<int>(placement->tables.size()); ++t) {
            const std::size_t key = key_of(t);
            const auto& shards = at(placement->tables, t).shards;
            for (std::size_t s = 0; s < shards.size(); ++s)
                if (placement->holds(rank, shards[s])) use(key + s, t, shards[s]);
        }
    }
    /// The first block of a table's first feature.
    [[nodiscard]] std::size_t key_of(int table) const;
    /// Columns of the widest shard on `rank`, 0 without any.
    [[nodiscard]] int widest(int rank) const;
    /// Vectors of a block: one a bag when pooled, one an id otherwise.
    [[nodiscard]] std::int64_t rows_of(int source, std::size_t block) const {
        const Count& count = at(counts, source)[block];
        return pooling->pooled ? count.bags : count.ids;
    }
    [[nodiscard]] std::int64_t samples(int rank) const { return at(batches, rank).samples(); }
    /// The ranks whose ids a rank answers: those of its home.
    template <class Use>
    void for_sources(int rank, Use use) const {
        for (int number = 0; number < placement->home.size; ++number)
            use(placement->home.member(rank, number));
    }
    /// The vectors move; `next` is where they are then.
    void step_on(Blocks next) {
        trail.push_back(std::move(vectors));
        vectors = std::move(next);
    }
    /// An adjoint: they are where they were before the last step that moved them.
    void step_back() {
        vectors = std::move(trail.back());
        trail.pop_back();
    }
    /// Rows of the vectors on a rank, and their elements.
    [[nodiscard]] std::int64_t vector_rows(int rank) const;
    [[nodiscard]] static std::int64_t elements(const std::vector<Block>& blocks);
};

/// The types that the steps of embedding plans work on.
struct EmbeddingDomain {
    using Lanes = steps::Lanes;
    using Cost = EmbeddingCost;
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/lanes/cost_lanes.ipp"
#endif
