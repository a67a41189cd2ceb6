// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include "shardwise/core/at.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/merged_rows.hpp"
#include "shardwise/planning/workloads.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE RowTable row_table(const TableAccess& table, std::int64_t samples, int dim) {
    RowTable rows{.name = table.name, .distribution = distribution_of(table, samples), .dim = dim};
    if (unseen_rows(table) != 0) rows.least_p = rows.distribution.runs().back().p;
    return rows;
}

SHARDWISE_INLINE MergedRows::MergedRows(std::vector<RowTable> tables, std::int64_t chunk)
    : tables_{std::move(tables)}, chunk_{chunk} {
    if (tables_.empty()) throw BadInput{"no table to plan for: give at least one"};
    if (chunk_ < 1) throw BadInput{concat({"chunks of ", chunk_, " rows: give at least 1"})};
    for (const RowTable& table : tables_) {
        if (table.dim < 1)
            throw BadInput{concat({"table '", table.name, "' has dimension ", table.dim, ": give at least 1"})};
        if (table.distribution.rows() > std::numeric_limits<std::int64_t>::max() - rows_)
            throw BadInput{"the tables have more than 9223372036854775807 rows together"};
        rows_ += table.distribution.rows();
    }
    for (std::size_t t = 0; t < tables_.size(); ++t)
        add(static_cast<int>(t));
    if (tables_.size() > 1)
        std::stable_sort(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) { return a.p > b.p; });
    for (const Run& run : runs_)
        lookups_ += run.p * static_cast<double>(run.rows);
    if (!(lookups_ > 0.0))
        throw BadInput{"no row of any table is looked up: give a law, or a profile of samples, that has look-ups"};
}

/// Appends a table's chunks: those that lie in one run as they are, those that cross runs with their mean p. None
/// crosses from rows that may be replicated to others.
SHARDWISE_INLINE void MergedRows::add(int table) {
    Run open{.table = table};  // a chunk that is not full yet, and its look-ups
    double lookups = 0.0;
    const auto close = [&] {
        if (open.rows != 0) runs_.push_back(open);
        open.rows = 0;
    };
    for (const RowRun& run : at(tables_, table).distribution.runs()) {
        std::int64_t left = run.rows;
        const bool replicable = run.p > at(tables_, table).least_p;
        if (replicable != open.replicable) close();
        open.replicable = replicable;
        if (open.rows != 0) {
            const std::int64_t more = std::min(left, chunk_ - open.rows);
            open.rows += more;
            lookups += run.p * static_cast<double>(more);
            open.p = lookups / static_cast<double>(open.rows);
            left -= more;
            if (open.rows == chunk_) close();
        }
        const std::int64_t whole = left - left % chunk_;
        if (whole != 0) runs_.push_back({.p = run.p, .rows = whole, .table = table, .replicable = replicable});
        if (left == whole) continue;
        open.rows = left - whole;
        open.p = run.p;  // of one run: not a bit above or below it
        lookups = run.p * static_cast<double>(open.rows);
    }
    close();
}

}  // namespace shardwise::inline SHARDWISE_ABI
