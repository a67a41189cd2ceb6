// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/workload.hpp"
#include "shardwise/planning/access_profile.hpp"
#include "shardwise/planning/row_distribution.hpp"

/// \file
/// How many rows to cache: the expected traffic of an epoch by the number of cached rows, where cached rows and batches
/// share one memory (SCARS, section II). A cached row is one that every rank has: a row of the tier DP.

namespace shardwise::inline SHARDWISE_ABI {

/// A table some of whose rows may be cached.
struct CacheTable {
    std::string name;
    std::vector<RowUse> runs;    ///< of all its rows, by falling p; those that are never looked up last
    double size = 1.0;           ///< of a row, in units of memory: elements, as the paper has it, or bytes
    std::int64_t cacheable = 0;  ///< rows at the front of the runs that may be cached: those whose numbers are known

    [[nodiscard]] std::int64_t rows() const noexcept;
    /// Expected look-ups in a sample.
    [[nodiscard]] double lookups() const noexcept;
    /// U(b): rows that a batch is expected to look up, each counted once: the sum of 1 - (1 - q)^b over all rows, (2).
    /// \param batch  b, samples; need not be whole
    [[nodiscard]] double unique(double batch) const noexcept;
};

/// A table that was profiled. Rows that the profile does not list cannot be cached. \param samples  the profile's
/// \throws BadInput as use_of(), and for a dimension below 1
[[nodiscard]] CacheTable cache_table(const TableAccess& table, std::int64_t samples, int dim);
/// A table whose row 0 is looked up most often, row 1 next, and so on, by ids that are drawn independently: bags have
/// L ids, or as many next to it. \throws BadInput for a dimension below 1
[[nodiscard]] CacheTable cache_table(const std::string& name, const RowDistribution& distribution, int dim);

/// What cached rows and batches share, and what an epoch is.
struct CacheSetting {
    double memory = 0.0;       ///< M, in the units of CacheTable::size
    double activation = 0.0;   ///< a: what a sample of a batch takes
    double samples = 1.0;      ///< Q: of an epoch
    double least_batch = 1.0;  ///< samples a batch has at least
};

/// Expected traffic of an epoch by the number of cached rows C. The C rows with the most look-ups a unit of size are
/// cached, a batch has b(C) = (M - their sizes) / a samples (7), and an epoch moves
/// Q / b * (b * lookups + sum over all other rows of size * (1 - (1 - q)^b)): (3), (5) and (6).
///
/// An index counts one unit and travels with every look-up, as in the paper; in this library it travels once a distinct
/// row. Memory: 40 bytes a run. Not collective.
class CacheCosts {
  public:
    /// \throws BadInput for no table, shares of samples outside of [0, 1], sizes and a setting that are not above 0 or
    /// not finite, a least batch below 1, and memory that is too little for it (which it says)
    CacheCosts(std::vector<CacheTable> tables, const CacheSetting& setting);

    [[nodiscard]] std::span<const CacheTable> tables() const noexcept { return tables_; }
    /// That may be cached, of all tables.
    [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
    /// The most rows that leave room for the least batch.
    [[nodiscard]] std::int64_t most_cached() const noexcept { return most_; }

    /// b(C), samples; not whole as a rule. \throws BadInput for fewer than 0 rows or more than most_cached()
    [[nodiscard]] double batch(std::int64_t cached) const;
    /// (6), in units. Cost: a pass over the runs that are not cached. \throws BadInput as batch()
    [[nodiscard]] double cost(std::int64_t cached) const;
    /// (table): how many of its rows are cached. \throws BadInput as batch()
    [[nodiscard]] std::vector<std::int64_t> rows_of_tables(std::int64_t cached) const;

    /// What one row more does, in units a batch.
    struct Step {
        double saved = 0.0;       ///< that the row no longer travels: size * (1 - (1 - q)^b), the left side of (11)
        double lost = 0.0;        ///< that batches become smaller: the right side, (12)
        double sufficient = 0.0;  ///< a bound on it, (13): size / (M - sizes of C') * what a batch of b' moves

        /// Whether the epoch's traffic falls, (11).
        [[nodiscard]] bool pays() const noexcept { return saved > lost; }
        /// The same by the bound: whoever says so is right, but it does not say so of all that pay.
        [[nodiscard]] bool surely_pays() const noexcept { return saved > sufficient; }
    };
    /// Of the row behind the first C. Cost: a pass over the runs that are not cached. \throws BadInput for fewer than 0
    /// rows, or no fewer than most_cached()
    [[nodiscard]] Step step(std::int64_t cached) const;

  private:
    struct Run {
        double log_missing = 0.0;  ///< log(1 - q)
        double size = 0.0;         ///< of a row
        std::int64_t first = 0;    ///< rows before
        std::int64_t rows = 0;
        int table = 0;
    };

    void check(std::int64_t cached, std::int64_t most) const;
    [[nodiscard]] std::size_t run_of(std::int64_t cached) const noexcept;
    [[nodiscard]] double size_of(std::int64_t cached) const noexcept;

    std::vector<CacheTable> tables_;
    CacheSetting setting_;
    std::vector<Run> runs_;             // in the order in which they are cached, then those that may not be
    std::vector<double> sizes_before_;  // (run + 1)
    double lookups_ = 0.0;
    std::int64_t rows_ = 0;
    std::int64_t most_ = 0;
};

/// The size of a cache, and what it was compared with.
struct CacheSize {
    std::int64_t cached = 0;
    double batch = 0.0;
    double cost = 0.0;
    double cost_uncached = 0.0;    ///< without a cache, at the batch that fits then
    std::int64_t evaluations = 0;  ///< of a Step
};

/// The number of cached rows with the least expected traffic, the fewer of equal ones: a binary search on the sign of
/// cost(C + 1) - cost(C), compared with both ends by their costs. That is the least of all wherever the difference
/// changes its sign at most once, as it does as a rule where a sample takes at least as much as a row. Where it changes
/// more often - samples that take less than a row, and a few hot rows before many of nearly one frequency, or tables of
/// rows of several sizes - it is the best of those three, and another may move less.
/// Cost: at most ceil(log2(most_cached() + 1)) steps, and three costs.
[[nodiscard]] CacheSize best_cache(const CacheCosts& costs);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/cache_sizing.ipp"
#endif
