// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/plan_seconds.hpp"

#include <gtest/gtest.h>

#include "planning/setting.hpp"

namespace shardwise_test {
namespace {

struct Planned {
    sw::MergedRows rows;
    sw::FlexShardPlan plan;
};

/// RM-2 of Table 5, three tiers: rows and look-ups of its tiers.
Planned rm2() {
    constexpr double l = 959.6;
    const auto run = [](double share, std::int64_t rows) {
        return sw::RowRun{share * l / static_cast<double>(rows), rows};
    };
    const sw::RowDistribution d{{run(0.639, 128'736), run(0.217, 2'397'216), run(0.144, 27'474'048)}};
    const auto tier = [&](std::size_t i) {
        return sw::TierRows{d.runs()[i].rows, d.runs()[i].p * static_cast<double>(d.runs()[i].rows)};
    };
    return {.rows = {{{"RM-2", d, 256}}, 1}, .plan = {.tables = {{tier(0), tier(1), tier(2)}}}};
}

/// "Nearly 6x": with the bandwidths that make Table 6's times of RM-2.
TEST(plan_seconds, nearly_six_times) {
    const auto [rows, plan] = rm2();
    sw::Scaling s = paper_setting();
    const double bytes = 2 * 4096 * 959.6 * 1024;
    s.bandwidths = {.all_to_all_global = bytes / 308e-3,
                    .all_to_all_intra = 0.217 * bytes / 21e-3,
                    .all_reduce_global = 128'736.0 * 1024 / 3e-3,
                    .all_reduce_cross = 2'397'216.0 * 1024 / 27e-3};
    sw::PlanSeconds seconds = sw::plan_seconds(rows, s, plan);
    EXPECT_NEAR(*seconds.row_only, 308e-3, 1e-9);
    EXPECT_NEAR(*seconds.all_to_all_global, 0.144 * 308e-3, 1e-9);  // observed: 49 ms, latency included
    EXPECT_NEAR(*seconds.all_to_all_intra, 21e-3, 1e-9);
    EXPECT_NEAR(*seconds.all_reduce_global, 3e-3, 1e-9);
    EXPECT_NEAR(*seconds.all_reduce_cross, 27e-3, 1e-9);
    EXPECT_NEAR(*seconds.speedup(true), 308 / (0.144 * 308 + 3), 1e-9);
    EXPECT_NEAR(*seconds.speedup(false), 308 / (0.144 * 308 + 3 + 27), 1e-9);
    seconds.all_to_all_global = 49e-3;
    EXPECT_NEAR(*seconds.speedup(true), 5.92, 0.005);
    EXPECT_NEAR(*seconds.speedup(false), 3.90, 0.005);
}

TEST(plan_seconds, asks_for_no_more_bandwidths_than_it_needs) {
    const auto [rows, plan] = rm2();
    sw::Scaling s = paper_setting(3);
    const sw::PlanSeconds three = sw::plan_seconds(rows, s, plan);
    EXPECT_FALSE(three.all_to_all_intra);
    EXPECT_TRUE(three.speedup(true));
    EXPECT_FALSE(three.speedup(false));
    const sw::FlexShardPlan two = sw::plan_flexshard(rows, s, sw::paper_row_memory(s), {.flex = false});
    const sw::PlanSeconds seconds = sw::plan_seconds(rows, s, two);
    EXPECT_EQ(*seconds.all_reduce_cross, 0);
    EXPECT_EQ(*seconds.speedup(true), *seconds.speedup(false));
    EXPECT_FALSE(sw::plan_seconds(rows, paper_setting(), plan).speedup(true));
}

TEST(plan_seconds, of_all_rows_in_flex_hides_behind_nothing) {
    const sw::MergedRows rows{{{"t", sw::RowDistribution{{{0.5, 10}}}, 256}}, 1};
    sw::Scaling s = paper_setting(3);
    s.bandwidths.all_to_all_intra = 72e9;
    s.bandwidths.all_reduce_cross = 200e9;
    const sw::PlanSeconds seconds = sw::plan_seconds(rows, s, {.tables = {{{}, {10, 5.0}, {}}}});
    EXPECT_FALSE(seconds.speedup(true));
    EXPECT_TRUE(seconds.speedup(false));
}

}  // namespace
}  // namespace shardwise_test
