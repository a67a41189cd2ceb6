// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/core/error.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/planning/access_profile.hpp"

/// \file
/// Random look-ups, and a second, naive way to count them.

namespace planning_test {

namespace sw = shardwise;

/// One sample's look-ups in one table, in their order.
using Sample = std::vector<std::int64_t>;

/// A row below `rows`, small ones more often by far.
inline std::int64_t skewed_row(std::mt19937_64& random, std::int64_t rows) {
    std::int64_t row = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rows));
    for (int i = 0; i != 3; ++i)
        row = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(row + 1));
    return row;
}

/// Look-ups and samples of each row.
struct Counts {
    std::int64_t lookups = 0;
    std::int64_t samples = 0;
};
inline std::map<std::int64_t, Counts> naive_counts(const std::vector<Sample>& samples) {
    std::map<std::int64_t, Counts> counts;
    for (const Sample& sample : samples) {
        for (const std::int64_t row : sample)
            ++counts[row].lookups;
        for (const std::int64_t row : std::set<std::int64_t>{sample.begin(), sample.end()})
            ++counts[row].samples;
    }
    return counts;
}

/// The profile of samples of one table.
inline sw::TableAccess naive_table(const std::string& name, std::int64_t rows, const std::vector<Sample>& samples) {
    sw::TableAccess table{.name = name, .rows = rows};
    for (const auto& [row, counts] : naive_counts(samples)) {
        table.seen.push_back({row, counts.lookups, counts.samples});
        table.lookups += counts.lookups;
    }
    return table;
}

/// Counts as the error of a table promises them: never too high, too low by at most that. \returns what is wrong
inline std::string broken_bound(const sw::TableAccess& table, const std::map<std::int64_t, Counts>& counts) {
    std::int64_t lookups = 0;
    std::map<std::int64_t, Counts> found;
    for (const sw::RowAccess& row : table.seen)
        found[row.row] = {row.lookups, row.samples};
    for (const auto& [row, exact] : counts) {
        lookups += exact.lookups;
        const Counts here = found[row];
        if (here.lookups > exact.lookups || here.lookups + table.error < exact.lookups ||
            here.samples > exact.samples || here.samples + table.error < exact.samples)
            return "row " + std::to_string(row) + ": " + std::to_string(here.lookups) + " look-ups of " +
                   std::to_string(exact.lookups) + ", " + std::to_string(here.samples) + " samples of " +
                   std::to_string(exact.samples) + ", error " + std::to_string(table.error);
    }
    if (found.size() != counts.size()) {
        for (const auto& [row, here] : found)
            if (here.lookups != 0 && !counts.contains(row)) return "row " + std::to_string(row) + " was never seen";
    }
    return table.lookups == lookups ? "" : "all look-ups: " + std::to_string(table.lookups);
}

/// The text of the BadInput that `action` throws; a failure and nothing when it throws none.
template <class Action>
std::string bad_input(Action&& action) {
    try {
        action();
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    ADD_FAILURE() << "no BadInput";
    return {};
}

}  // namespace planning_test
