// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/expected_touches.hpp"

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/core/error.hpp"
#include "shardwise/planning/row_plans.hpp"
#include "shardwise/planning/workloads.hpp"

namespace {

namespace sw = shardwise;

const sw::Topology two_by_three{.hosts = 2, .ranks_per_host = 3};

TEST(ExpectedTouches, ARowIsTouchedUnlessNoSampleHoldsIt) {
    // 8 rows: two tiers of 3 and 5; of ten samples, row 5 is in all, row 2 in half, row 0 in one
    const sw::TableAccess table{
        .name = "t", .rows = 8, .lookups = 16, .error = 0, .seen = {{0, 1, 1}, {2, 5, 5}, {5, 10, 10}}};
    sw::RowPlan plan{.tiers = {"dp", "row"},
                     .tables = {{.table = "t", .rows = 8, .tiers = {2, 6}, .replicated = {5, 2}, .unseen = {}}}};
    const std::vector<sw::TableUse> use{sw::use_of("another", sw::RowDistribution{{{.p = 1.0, .rows = 9}}}, {}),
                                        sw::use_of(table, 10)};
    sw::expect_touches(plan, use, 1, {.hosts = 1, .ranks_per_host = 1});
    EXPECT_EQ(plan.tables[0].touches, (std::vector<sw::RowTouches>{{2, 2, 2}, {0, 0, 0}}));  // 1.5 and 0.1, rounded
    sw::expect_touches(plan, use, 7, two_by_three);
    EXPECT_EQ(plan.tables[0].touches[1], (sw::RowTouches{1, 1, 1}));  // 1 - 0.9^7 = 0.52
}

TEST(ExpectedTouches, AreMeansOfWhatSamplesTouch) {
    constexpr std::int64_t rows = 3000;
    constexpr std::int64_t profiled = 1000000;
    sw::TableAccess table{.name = "t", .rows = rows, .lookups = 0, .error = 0};
    std::vector<double> p;
    for (std::int64_t row = 0; row < rows; ++row) {
        const auto samples = static_cast<std::int64_t>(profiled * 0.05 / std::sqrt(static_cast<double>(row + 1)));
        table.seen.push_back({.row = row, .lookups = samples, .samples = samples});
        table.lookups += samples;
        p.push_back(static_cast<double>(samples) / profiled);
    }
    const std::vector<std::int64_t> tiers{500, 0};
    sw::RowPlan plan{.tiers = {"dp", "row"}, .tables = {sw::plan_by_frequency(table, tiers)}};
    sw::expect_touches(plan, sw::use_of({.samples = profiled, .tables = {table}}), 40, two_by_three);

    std::mt19937_64 random{7};
    std::uniform_real_distribution<double> uniform;
    const int steps = 100;
    double touched[2] = {0, 0};
    for (int step = 0; step < steps; ++step)
        for (std::int64_t row = 0; row < rows; ++row) {
            bool held = false;
            for (int sample = 0; sample < 40 * 3 && !held; ++sample)
                held = uniform(random) < p[static_cast<std::size_t>(row)];
            touched[row < 500 ? 0 : 1] += held ? 1.0 / steps : 0.0;
        }
    for (const int tier : {0, 1})
        EXPECT_NEAR(static_cast<double>(plan.tables[0].touches[static_cast<std::size_t>(tier)].host) / touched[tier],
                    1.0, 0.01);
    EXPECT_LT(plan.tables[0].touches[0].rank, plan.tables[0].touches[0].host);
    EXPECT_LT(plan.tables[0].touches[0].host, plan.tables[0].touches[0].world);
}

std::string refusal(const std::string& table, std::int64_t rows, std::int64_t samples) {
    const sw::TableAccess seen{.name = "t", .rows = 8, .lookups = 2, .error = 0, .seen = {{0, 1, 1}, {7, 1, 1}}};
    sw::RowPlan plan{.tiers = {"dp", "row"}, .tables = {sw::all_in_last_tier(table, rows, 2)}};
    try {
        sw::expect_touches(plan, sw::use_of({.samples = 10, .tables = {seen}}), samples, two_by_three);
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return {};
}

TEST(ExpectedTouches, ArePlansOfTheProfilesTables) {
    EXPECT_EQ(refusal("t", 8, 1), "");
    EXPECT_EQ(refusal("t", 8, 0), "rows touched by 0 samples a rank: give at least one");
    EXPECT_NE(refusal("t", 8, std::int64_t{1} << 60), "");
    EXPECT_EQ(refusal("t", 7, 1),
              "table 't': row 7 is looked up, and the plan has 7 rows: give the plan and the profile of one table");
    EXPECT_EQ(refusal("other", 8, 1),
              "it is not said how table 'other' of the row plan is used: give the profile that the plan was made from");
}

}  // namespace
