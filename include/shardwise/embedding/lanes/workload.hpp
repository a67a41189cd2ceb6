// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// What batches are expected to look up: what the expectation reader has in place of batches.

namespace shardwise::inline SHARDWISE_ABI {

/// The chance that a row which a share q of the samples hold is in at least one of so many, drawn independently:
/// 1 - (1 - q)^samples (SCARS, (1)).
[[nodiscard]] inline double chance_of(double q, double samples) noexcept {
    return samples == 0.0 ? 0.0 : -std::expm1(samples * std::log1p(-q));
}

/// Rows of a table that are looked up equally often.
struct RowUse {
    double p = 0.0;         ///< expected look-ups of each row in a sample
    double q = 0.0;         ///< share of the samples that hold it, in whichever feature of its table
    std::int64_t rows = 0;  ///< how many
};

/// How often the rows of one table are looked up. Only p's proportions matter to which shard a look-up goes to; how
/// many there are, bags say. Memory: 24 bytes a run, and 8 bytes a row that is listed.
struct TableUse {
    std::string table;               ///< its name
    std::vector<RowUse> runs;        ///< rows that are in none are never looked up
    std::vector<std::int64_t> rows;  ///< numbers of the rows of all runs, run by run; empty: 0, 1, 2, ... in this
                                     ///< order. The last run's may be left out where they are all others of the table

    /// Rows of all runs together.
    [[nodiscard]] std::int64_t rows_in_use() const noexcept;
    /// Rows that so many samples look up, each counted once: the sum of 1 - (1 - q)^samples (SCARS, (2)).
    [[nodiscard]] double distinct_rows(std::int64_t samples) const noexcept;
    /// Whether rows of the last run are not listed, being all others.
    [[nodiscard]] bool last_are_others() const noexcept;
};

/// The rows of all runs, run by run: listed ones as they are listed, others in ascending order. The use outlives it.
/// Memory: 8 bytes a listed row where there are others.
class UsedRows {
  public:
    explicit UsedRows(const TableUse& use);

    /// The number of the next row. Precondition: there is one.
    [[nodiscard]] std::int64_t next() noexcept {
        const auto at = static_cast<std::size_t>(at_++);
        if (in_order_) return at_ - 1;
        if (at < use_.rows.size()) return use_.rows[at];
        for (; passed_ < listed_.size() && listed_[passed_] == other_; ++passed_)
            ++other_;
        return other_++;
    }
    /// Passes over a run of so many rows.
    void skip(std::int64_t rows) noexcept { at_ += rows; }

  private:
    const TableUse& use_;
    bool in_order_;
    std::int64_t at_ = 0;
    std::vector<std::int64_t> listed_;  ///< ascending, where there are others
    std::size_t passed_ = 0;            ///< of these
    std::int64_t other_ = 0;            ///< no row before it is still to come
};

/// How many ids the bags of a feature have: each number with the share of the bags that have so many.
struct BagLengths {
    /// A number of ids, and its share of the bags.
    struct Share {
        std::int64_t length = 0;
        double share = 0.0;
    };
    std::vector<Share> shares;

    /// Every bag has so many. \throws BadInput for a negative number
    [[nodiscard]] static BagLengths fixed(std::int64_t length);
    /// Bags of the two lengths next to a mean, or one where it is whole. \throws BadInput for a mean that is negative
    /// or not finite
    [[nodiscard]] static BagLengths near(double mean);

    /// Ids a bag.
    [[nodiscard]] double mean() const noexcept;
    /// Whether every bag has so many.
    [[nodiscard]] bool all_are(std::int64_t length) const noexcept;
    /// The share of bags with an id somewhere, of those without one there, and of those with exactly one there, where
    /// each id is there with probability `share`, independently of the others.
    [[nodiscard]] double with(double share) const noexcept;
    [[nodiscard]] double without(double share) const noexcept;
    [[nodiscard]] double with_one(double share) const noexcept;
};

/// What all ranks' batches are expected to look up. Ids of bags are taken to be drawn independently, each from its
/// table's rows with probabilities proportional to p; bags of one id need no such assumption, nor do sequences, ids and
/// touched rows.
struct Workload {
    std::int64_t samples = 0;         ///< a rank
    bool weighted = false;            ///< ids of sums and means have weights
    std::vector<TableUse> tables;     ///< (table of the layer), in the layer's order
    std::vector<BagLengths> lengths;  ///< (feature of the layer)

    /// Every bag has one id.
    [[nodiscard]] bool single() const noexcept;
};

/// Checks that a workload is of these tables: as many, in the same order; that rows are theirs, none listed twice and
/// none missing but others; that
/// p is finite and not negative, q in [0, 1] and no more than p; that shares of lengths are not negative and add up to
/// 1; and that the features of a table look up as many ids as its rows, but for one part in a hundred.
/// Not collective. Cost: one pass over what is listed. \throws BadInput naming table or feature, and value
void check(const Workload& workload, const std::vector<TableConfig>& tables);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/lanes/workload.ipp"
#endif
