// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/coverage.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Sorts so much of the front, and drops the rest.
template <class T, class Before>
void keep_first(std::vector<T>& all, std::int64_t most, Before before) {
    if (most < 0) throw BadInput{concat({"the ", most, " hottest rows: give a number that is not negative"})};
    const auto kept = static_cast<std::ptrdiff_t>(std::min<std::int64_t>(most, std::ssize(all)));
    std::partial_sort(all.begin(), all.begin() + kept, all.end(), before);
    all.erase(all.begin() + kept, all.end());
}

/// How often a row of a table was looked up; 0 for one that is not listed.
SHARDWISE_INLINE std::int64_t lookups_of(std::int64_t row, const TableAccess& table) {
    const auto found = std::lower_bound(table.seen.begin(), table.seen.end(), row,
                                        [](const RowAccess& one, std::int64_t number) { return one.row < number; });
    return found == table.seen.end() || found->row != row ? 0 : found->lookups;
}

SHARDWISE_INLINE double share(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace detail

SHARDWISE_INLINE std::vector<RowAccess> by_frequency(const TableAccess& table, std::int64_t most) {
    std::vector<RowAccess> rows = table.seen;
    detail::keep_first(rows, most, [](const RowAccess& a, const RowAccess& b) {
        return a.lookups != b.lookups ? a.lookups > b.lookups : a.row < b.row;
    });
    return rows;
}

SHARDWISE_INLINE std::vector<double> sorted_frequencies(const TableAccess& table, std::int64_t samples) {
    std::vector<double> frequencies;
    frequencies.reserve(table.seen.size());
    for (const RowAccess& row : by_frequency(table))
        frequencies.push_back(static_cast<double>(row.lookups) / static_cast<double>(samples));
    return frequencies;
}

SHARDWISE_INLINE std::vector<std::int64_t> hottest_rows(const TableAccess& table, std::int64_t count) {
    std::vector<std::int64_t> rows;
    for (const RowAccess& one : by_frequency(table, count))
        rows.push_back(one.row);
    return rows;
}

SHARDWISE_INLINE std::vector<TableRow> hottest_rows(const AccessProfile& profile, std::int64_t count) {
    std::vector<std::pair<std::int64_t, TableRow>> all;
    for (std::size_t t = 0; t != profile.tables.size(); ++t)
        for (const RowAccess& one : by_frequency(profile.tables[t], count))
            all.emplace_back(one.lookups, TableRow{.table = static_cast<int>(t), .row = one.row});
    detail::keep_first(all, count, [](const auto& a, const auto& b) {
        if (a.first != b.first) return a.first > b.first;
        return a.second.table != b.second.table ? a.second.table < b.second.table : a.second.row < b.second.row;
    });
    std::vector<TableRow> rows;
    rows.reserve(all.size());
    for (const auto& [lookups, row] : all)
        rows.push_back(row);
    return rows;
}

SHARDWISE_INLINE double coverage(const TableAccess& table, std::int64_t count) {
    return coverage_of(hottest_rows(table, count), table);
}

SHARDWISE_INLINE double coverage(const AccessProfile& profile, std::int64_t count) {
    return coverage_of(hottest_rows(profile, count), profile);
}

SHARDWISE_INLINE double coverage_of(std::span<const std::int64_t> rows, const TableAccess& table) {
    std::int64_t lookups = 0;
    for (const std::int64_t row : rows)
        lookups += detail::lookups_of(row, table);
    return detail::share(lookups, table.lookups);
}

SHARDWISE_INLINE double coverage_of(std::span<const TableRow> rows, const AccessProfile& profile) {
    std::int64_t covered = 0;
    for (const TableRow& row : rows) {
        if (row.table < 0 || row.table >= std::ssize(profile.tables))
            throw BadInput{concat(
                {"row ", row.row, " of table ", row.table, ": the profile has ", profile.tables.size(), " tables"})};
        covered += detail::lookups_of(row.row, profile.tables[static_cast<std::size_t>(row.table)]);
    }
    std::int64_t lookups = 0;
    for (const TableAccess& table : profile.tables)
        lookups += table.lookups;
    return detail::share(covered, lookups);
}

}  // namespace shardwise::inline SHARDWISE_ABI
