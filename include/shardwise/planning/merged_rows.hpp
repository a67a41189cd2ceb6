// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/planning/access_profile.hpp"
#include "shardwise/planning/row_distribution.hpp"

/// \file
/// The rows of several tables in one order of frequency.

namespace shardwise::inline SHARDWISE_ABI {

/// A table as a planner sees it.
struct RowTable {
    std::string name;
    RowDistribution distribution;
    int dim = 1;  ///< elements of a row
    /// Rows of this p or less are not replicated, since nobody knows their numbers; negative: all rows may be.
    double least_p = -1.0;
};

/// A table that was profiled: rows that the profile does not list are not replicated.
/// \param samples  the profile's \throws BadInput as distribution_of
[[nodiscard]] RowTable row_table(const TableAccess& table, std::int64_t samples, int dim);

/// The distributions of several tables, merged into one (FlexShard, section 4.6), in chunks of rows that a plan keeps
/// together.
///
/// A chunk is `chunk` rows of one table that follow each other in its order of frequency, with their mean p; a table's
/// last chunk may have fewer, and so may the last one of those that may be replicated. Whatever is counted off from the
/// front of a run in chunks therefore is a multiple of `chunk` in each table, or all that may be replicated of it.
/// Memory: 24 bytes a run, of which there is at most one a chunk.
class MergedRows {
  public:
    /// Chunks of equal p of one table.
    struct Run {
        double p = 0.0;
        std::int64_t rows = 0;  ///< a multiple of `chunk`, or a last chunk
        int table = 0;
        bool replicable = true;  ///< its rows may be in other tiers than the last
    };

    /// \param chunk  rows that stay together: the number of ranks keeps shards even \throws BadInput without tables,
    /// for a chunk or a dimension below 1, and where no row of any table is looked up
    MergedRows(std::vector<RowTable> tables, std::int64_t chunk);

    [[nodiscard]] std::span<const RowTable> tables() const noexcept { return tables_; }
    /// By falling p; of equal p by table.
    [[nodiscard]] std::span<const Run> runs() const noexcept { return runs_; }
    /// Elements of a row of the run.
    [[nodiscard]] double dim(const Run& run) const noexcept { return at(tables_, run.table).dim; }
    [[nodiscard]] std::int64_t chunk() const noexcept { return chunk_; }
    /// Of all tables.
    [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
    /// L of all tables.
    [[nodiscard]] double lookups() const noexcept { return lookups_; }

  private:
    void add(int table);

    std::vector<RowTable> tables_;
    std::vector<Run> runs_;
    std::int64_t chunk_;
    std::int64_t rows_ = 0;
    double lookups_ = 0.0;
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/merged_rows.ipp"
#endif
