// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/batch.hpp"
#include "shardwise/embedding/lanes/expectation.hpp"
#include "shardwise/embedding/lanes/lanes.hpp"
#include "shardwise/embedding/lanes/lanes_of_ranks.hpp"

/// \file
/// What the cost reader knows about one plan of embedding tables: the batches of all ranks, and what follows from them.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// Touched rows of a shard, by their numbers there.
struct TouchedLocals {
    std::vector<std::int64_t> rows;  ///< distinct and ascending once settled

    /// Adds those rows of another that `keep` keeps.
    template <class Keep>
    void add(const TouchedLocals& other, Keep keep) {
        for (const std::int64_t row : other.rows)
            if (keep(static_cast<LocalRow>(row))) rows.push_back(row);
    }
    void settle() {
        std::sort(rows.begin(), rows.end());
        rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    }
};

/// The cost reader's lanes.
struct EmbeddingCost : LanesOfRanks<std::int64_t> {
    using Number = std::int64_t;
    using Touched = TouchedLocals;
    /// What a rank has for a shard.
    struct Count {
        std::int64_t ids = 0;
        std::int64_t bags = 0;  ///< that the shard is told of
        bool single = false;    ///< each has one id
        bool at_most = false;   ///< there may be as many

        /// What the owner is told: counts, lengths of bags, and whose they are where the feature is not alone in its
        /// table; ids, and weights.
        [[nodiscard]] TierTraffic told(bool weighted, bool alone, std::int64_t samples) const noexcept {
            const std::int64_t lengths = single || ids == 0 ? 0 : bags;
            const std::int64_t numbers = alone || (bags == samples && !at_most) ? 0 : bags;
            return {.payload = (weighted ? 8 : 4) * ids, .control = 8 + 4 * (lengths + numbers), .messages = 0};
        }
    };
    /// A batch that has its own memory.
    struct OwnBatch {
        std::vector<std::int64_t> ids;
        std::vector<float> weights;
        std::vector<std::int32_t> lengths;  // (feature, sample)
    };

    /// Batches are what there may be at most: numbers of samples and of ids, which nobody reads.
    bool at_most = false;
    std::vector<BatchView> batches;                           ///< (rank): what goes in
    std::vector<OwnBatch> own;                                ///< (rank): what they refer to, where it is not a user's
    std::vector<std::vector<Count>> counts;                   ///< (source, block)
    std::vector<std::vector<std::vector<std::int64_t>>> ids;  ///< (source, block): local rows
    std::vector<std::vector<Touched>> touched;                ///< (rank, the block of a shard's first feature)

    /// Whether messages may say what is wrong with their receiver's bags.
    [[nodiscard]] bool says_what_is_wrong() const noexcept { return at_most; }
    [[nodiscard]] const BatchView& batch(int rank) const { return at(batches, rank); }
    [[nodiscard]] std::int64_t samples(int rank) const { return batch(rank).samples(); }
    [[nodiscard]] const Count& count(int source, std::size_t block) const { return at(counts, source)[block]; }
    /// Vectors of a block: one a bag when pooled, one an id otherwise.
    [[nodiscard]] std::int64_t rows_of(int source, std::size_t block) const {
        return pooling->pooled ? count(source, block).bags : count(source, block).ids;
    }
    /// Elements of blocks of one source and feature.
    [[nodiscard]] static std::int64_t elements_of(std::span<const Block> blocks) {
        std::int64_t elements = 0;
        for (const Block& block : blocks)
            elements += block.n * block.head.dim;
        return elements;
    }
    /// (table): the distinct ids of a rank's batch.
    [[nodiscard]] std::vector<std::vector<std::int64_t>> ids_by_table(int rank) const {
        const BatchView& from = batch(rank);
        std::vector<std::vector<std::int64_t>> all;
        for (const CoalescedTables::Table& table : coalesced->tables) {
            TouchedLocals of_table;
            for (int f = table.first; f < table.end; ++f)
                for (std::int64_t i = from.first_value(f), end = i + from.values(f); i < end; ++i)
                    of_table.rows.push_back(from.id(i));
            of_table.settle();
            all.push_back(std::move(of_table.rows));
        }
        return all;
    }
    [[nodiscard]] std::vector<std::int64_t> distinct_ids(int rank) const {
        std::vector<std::int64_t> by_table;
        for (const auto& of_table : ids_by_table(rank))
            by_table.push_back(std::ssize(of_table));
        return by_table;
    }
    /// How many rows of a shard are touched, of those that `keep` keeps.
    [[nodiscard]] std::int64_t touched_rows(int rank, std::size_t key) const {
        return std::ssize(at(touched, rank)[key].rows);
    }
    template <class Keep>
    [[nodiscard]] std::int64_t touched_rows(int rank, std::size_t key, Keep keep) const {
        const auto& rows = at(touched, rank)[key].rows;
        return std::count_if(rows.begin(), rows.end(),
                             [&](std::int64_t row) { return keep(static_cast<LocalRow>(row)); });
    }
};

/// The types that the steps of embedding plans work on.
struct EmbeddingDomain {
    using Lanes = steps::Lanes;
    using Cost = EmbeddingCost;
    using Expectation = EmbeddingExpectation;
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps
