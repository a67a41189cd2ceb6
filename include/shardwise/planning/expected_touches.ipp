// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <unordered_map>
#include <vector>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/expected_touches.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE void expect_touches(TableRowPlan& plan, const TableAccess& table, std::int64_t profiled,
                                     std::int64_t samples, const Topology& topology) {
    if (plan.table != table.name || plan.rows != table.rows)
        throw BadInput{concat({"a row plan of table '", plan.table, "' of ", plan.rows, " rows, and a profile of '",
                               table.name, "' of ", table.rows, ": give the profile that it was made from"})};
    if (profiled < 1 || samples < 1)
        throw BadInput{concat({"table '", table.name, "': rows touched by ", samples, " samples, by a profile of ",
                               profiled, ": give at least one of each"})};
    check(plan);
    const std::size_t last = plan.tiers.size() - 1;
    std::vector<std::size_t> tier_of(static_cast<std::size_t>(plan.rows), last);
    for (std::int64_t tier = 0, next = 0; tier < static_cast<std::int64_t>(last); ++tier)
        for (const std::int64_t end = next + plan.tiers[static_cast<std::size_t>(tier)]; next < end; ++next) {
            const std::int64_t row = plan.replicated.empty() ? next : plan.replicated[static_cast<std::size_t>(next)];
            tier_of[static_cast<std::size_t>(row)] = static_cast<std::size_t>(tier);
        }
    // rows that as many samples hold are touched alike
    std::vector<std::unordered_map<std::int64_t, std::int64_t>> rows_held_by(plan.tiers.size());
    for (const RowAccess& row : table.seen)
        ++rows_held_by[tier_of[static_cast<std::size_t>(row.row)]][row.samples];
    plan.touches.clear();
    for (std::size_t tier = 0; tier <= last; ++tier) {
        const auto by = [&](int ranks) {
            const double all = static_cast<double>(samples) * ranks;
            double touched = 0.0;
            for (const auto& [held_by, rows] : rows_held_by[tier]) {
                const double q = static_cast<double>(held_by) / static_cast<double>(profiled);
                touched -= static_cast<double>(rows) * std::expm1(all * std::log1p(-q));
            }
            return std::min<std::int64_t>(std::llround(touched), plan.tiers[tier]);
        };
        plan.touches.push_back({.rank = by(1), .host = by(topology.ranks_per_host), .world = by(topology.ranks())});
    }
}

SHARDWISE_INLINE void expect_touches(RowPlan& plan, const AccessProfile& profile, std::int64_t samples,
                                     const Topology& topology) {
    for (TableRowPlan& table : plan.tables) {
        const auto found = std::find_if(profile.tables.begin(), profile.tables.end(),
                                        [&](const TableAccess& other) { return other.name == table.table; });
        if (found == profile.tables.end())
            throw BadInput{concat({"the profile has no table '", table.table,
                                   "': give the one that the plan was made "
                                   "from"})};
        expect_touches(table, *found, profile.samples, samples, topology);
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
