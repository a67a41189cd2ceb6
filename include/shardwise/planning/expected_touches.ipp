// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/expected_touches.hpp"
#include "shardwise/planning/scaling.hpp"
#include "shardwise/sharding/row_map.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Of one table. \param samples  of a rank, a host and the world
SHARDWISE_INLINE std::vector<RowTouches> expected_touches(const TableRowPlan& plan, const TableUse& use,
                                                          const std::array<std::int64_t, 3>& samples) {
    const RowMap map{plan};
    const std::int64_t in_use = use.rows_in_use();
    if (!use.rows.empty() && std::ssize(use.rows) != in_use && !(use.last_are_others() && in_use == plan.rows))
        throw BadInput{concat({"table '", plan.table, "': ", use.rows.size(), " rows are listed, and ", in_use,
                               " are in use: list each, none, or all but the last run's, where these are all others"})};
    std::vector<std::array<double, 3>> touched(plan.tiers.size());
    std::vector<std::int64_t> rows(plan.tiers.size());  // of a run
    UsedRows used{use};
    for (const RowUse& run : use.runs) {
        std::fill(rows.begin(), rows.end(), 0);
        for (std::int64_t i = 0; i < run.rows; ++i) {
            const std::int64_t row = used.next();
            if (row < 0 || row >= plan.rows)
                throw BadInput{concat({"table '", plan.table, "': row ", row, " is looked up, and the plan has ",
                                       plan.rows, " rows: give the plan and the profile of one table"})};
            ++rows[static_cast<std::size_t>(map.tier(row))];
        }
        for (std::size_t by = 0; by < samples.size(); ++by) {
            const double chance = chance_of(run.q, static_cast<double>(samples[by]));
            for (std::size_t tier = 0; tier < rows.size(); ++tier)
                touched[tier][by] += rows[tier] == 0 ? 0.0 : static_cast<double>(rows[tier]) * chance;
        }
    }
    std::vector<RowTouches> rounded;
    for (std::size_t tier = 0; tier < touched.size(); ++tier) {
        const auto whole = [&](std::size_t by) {
            return std::min<std::int64_t>(std::llround(touched[tier][by]), plan.tiers[tier]);
        };
        rounded.push_back({.rank = whole(0), .host = whole(1), .world = whole(2)});
    }
    return rounded;
}

}  // namespace detail

SHARDWISE_INLINE void expect_touches(RowPlan& plan, std::span<const TableUse> use, std::int64_t samples,
                                     const Topology& topology) {
    if (samples < 1) throw BadInput{concat({"rows touched by ", samples, " samples a rank: give at least one"})};
    const std::int64_t all = samples_of_all(samples, topology);
    for (TableRowPlan& table : plan.tables) {
        const auto found =
            std::find_if(use.begin(), use.end(), [&](const TableUse& other) { return other.table == table.table; });
        if (found == use.end())
            throw BadInput{concat({"it is not said how table '", table.table,
                                   "' of the row plan is used: give the profile that the plan was made from"})};
        table.touches = detail::expected_touches(table, *found, {samples, samples * topology.ranks_per_host, all});
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
