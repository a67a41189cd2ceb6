// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/planning/row_distribution.hpp"

/// \file
/// The rows of several tables in one order of frequency.

namespace shardwise::inline SHARDWISE_ABI {

/// A table as a planner sees it.
struct RowTable {
    std::string name;
    RowDistribution distribution;
    int dim = 1;  ///< elements of a row
};

/// The distributions of several tables, merged into one (FlexShard, section 4.6), in chunks of rows that a plan keeps
/// together.
///
/// A chunk is `chunk` rows of one table that follow each other in its order of frequency, with their mean p; a table's
/// last chunk may have fewer. Whatever is counted off from the front of a run in chunks therefore is a multiple of
/// `chunk` in each table. Memory: 24 bytes a run, of which there is at most one a chunk.
class MergedRows {
  public:
    /// Chunks of equal p of one table.
    struct Run {
        double p = 0.0;
        std::int64_t rows = 0;  ///< a multiple of `chunk`, or a table's last chunk
        int table = 0;
    };

    /// \param chunk  rows that stay together: the number of ranks keeps shards even \throws BadInput without tables,
    /// and for a chunk or a dimension below 1
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
