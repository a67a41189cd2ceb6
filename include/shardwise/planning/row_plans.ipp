// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/coverage.hpp"
#include "shardwise/planning/expected_touches.hpp"
#include "shardwise/planning/merged_rows.hpp"
#include "shardwise/planning/row_plans.hpp"
#include "shardwise/planning/workloads.hpp"
#include "shardwise/sharding/row_map.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Look-ups of the rows of each tier; those of rows that are not listed belong to the last one.
SHARDWISE_INLINE std::vector<std::int64_t> lookups_by_tier(const TableAccess& table,
                                                           std::span<const std::int64_t> hottest,
                                                           std::span<const std::int64_t> before_last) {
    std::vector<std::int64_t> lookups;
    std::int64_t left = table.lookups;
    for (const std::int64_t rows : before_last) {
        std::int64_t& sum = lookups.emplace_back(0);
        for (const std::int64_t row : hottest.first(static_cast<std::size_t>(rows))) {
            const auto found = std::lower_bound(table.seen.begin(), table.seen.end(), row,
                                                [](const RowAccess& seen, std::int64_t r) { return seen.row < r; });
            sum += found->lookups;
        }
        hottest = hottest.subspan(static_cast<std::size_t>(rows));
        left -= sum;
    }
    lookups.push_back(left);
    return lookups;
}

/// The tiers that options ask for, in order.
struct NamedTiers {
    std::vector<std::string> names;
    std::vector<TierRows TableTiers::*> tiers;

    explicit NamedTiers(const FlexShardOptions& options) {
        const auto add = [&](Strategy strategy, TierRows TableTiers::*tier) {
            names.emplace_back(name_of(strategy));
            tiers.push_back(tier);
        };
        if (options.dp) add(Strategy::dp, &TableTiers::dp);
        if (options.flex) add(Strategy::flex, &TableTiers::flex);
        add(Strategy::row, &TableTiers::row);
    }
};

}  // namespace detail

SHARDWISE_INLINE TableRowPlan plan_by_frequency(const TableAccess& table, std::span<const std::int64_t> tiers) {
    const auto wrong = [&](const std::string& what) { return BadInput{concat({"table '", table.name, "': ", what})}; };
    if (tiers.size() < 2) throw wrong("a row plan has at least two tiers");
    const auto before_last = tiers.first(tiers.size() - 1);
    if (std::any_of(before_last.begin(), before_last.end(), [](std::int64_t rows) { return rows < 0; }))
        throw wrong("a tier has a number of rows, 0 or more");
    const std::int64_t replicated = std::accumulate(before_last.begin(), before_last.end(), std::int64_t{0});
    if (replicated > std::ssize(table.seen))
        throw wrong(concat({replicated, " rows are to be replicated, and the profile saw ", table.seen.size(),
                            ": give fewer, or profile more samples"}));
    if (table.rows > RowMap::most_rows)
        throw wrong(concat({"it has ", table.rows, " rows, and at most ", RowMap::most_rows,
                            " of a table are placed by a profile: leave the table out"}));
    TableRowPlan plan = all_in_last_tier(table.name, table.rows, tiers.size());
    std::copy(before_last.begin(), before_last.end(), plan.tiers.begin());
    plan.tiers.back() = table.rows - replicated;
    plan.replicated = hottest_rows(table, replicated);
    plan.lookups = detail::lookups_by_tier(table, plan.replicated, before_last);
    if (table.error != 0 || unseen_rows(table) == 0) return plan;
    plan.unseen.assign(static_cast<std::size_t>(table.rows), true);
    for (const RowAccess& row : table.seen)
        plan.unseen[static_cast<std::size_t>(row.row)] = false;
    return plan;
}

SHARDWISE_INLINE RowPlan plan_by_frequency(const AccessProfile& profile, std::vector<std::string> tiers,
                                           std::span<const std::vector<std::int64_t>> rows) {
    if (rows.size() != profile.tables.size())
        throw BadInput{concat({"rows of ", rows.size(), " tables for a profile of ", profile.tables.size()})};
    RowPlan plan{.tiers = std::move(tiers), .tables = {}};
    for (std::size_t t = 0; t < rows.size(); ++t) {
        if (rows[t].size() != plan.tiers.size())
            throw BadInput{concat({"table '", profile.tables[t].name, "': rows of ", rows[t].size(),
                                   " tiers, and there are ", plan.tiers.size()})};
        plan.tables.push_back(plan_by_frequency(profile.tables[t], rows[t]));
    }
    return plan;
}

SHARDWISE_INLINE RowPlan plan_by_frequency(const AccessProfile& profile, const FlexShardPlan& plan,
                                           const FlexShardOptions& options) {
    const detail::NamedTiers named{options};
    std::vector<std::vector<std::int64_t>> rows;
    for (const TableTiers& table : plan.tables) {
        rows.emplace_back();
        for (TierRows TableTiers::*tier : named.tiers)
            rows.back().push_back((table.*tier).rows);
    }
    return plan_by_frequency(profile, named.names, rows);
}

SHARDWISE_INLINE RowPlan plan_profile(const AccessProfile& profile, std::span<const int> dims, const Scaling& scaling,
                                      const RowMemory& memory, const FlexShardOptions& options, std::int64_t chunk) {
    if (dims.size() != profile.tables.size())
        throw BadInput{concat(
            {"dimensions of ", dims.size(), " tables for a profile of ", profile.tables.size(), ": give one a table"})};
    std::vector<RowTable> tables;
    for (std::size_t t = 0; t < dims.size(); ++t)
        tables.push_back(row_table(profile.tables[t], profile.samples, dims[t]));
    const FlexShardPlan plan = plan_flexshard(MergedRows{std::move(tables), chunk}, scaling, memory, options);
    RowPlan rows = plan_by_frequency(profile, plan, options);
    expect_touches(rows, use_of(profile), scaling.batch, scaling.topology);
    return rows;
}

SHARDWISE_INLINE RowPlan plan_in_order(const MergedRows& rows, const FlexShardPlan& plan,
                                       const FlexShardOptions& options, const Scaling& scaling) {
    if (plan.tables.size() != rows.tables().size())
        throw BadInput{concat(
            {"a plan of ", plan.tables.size(), " tables, and rows of ", rows.tables().size(), ": give its own"})};
    constexpr double samples = 1e6;
    if (!(samples * rows.lookups() < 0x1p62))
        throw BadInput{concat({rows.lookups(), " look-ups a sample: give tables of fewer than 4e12"})};
    const detail::NamedTiers named{options};
    RowPlan in_order{.tiers = named.names, .tables = {}};
    std::vector<TableUse> use;
    for (std::size_t t = 0; t < plan.tables.size(); ++t) {
        const RowTable& table = rows.tables()[t];
        TableRowPlan& one = in_order.tables.emplace_back();
        one.table = table.name;
        one.rows = table.distribution.rows();
        for (TierRows TableTiers::*tier : named.tiers) {
            one.tiers.push_back((plan.tables[t].*tier).rows);
            one.lookups.push_back(std::llround(samples * (plan.tables[t].*tier).lookups));
        }
        const std::array bags{BagLengths::near(table.distribution.lookups())};
        use.push_back(use_of(table.name, table.distribution, bags));
    }
    expect_touches(in_order, use, scaling.batch, scaling.topology);
    return in_order;
}

}  // namespace shardwise::inline SHARDWISE_ABI
