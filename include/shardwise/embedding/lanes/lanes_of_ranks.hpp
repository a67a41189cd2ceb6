// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "shardwise/comm/wire.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/kernels/fold.hpp"
#include "shardwise/embedding/lanes/blocks.hpp"
#include "shardwise/embedding/lanes/coalesced.hpp"
#include "shardwise/embedding/lanes/pooling.hpp"
#include "shardwise/embedding/lanes/row_tiers.hpp"
#include "shardwise/embedding/lanes/states.hpp"
#include "shardwise/embedding/lanes/towers.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// What the cost reader and the expectation reader have in common: the states of a plan, and where its vectors are.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// Lanes of all ranks. Readers share with the run reader only the placement and the policies' pure functions; they
/// count on their own, and see no communicator and no tape.
/// \tparam Number  of ids and vectors: std::int64_t, or ExpectedCount
template <class Number>
struct LanesOfRanks {
    /// A block of vectors somewhere on its way.
    struct Block {
        Head head;               ///< all but n
        Number n = 0;            ///< vectors
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
    const CoalescedTables* coalesced = nullptr;

    bool at_owner = false;  ///< ranks are given all ranks' ids of their own tables
    bool tiered = false;    ///< every rank has rows of every table

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
    /// Whether `rank` is given a feature's ids of all ranks.
    [[nodiscard]] bool is_given(int rank, int feature) const {
        return at_owner && (tiered || placement->has_part(rank, feature));
    }
    /// The first block of a table's first feature.
    [[nodiscard]] std::size_t key_of(int table) const {
        for (const FeaturePlacement& feature : placement->features)
            if (feature.table == table) return static_cast<std::size_t>(feature.first_block);
        return 0;
    }
    /// Columns of the widest shard on `rank`, 0 without any.
    [[nodiscard]] int widest(int rank) const {
        int most = 0;
        for_shards(rank,
                   [&](std::size_t, int, const ShardPlacement& shard) { most = std::max(most, shard.columns.count); });
        return most;
    }
    /// The ranks whose ids a rank answers: those of its home.
    template <class Use>
    void for_sources(int rank, Use use) const {
        for (int number = 0; number < placement->home.size; ++number)
            use(placement->home.member(rank, number));
    }
    /// Calls use(blocks) for the blocks of each source and feature on a rank, which stand together.
    template <class Use>
    static void for_features(const std::vector<Block>& lane, Use use) {
        for (std::size_t first = 0; first < lane.size();) {
            std::size_t end = first;
            while (end < lane.size() && lane[end].head.source == lane[first].head.source &&
                   lane[end].head.feature == lane[first].head.feature)
                ++end;
            use(std::span<const Block>{lane.data() + first, end - first});
            first = end;
        }
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
    [[nodiscard]] Number vector_rows(int rank) const {
        Number rows = 0;
        for (const Block& block : at(vectors, rank))
            rows += block.n;
        return rows;
    }
    [[nodiscard]] static Number elements(const std::vector<Block>& blocks) {
        Number elements = 0;
        for (const Block& block : blocks)
            elements += block.n * block.head.dim;
        return elements;
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps
