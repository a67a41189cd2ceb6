// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/row_plans.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/support.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/planning/library_memory.hpp"
#include "shardwise/planning/row_counter.hpp"
#include "shardwise/planning/workloads.hpp"
#include "shardwise/sharding/row_map.hpp"

namespace {

namespace sw = shardwise;

const sw::TableAccess items{
    .name = "item", .rows = 8, .lookups = 30, .error = 0, .seen = {{1, 4, 4}, {2, 9, 7}, {5, 4, 3}, {6, 13, 8}}};

TEST(RowPlans, TheHottestRowsComeFirst) {
    const std::vector<std::int64_t> tiers{1, 2, 0};
    const sw::TableRowPlan plan = sw::plan_by_frequency(items, tiers);
    EXPECT_EQ(plan.table, "item");
    EXPECT_EQ(plan.rows, 8);
    EXPECT_EQ(plan.tiers, (std::vector<std::int64_t>{1, 2, 5}));
    EXPECT_EQ(plan.replicated, (std::vector<std::int64_t>{6, 2, 1}));  // of rows 1 and 5, looked up alike, the first
    EXPECT_EQ(plan.unseen, (std::vector<bool>{true, false, false, true, true, false, false, true}));
    EXPECT_EQ(plan.lookups, (std::vector<std::int64_t>{13, 13, 4}));
    const sw::RowMap map{plan};
    EXPECT_EQ(map.tier(6), 0);
    EXPECT_EQ(map.tier(1), 1);
    EXPECT_EQ(map.tier(5), 2);
    EXPECT_TRUE(map.unseen(0));
    EXPECT_FALSE(map.unseen(5));
}

TEST(RowPlans, ADistributionHasTheRowsThatWereSeenAndTheOthers) {
    const sw::RowDistribution rows = sw::distribution_of(items, 10);
    EXPECT_EQ((std::vector<sw::RowRun>{rows.runs().begin(), rows.runs().end()}),
              (std::vector<sw::RowRun>{{1.3, 1}, {0.9, 1}, {0.4, 2}, {0.0, 4}}));
    EXPECT_EQ(rows.rows(), 8);
    EXPECT_DOUBLE_EQ(rows.lookups(), 3.0);
    EXPECT_EQ(sw::distribution_of({.name = "t", .rows = 3}, 10).lookups(), 0.0);
    EXPECT_THROW(static_cast<void>(sw::distribution_of({.name = "t", .rows = 0}, 10)), sw::BadInput);
    EXPECT_THROW(static_cast<void>(sw::distribution_of(items, 0)), sw::BadInput);
}

TEST(RowPlans, ABoundedProfileDoesNotSayWhatItDidNotSee) {
    sw::TableAccess bounded = items;
    bounded.error = 2;
    const std::vector<std::int64_t> tiers{2, 0};
    EXPECT_TRUE(sw::plan_by_frequency(bounded, tiers).unseen.empty());
    bounded.lookups = 40;  // ten of rows that are not listed, or of listed ones that were counted too low
    EXPECT_EQ(sw::plan_by_frequency(bounded, tiers).lookups, (std::vector<std::int64_t>{22, 18}));
}

/// Whatever was counted, in however few counters: a plan, of rows that the profile lists, the hottest first.
RC_GTEST_PROP(RowPlans, ReplicateRowsThatAreListed, ()) {
    std::mt19937_64 random{*rc::gen::arbitrary<std::uint64_t>()};
    const auto below = [&](std::int64_t end) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
    };
    sw::AccessProfile profile{.samples = 1 + below(100), .tables = {}};
    std::vector<int> dims;
    for (const std::string name : {"a", "b"}) {
        const std::int64_t rows = 1 + below(200);
        sw::RowCounter counter{below(40)};
        for (std::int64_t sample = 0; sample < profile.samples; ++sample)
            for (std::int64_t ids = 1 + below(5); ids > 0; --ids)
                counter.count(planning_test::skewed_row(random, rows), sample);
        profile.tables.push_back({.name = name,
                                  .rows = rows,
                                  .lookups = counter.lookups(),
                                  .error = counter.error(),
                                  .seen = counter.seen()});
        dims.push_back(static_cast<int>(1 + below(64)));
    }
    const sw::Scaling scaling{
        .topology = {.hosts = 1 + static_cast<int>(below(3)), .ranks_per_host = 1 + static_cast<int>(below(3))},
        .batch = 1 + below(5000)};
    const bool dp = below(3) != 0;
    sw::FlexShardOptions options{.dp = dp, .flex = !dp || below(2) == 0};
    if (below(2) == 0)
        options.goal = sw::FlexShardGoal::memory;
    else
        options.budget = static_cast<double>(below(1'000'000));
    const sw::RowMemory memory = below(2) == 0 ? sw::paper_row_memory(scaling) : sw::library_row_memory(scaling);
    const sw::RowPlan plan = sw::plan_profile(profile, dims, scaling, memory, options, 1 + below(9));
    check(plan);
    for (const sw::TableAccess& table : profile.tables) {
        std::map<std::int64_t, std::int64_t> listed;
        for (const sw::RowAccess& row : table.seen)
            listed[row.row] = row.lookups;
        const sw::TableRowPlan& rows = plan.of(table.name);
        std::int64_t before = std::numeric_limits<std::int64_t>::max();
        for (const std::int64_t row : rows.replicated) {
            RC_ASSERT(listed.contains(row));
            RC_ASSERT(listed[row] <= before);
            before = listed[row];
            listed.erase(row);
        }
        for (const auto& [row, lookups] : listed)
            RC_ASSERT(lookups <= before);
        RC_ASSERT(std::accumulate(rows.lookups.begin(), rows.lookups.end(), std::int64_t{0}) == table.lookups);
    }
}

TEST(RowPlans, SayWhichShareOfTheLookUpsIsExpectedOfATier) {
    sw::TableAccess other{.name = "user", .rows = 3, .lookups = 10, .error = 0, .seen = {{0, 1, 1}, {2, 9, 9}}};
    sw::RowPlan plan = sw::plan_by_frequency({.samples = 10, .tables = {items, other}}, {"dp", "row"},
                                             std::vector<std::vector<std::int64_t>>{{1, 0}, {1, 0}});
    EXPECT_EQ(sw::expected_coverage(plan), (std::vector<double>{22.0 / 40, 18.0 / 40}));
    plan.tables[0].lookups.clear();
    EXPECT_TRUE(sw::expected_coverage(plan).empty());
    EXPECT_TRUE(sw::expected_coverage({.tiers = {"dp", "row"}, .tables = {}}).empty());
}

TEST(RowPlans, FromAProfileToTheRowsOfEachTier) {
    // A row saves memory in DP where it is looked up more than (6 - 1/4) / 8 times a sample: rows 6 and 2.
    const sw::AccessProfile profile{.samples = 10, .tables = {items, {.name = "none", .rows = 5}, items}};
    const sw::Scaling scaling{.topology = {2, 2}, .batch = 8};
    const std::vector<int> dims{16, 4, 16};
    const auto plan = [&](const sw::FlexShardOptions& options) {
        return sw::plan_profile(profile, dims, scaling, sw::paper_row_memory(scaling), options, 1);
    };
    const sw::RowPlan two = plan({.flex = false, .goal = sw::FlexShardGoal::memory});
    EXPECT_EQ(two.tiers, (std::vector<std::string>{"dp", "row"}));
    EXPECT_EQ(two.tables[0].replicated, (std::vector<std::int64_t>{6, 2}));
    EXPECT_EQ(two.tables[0], two.tables[2]);
    EXPECT_EQ(two.tables[1].tiers, (std::vector<std::int64_t>{0, 5}));
    EXPECT_EQ(two.tables[1].lookups, (std::vector<std::int64_t>{0, 0}));
    // With a budget for everything, Flex has what DP leaves, but no row that nobody saw.
    const sw::RowPlan three = plan({.budget = 1e9});
    EXPECT_EQ(three.tables[0].tiers, (std::vector<std::int64_t>{2, 2, 4}));
    EXPECT_EQ(three.tables[0].replicated, (std::vector<std::int64_t>{6, 2, 1, 5}));
    const sw::RowPlan no_dp = plan({.dp = false, .budget = 1e9});
    EXPECT_EQ(no_dp.tiers, (std::vector<std::string>{"flex", "row"}));
    EXPECT_EQ(no_dp.tables[0].tiers, (std::vector<std::int64_t>{4, 4}));
    EXPECT_EQ(plan({.dp = false}).tables[0].tiers, (std::vector<std::int64_t>{0, 8}));  // Flex saves no memory
    // Counts of look-ups that a profile in bounded memory has of no row move none of these into another tier.
    sw::AccessProfile bounded = profile;
    for (sw::TableAccess& table : bounded.tables)
        if (table.name == "item") table.lookups += 80, table.error = 10;
    const sw::RowPlan within =
        sw::plan_profile(bounded, dims, scaling, sw::paper_row_memory(scaling), {.budget = 1e9}, 1);
    EXPECT_EQ(within.tables[0].tiers, (std::vector<std::int64_t>{4, 0, 4}));  // each has 10 look-ups more
    EXPECT_EQ(within.tables[0].replicated, (std::vector<std::int64_t>{6, 2, 1, 5}));
    // Chunks end where the profile's rows do.
    EXPECT_EQ(sw::plan_profile(profile, dims, scaling, sw::paper_row_memory(scaling), {.dp = false, .budget = 1e9}, 3)
                  .tables[0]
                  .tiers,
              (std::vector<std::int64_t>{4, 4}));
    EXPECT_THROW(static_cast<void>(plan({.dp = false, .flex = false})), sw::BadInput);
    EXPECT_THROW(static_cast<void>(
                     sw::plan_profile(profile, std::vector<int>{4}, scaling, sw::paper_row_memory(scaling), {}, 1)),
                 sw::BadInput);
    EXPECT_THROW(
        static_cast<void>(sw::plan_profile({.samples = 3, .tables = {{.name = "none", .rows = 5}}}, std::vector<int>{4},
                                           scaling, sw::paper_row_memory(scaling), {}, 1)),
        sw::BadInput);
}

TEST(RowPlans, FromLawsToTheRowsOfEachTier) {
    const sw::Scaling scaling{.topology = {2, 2}, .batch = 1};
    const sw::MergedRows rows{{{"a", sw::RowDistribution{{{.p = 0.5, .rows = 4}, {.p = 1e-9, .rows = 96}}}, 8},
                               {"b", sw::RowDistribution{{{.p = 1.0, .rows = 10}}}, 8}},
                              1};
    const sw::FlexShardPlan counts{.tables = {{{2, 1.0}, {2, 1.0}, {96, 9.6e-8}}, {{0, 0.0}, {10, 10.0}, {0, 0.0}}}};
    const sw::RowPlan plan = sw::plan_in_order(rows, counts, {}, scaling);
    EXPECT_EQ(plan.tiers, (std::vector<std::string>{"dp", "flex", "row"}));
    EXPECT_EQ(plan.tables[0].table, "a");
    EXPECT_EQ(plan.tables[0].tiers, (std::vector<std::int64_t>{2, 2, 96}));
    EXPECT_EQ(plan.tables[1].tiers, (std::vector<std::int64_t>{0, 10, 0}));
    EXPECT_EQ(plan.tables[0].lookups, (std::vector<std::int64_t>{1000000, 1000000, 0}));
    // two ids a sample: a row of the first four is in 1 - (3/4)^2 of the samples, and no row of the others
    EXPECT_EQ(plan.tables[0].touches,
              (std::vector<sw::RowTouches>{{1, 1, 2}, {1, 1, 2}, {0, 0, 0}}));  // of 2: 0.875, 1.37 and 1.8
    EXPECT_THROW(static_cast<void>(sw::plan_in_order(rows, {}, {}, scaling)), sw::BadInput);
    EXPECT_THROW(static_cast<void>(sw::plan_in_order(rows, counts, {.dp = false}, scaling)), sw::BadInput);
}

std::string error_of(const std::vector<std::int64_t>& tiers) {
    try {
        static_cast<void>(sw::plan_by_frequency(items, tiers));
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return {};
}

TEST(RowPlans, SayWhatIsWrong) {
    EXPECT_EQ(error_of({5, 0}),
              "table 'item': 5 rows are to be replicated, and the profile saw 4: give fewer, or "
              "profile more samples");
    EXPECT_EQ(error_of({3}), "table 'item': a row plan has at least two tiers");
    EXPECT_EQ(error_of({-1, 0}), "table 'item': a tier has a number of rows, 0 or more");
    const sw::TableAccess large{.name = "t", .rows = INT64_MAX, .lookups = 1, .seen = {{3, 1, 1}}};
    const std::vector<std::int64_t> one{1, 0};
    EXPECT_THROW(static_cast<void>(sw::plan_by_frequency(large, one)), sw::BadInput);
    const sw::AccessProfile profile{.samples = 10, .tables = {items}};
    const std::vector<std::vector<std::int64_t>> two{{1, 7}, {1, 7}};
    EXPECT_THROW(static_cast<void>(sw::plan_by_frequency(profile, {"dp", "row"}, two)), sw::BadInput);
    const std::vector<std::vector<std::int64_t>> three_tiers{{1, 1, 6}};
    EXPECT_THROW(static_cast<void>(sw::plan_by_frequency(profile, {"dp", "row"}, three_tiers)), sw::BadInput);
}

}  // namespace
