// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/access_profile.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// \throws BadInput when the table's counts make no sense \param samples  the profile's
SHARDWISE_INLINE void check_table_access(const TableAccess& table, std::int64_t samples) {
    const auto wrong = [&](std::initializer_list<Word> what) {
        return BadInput{concat({"the profile of table '", table.name, "': ", concat(what)})};
    };
    if (table.rows < 0) throw wrong({"a table of ", table.rows, " rows"});
    if (table.lookups < 0) throw wrong({table.lookups, " look-ups"});
    if (table.error < 0 || table.error > table.lookups)
        throw wrong({"an error of ", table.error, " look-ups of ", table.lookups});
    std::int64_t left = table.lookups;
    std::int64_t last = -1;
    for (const RowAccess& one : table.seen) {
        if (one.row < 0 || one.row >= table.rows)
            throw wrong({"row ", one.row, " is none: its rows are 0 to ", table.rows - 1});
        if (one.row == last) throw wrong({"row ", one.row, " stands twice"});
        if (one.row < last) throw wrong({"row ", one.row, " stands behind row ", last, ": rows ascend"});
        last = one.row;
        if (one.samples < 1 || one.samples > one.lookups || one.samples > samples)
            throw wrong(
                {"row ", one.row, " with ", one.lookups, " look-ups in ", one.samples, " samples of ", samples});
        if (one.lookups > left)
            throw wrong({"the look-ups of its rows, up to row ", one.row, ", are more than all ", table.lookups});
        left -= one.lookups;
    }
    if (table.error == 0 && left != 0)
        throw wrong({"the look-ups of its rows add up to ", table.lookups - left, ", and not to its ", table.lookups});
    if (left != 0 && (table.rows == 0 || (left - 1) / table.rows >= table.error))
        throw wrong({"the look-ups of its rows add up to ", table.lookups - left, " of its ", table.lookups,
                     ", which are too few for ", table.rows, " rows with an error of ", table.error});
}

/// "'C1' of 5000 rows"
SHARDWISE_INLINE std::string table_text(const std::string& name, std::int64_t rows) {
    return concat({"'", name, "' of ", rows, " rows"});
}

SHARDWISE_INLINE std::int64_t added(std::int64_t a, std::int64_t b, const char* what) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum))
        throw BadInput{concat({a, " and ", b, " ", what, " are more than 9223372036854775807 together"})};
    return sum;
}

/// The counts of both, of one table.
SHARDWISE_INLINE TableAccess merged_table(const TableAccess& a, const TableAccess& b) {
    if (a.name != b.name || a.rows != b.rows)
        throw BadInput{concat({"profiles of table ", table_text(a.name, a.rows), " and of table ",
                               table_text(b.name, b.rows), ": merge profiles of the same tables"})};
    TableAccess sum{
        .name = a.name, .rows = a.rows, .lookups = added(a.lookups, b.lookups, "look-ups"), .error = a.error + b.error};
    sum.seen.reserve(std::max(a.seen.size(), b.seen.size()));
    auto left = a.seen.begin();
    auto right = b.seen.begin();
    while (left != a.seen.end() || right != b.seen.end()) {
        if (right == b.seen.end() || (left != a.seen.end() && left->row < right->row)) {
            sum.seen.push_back(*left++);
        } else if (left == a.seen.end() || right->row < left->row) {
            sum.seen.push_back(*right++);
        } else {
            sum.seen.push_back({left->row, left->lookups + right->lookups, left->samples + right->samples});
            ++left;
            ++right;
        }
    }
    return sum;
}

}  // namespace detail

SHARDWISE_INLINE void validate(const AccessProfile& profile) {
    if (profile.samples < 0) throw BadInput{concat({"a profile of ", profile.samples, " samples"})};
    std::int64_t lookups = 0;
    for (std::size_t t = 0; t != profile.tables.size(); ++t) {
        const TableAccess& table = profile.tables[t];
        if (table.name.empty()) throw BadInput{concat({"the profile's table ", t, " has no name"})};
        for (std::size_t other = 0; other != t; ++other)
            if (profile.tables[other].name == table.name)
                throw BadInput{concat({"the profile has table '", table.name, "' twice"})};
        detail::check_table_access(table, profile.samples);
        lookups = detail::added(lookups, table.lookups, "look-ups");
    }
}

SHARDWISE_INLINE void require_tables(const AccessProfile& profile, std::span<const TableConfig> tables) {
    if (profile.tables.size() != tables.size())
        throw BadInput{concat({"the profile has ", profile.tables.size(), " tables, and the model ", tables.size(),
                               ": give a profile of the model's tables"})};
    for (std::size_t t = 0; t != tables.size(); ++t) {
        const TableAccess& ours = profile.tables[t];
        if (ours.name != tables[t].name || ours.rows != tables[t].rows)
            throw BadInput{concat({"table ", t, " of the profile is ", detail::table_text(ours.name, ours.rows),
                                   ", and of the model ", detail::table_text(tables[t].name, tables[t].rows),
                                   ": give a profile of the model's tables"})};
    }
}

SHARDWISE_INLINE AccessProfile merged(const AccessProfile& a, const AccessProfile& b) {
    if (a.tables.size() != b.tables.size())
        throw BadInput{concat({"profiles of ", a.tables.size(), " and of ", b.tables.size(),
                               " tables: merge profiles of the same tables"})};
    AccessProfile sum{.samples = detail::added(a.samples, b.samples, "samples")};
    std::int64_t lookups = 0;
    for (std::size_t t = 0; t != a.tables.size(); ++t) {
        sum.tables.push_back(detail::merged_table(a.tables[t], b.tables[t]));
        lookups = detail::added(lookups, sum.tables.back().lookups, "look-ups");
    }
    return sum;
}

SHARDWISE_INLINE double lookups_per_sample(const TableAccess& table, std::int64_t samples) {
    return samples == 0 ? 0.0 : static_cast<double>(table.lookups) / static_cast<double>(samples);
}

SHARDWISE_INLINE double lookups_per_sample(const AccessProfile& profile) {
    std::int64_t lookups = 0;
    for (const TableAccess& table : profile.tables)
        lookups += table.lookups;
    return profile.samples == 0 ? 0.0 : static_cast<double>(lookups) / static_cast<double>(profile.samples);
}

SHARDWISE_INLINE std::int64_t unseen_rows(const TableAccess& table) {
    return table.rows - static_cast<std::int64_t>(table.seen.size());
}

}  // namespace shardwise::inline SHARDWISE_ABI
