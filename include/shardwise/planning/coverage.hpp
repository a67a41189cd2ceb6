// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/planning/access_profile.hpp"

/// \file
/// The hottest rows of a profile, and the share of look-ups that they take.
///
/// Rows stand in the order of their look-ups, the most first; of equal ones the smaller row number comes first, and
/// across tables the earlier table. Only rows that are listed stand in it: of a profile counted in bounded memory that
/// order is by counts that may be too low, and a coverage may be too low, too.

namespace shardwise::inline SHARDWISE_ABI {

/// A row of one of several tables.
struct TableRow {
    int table = 0;  ///< its number in the profile
    std::int64_t row = 0;

    friend bool operator==(const TableRow&, const TableRow&) = default;
};

/// The rows of a table that were seen, by falling look-ups. \param most  at most so many rows
/// Cost: a sort of as many.
[[nodiscard]] std::vector<RowAccess> by_frequency(const TableAccess& table,
                                                  std::int64_t most = std::numeric_limits<std::int64_t>::max());
/// Their p, look-ups a sample, falling: a curve of FlexShard's Figure 4. \param samples  the profile's
[[nodiscard]] std::vector<double> sorted_frequencies(const TableAccess& table, std::int64_t samples);

/// The numbers of a table's hottest rows; fewer than `count` where no more were seen. \throws BadInput for a negative
/// count
[[nodiscard]] std::vector<std::int64_t> hottest_rows(const TableAccess& table, std::int64_t count);
/// The hottest rows of all tables together.
[[nodiscard]] std::vector<TableRow> hottest_rows(const AccessProfile& profile, std::int64_t count);

/// The share, 0 to 1, of a table's look-ups that its `count` hottest rows take; 0 where there is no look-up.
[[nodiscard]] double coverage(const TableAccess& table, std::int64_t count);
/// The same of the hottest rows, and the look-ups, of all tables together.
[[nodiscard]] double coverage(const AccessProfile& profile, std::int64_t count);

/// The share of a table's look-ups that these rows take: rows chosen by one profile, tried on another.
/// \param rows  in any order, each once \param table  of the same table, perhaps of other samples
[[nodiscard]] double coverage_of(std::span<const std::int64_t> rows, const TableAccess& table);
/// The same of all tables together. \throws BadInput for a table that the profile does not have
[[nodiscard]] double coverage_of(std::span<const TableRow> rows, const AccessProfile& profile);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/coverage.ipp"
#endif
