// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/expected_rows.hpp"
#include "shardwise/embedding/lanes/lanes_of_ranks.hpp"
#include "shardwise/embedding/lanes/workload.hpp"
#include "shardwise/plan/expected_count.hpp"

/// \file
/// What the expectation reader knows about one plan of embedding tables: the workload, and what follows from it.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// In place of a rank's batch: what a step asks of one, in expectation. Ranks' batches are alike.
class ExpectedBatch {
  public:
    ExpectedBatch() = default;
    /// \param features  numbers in the layer \param shares  (of those): the part of their ids that is meant
    ExpectedBatch(const Workload& workload, std::span<const int> features, std::span<const double> shares,
                  bool weighted);
    /// Lists of so many distinct ids, of one sample.
    [[nodiscard]] static ExpectedBatch of_distinct(std::vector<ExpectedCount> values);

    [[nodiscard]] std::int64_t samples() const noexcept { return samples_; }
    [[nodiscard]] bool weighted() const noexcept { return weighted_; }
    /// Ids of a feature.
    [[nodiscard]] const ExpectedCount& values(int feature) const { return at(values_, feature); }
    /// Bags of a feature that have an id; none where all have.
    [[nodiscard]] const ExpectedCount& told_bags(int feature) const { return at(told_bags_, feature); }
    /// What the lengths of a user's batch take.
    [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

  private:
    std::int64_t samples_ = 0;
    bool weighted_ = false;
    std::int64_t bytes_ = 0;
    std::vector<ExpectedCount> values_;
    std::vector<ExpectedCount> told_bags_;
};

/// The expectation reader's lanes.
struct EmbeddingExpectation : LanesOfRanks<ExpectedCount> {
    using Number = ExpectedCount;
    using Touched = TouchedBy;
    /// What a rank has for a shard, in expectation.
    struct Count {
        ExpectedCount ids;
        ExpectedCount bags;  ///< that the shard is told of
        /// What the owner is told of them. Ids and bags depend on each other: `control` has the remainders of all
        /// bytes, and `payload` none.
        TierTrafficOf<ExpectedCount> bytes;

        [[nodiscard]] const TierTrafficOf<ExpectedCount>& told(bool, bool, std::int64_t) const noexcept {
            return bytes;
        }
    };

    const Workload* workload = nullptr;         ///< what goes in
    std::vector<Touches> asked;                 ///< of `rows`, beside what the plan's steps ask
    ExpectedBatch expected_batch;               ///< of every rank
    std::vector<ExpectedRows> rows;             ///< (table of the placement)
    std::vector<Count> counts;                  ///< (block), of every source
    std::vector<std::pair<int, int>> of_key;    ///< (block): table, and the shard that has rows of its own
    std::vector<std::vector<Touched>> touched;  ///< (rank, the block of a shard's first feature)

    /// Reads the workload of a plan. \param tier  of each table's rows; -1: there are none
    void begin(const Workload& of, int tier = -1);
    /// Reads what is left of the workload once each table's ids are distinct in a rank's batch.
    void begin_distinct(const Workload& of);
    /// (table of the layer): distinct ids of a rank's batch.
    [[nodiscard]] std::vector<ExpectedCount> distinct_ids(int) const;
    /// Counts what each shard is told.
    void count_blocks();

    [[nodiscard]] static bool says_what_is_wrong() noexcept { return false; }
    [[nodiscard]] const ExpectedBatch& batch(int) const { return expected_batch; }
    [[nodiscard]] std::int64_t samples(int) const { return expected_batch.samples(); }
    [[nodiscard]] const Count& count(int, std::size_t block) const { return counts[block]; }
    [[nodiscard]] const ExpectedCount& rows_of(int, std::size_t block) const {
        return pooling->pooled ? counts[block].bags : counts[block].ids;
    }
    /// Elements of blocks of one source and feature: their numbers of vectors depend on each other.
    [[nodiscard]] ExpectedCount elements_of(std::span<const Block> blocks) const;
    [[nodiscard]] ExpectedCount touched_rows(int rank, std::size_t key) const {
        return touched_rows(rank, at(touched, rank)[key], key);
    }
    template <class Keep>
    [[nodiscard]] ExpectedCount touched_rows(int rank, std::size_t key, Keep keep) const {
        TouchedBy some;
        some.add(at(touched, rank)[key], keep);
        return touched_rows(rank, some, key);
    }

  private:
    [[nodiscard]] ExpectedCount touched_rows(int, const TouchedBy& by, std::size_t key) const {
        return at(rows, of_key[key].first).touched(of_key[key].second, by);
    }
    [[nodiscard]] Count count_of(int feature, int shard) const;
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/lanes/expectation.ipp"
#endif
