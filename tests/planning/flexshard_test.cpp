// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/flexshard.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/setting.hpp"

namespace shardwise_test {
namespace {

using sw::FlexShardCut;
using sw::FlexShardGoal;

// In rows of memory, with the paper's setting: exact for the p of any_distribution().
constexpr double dp_static = 5.96875;
constexpr double flex_static = 0.71875;
constexpr double batch = 4096;
constexpr double row_bytes = 1024;

sw::FlexShardPlan plan_of(const sw::MergedRows& rows, const sw::FlexShardOptions& options,
                          const sw::Scaling& scaling = paper_setting()) {
    return sw::plan_flexshard(rows, scaling, sw::paper_row_memory(scaling), options);
}

sw::MergedRows one_table(const sw::RowDistribution& distribution, std::int64_t chunk) {
    return {{{.name = "t", .distribution = distribution, .dim = 256}}, chunk};
}

/// Net rows of memory with the first `dp` rows in DP and the next `flex` in Flex.
double net_rows(const std::vector<double>& p, std::int64_t dp, std::int64_t flex = 0) {
    double net = flex_static * static_cast<double>(flex);
    for (std::int64_t i = 0; i < dp; ++i)
        net += dp_static - batch * p[static_cast<std::size_t>(i)];
    return net;
}

/// Counts that a plan may have, up to `rows`.
std::vector<std::int64_t> counts(std::int64_t rows, std::int64_t chunk) {
    std::vector<std::int64_t> all;
    for (std::int64_t n = 0; n < rows; n += chunk)
        all.push_back(n);
    all.push_back(rows);
    return all;
}

/// The mean p of a chunk is what its rows count as.
std::vector<double> chunked(const sw::RowDistribution& distribution, std::int64_t chunk) {
    std::vector<double> p(static_cast<std::size_t>(distribution.rows()));
    std::size_t i = 0;
    const sw::MergedRows merged = one_table(distribution, chunk);
    for (const sw::MergedRows::Run& run : merged.runs())
        for (std::int64_t n = 0; n < run.rows; ++n)
            p[i++] = run.p;
    return p;
}

std::int64_t any_chunk() {
    return std::int64_t{1} << *rc::gen::inRange(0, 5);  // means of so many rows are exact
}

/// Two tiers: of all counts of DP rows that keep to the budget, none has less communication.
RC_GTEST_PROP(flexshard, two_tiers_are_as_good_as_brute_force, ()) {
    const std::int64_t chunk = any_chunk();
    const sw::RowDistribution d = any_distribution(chunk);
    const double budget = *rc::gen::inRange(0, 200) * row_bytes;
    const int faster = *rc::gen::inRange(0, 400);  // 0: no bandwidths
    const sw::Scaling scaling = paper_setting(faster / 100.0);
    const sw::FlexShardPlan plan = plan_of(one_table(d, chunk), {.flex = false, .budget = budget}, scaling);

    const std::vector<double> p = chunked(d, chunk);
    double best = 0;
    for (const std::int64_t n : counts(d.rows(), chunk)) {
        if (net_rows(p, n) * row_bytes > budget) continue;
        double saved = 0;
        for (std::int64_t i = 0; i < n; ++i)
            saved += faster == 0 ? p[static_cast<std::size_t>(i)]
                                 : 2 * batch * p[static_cast<std::size_t>(i)] / 25e9 - 1 / (faster * 25e7);
        best = std::max(best, saved);
    }
    const sw::TableTiers total = plan.total();
    const double saved =
        faster == 0 ? total.dp.lookups
                    : 2 * batch * total.dp.lookups / 25e9 - static_cast<double>(total.dp.rows) / (faster * 25e7);
    RC_ASSERT(std::abs(saved - best) <= 1e-9 * std::abs(best));
    RC_ASSERT(plan.net_bytes <= budget);
    RC_ASSERT(plan.net_bytes == net_rows(p, total.dp.rows) * row_bytes);
}

/// Three tiers: DP is what the cut says, Flex as many as the budget holds; one chunk more would exceed it.
RC_GTEST_PROP(flexshard, three_tiers_are_as_good_as_brute_force, ()) {
    const std::int64_t chunk = any_chunk();
    const sw::RowDistribution d = any_distribution(chunk);
    const double budget = *rc::gen::inRange(0, 60) * row_bytes;
    const auto cut = *rc::gen::element(FlexShardCut::row, FlexShardCut::flex);
    const sw::FlexShardPlan plan = plan_of(one_table(d, chunk), {.cut = cut, .budget = budget});

    const std::vector<double> p = chunked(d, chunk);
    const double limit = cut == FlexShardCut::row ? dp_static : dp_static - flex_static;
    std::int64_t dp = 0;
    for (const std::int64_t n : counts(d.rows(), chunk))
        if ((n == 0 || batch * p[static_cast<std::size_t>(n - 1)] >= limit) && net_rows(p, n) * row_bytes <= budget)
            dp = n;
    std::int64_t flex = 0;
    for (const std::int64_t n : counts(d.rows(), chunk))
        if (n >= dp && net_rows(p, dp, n - dp) * row_bytes <= budget) flex = n - dp;
    const sw::TableTiers total = plan.total();
    RC_ASSERT(total.dp.rows == dp);
    RC_ASSERT(total.flex.rows == flex);
    RC_ASSERT(plan.net_bytes == net_rows(p, dp, flex) * row_bytes);
    RC_ASSERT(plan.net_bytes <= budget);
    if (total.row.rows != 0)
        RC_ASSERT(plan.net_bytes + flex_static * static_cast<double>(std::min(chunk, total.row.rows)) * row_bytes >
                  budget);
}

/// Of equal costs, the most copies where there is DP, and none beside Row in Flex.
TEST(flexshard, ties_go_to_dp_and_not_to_flex) {
    const sw::RowMemory equal{.name = "equal", .bytes = [](sw::Strategy, double, double) { return 8.0; }};
    const sw::MergedRows rows = one_table(sw::RowDistribution{{{0.5, 10}, {0.25, 20}}}, 1);
    const auto tiers = [&](const sw::FlexShardOptions& options) {
        const sw::TableTiers total = sw::plan_flexshard(rows, paper_setting(), equal, options).total();
        return std::vector{total.dp.rows, total.flex.rows, total.row.rows};
    };
    using Rows = std::vector<std::int64_t>;
    EXPECT_EQ(tiers({.goal = FlexShardGoal::memory}), (Rows{30, 0, 0}));
    EXPECT_EQ(tiers({.flex = false, .goal = FlexShardGoal::memory}), (Rows{30, 0, 0}));
    EXPECT_EQ(tiers({.dp = false, .goal = FlexShardGoal::memory}), (Rows{0, 0, 30}));
}

/// Rows and look-ups are in one tier each, and the most looked-up ones in the most replicated tier.
RC_GTEST_PROP(flexshard, tiers_part_each_table, ()) {
    std::vector<sw::RowTable> tables;
    for (int t = *rc::gen::inRange(1, 5); t > 0; --t)
        tables.push_back({.name = "t", .distribution = any_distribution(), .dim = 4 << *rc::gen::inRange(0, 3)});
    const std::int64_t chunk = any_chunk();
    const auto goal = *rc::gen::element(FlexShardGoal::neutral, FlexShardGoal::memory, FlexShardGoal::communication);
    sw::Scaling scaling = paper_setting(3);
    scaling.bandwidths.all_to_all_intra = 72e9;
    scaling.bandwidths.all_reduce_cross = 200e9;
    const sw::FlexShardPlan plan =
        plan_of({tables, chunk}, {.flex = *rc::gen::arbitrary<bool>(), .goal = goal}, scaling);
    RC_ASSERT(plan.tables.size() == tables.size());
    for (std::size_t t = 0; t < tables.size(); ++t) {
        const sw::TableTiers& tiers = plan.tables[t];
        const std::vector<double> p = rows_of(tables[t].distribution);
        RC_ASSERT(tiers.dp.rows + tiers.flex.rows + tiers.row.rows == static_cast<std::int64_t>(p.size()));
        auto row = p.begin();
        for (const sw::TierRows& tier : {tiers.dp, tiers.flex, tiers.row}) {
            double lookups = 0;
            for (std::int64_t i = 0; i < tier.rows; ++i)
                lookups += *row++;
            RC_ASSERT(std::abs(tier.lookups - lookups) <= 1e-12 * (1 + lookups));
            RC_ASSERT(tier.rows % chunk == 0 || row == p.end());
        }
    }
}

/// k equal tables are one with k times the rows (section 4.6).
RC_GTEST_PROP(flexshard, equal_tables_are_planned_as_one, ()) {
    const sw::RowDistribution d = any_distribution();
    const int k = *rc::gen::inRange(2, 5);
    std::vector<sw::RowRun> more(d.runs().begin(), d.runs().end());
    for (sw::RowRun& run : more)
        run.rows *= k;
    const std::vector<sw::RowTable> tables(static_cast<std::size_t>(k), {.name = "t", .distribution = d, .dim = 256});
    const sw::FlexShardOptions options{.flex = *rc::gen::arbitrary<bool>(),
                                       .goal = *rc::gen::element(FlexShardGoal::neutral, FlexShardGoal::memory)};
    const sw::FlexShardPlan several = plan_of({tables, 1}, options);
    const sw::FlexShardPlan single = plan_of(one_table(sw::RowDistribution{more}, 1), options);
    RC_ASSERT(several.total().dp.rows == single.total().dp.rows);
    RC_ASSERT(several.total().flex.rows == single.total().flex.rows);
    RC_ASSERT(several.total().dp.lookups == single.total().dp.lookups);
    RC_ASSERT(several.net_bytes == single.net_bytes);
}

/// No plan takes less memory than that of the goal, and a budget down to there has a plan.
RC_GTEST_PROP(flexshard, the_least_memory_is_the_least_budget, ()) {
    const std::int64_t chunk = any_chunk();
    const sw::RowDistribution d = any_distribution(chunk);
    const sw::MergedRows rows = one_table(d, chunk);
    const bool flex = *rc::gen::arbitrary<bool>();
    const double least = plan_of(rows, {.flex = flex, .goal = FlexShardGoal::memory}).net_bytes;
    const std::vector<double> p = chunked(d, chunk);
    double brute = 0;
    for (const std::int64_t n : counts(d.rows(), chunk))
        brute = std::min(brute, net_rows(p, n) * row_bytes);
    RC_ASSERT(least == brute);
    RC_ASSERT(plan_of(rows, {.flex = flex, .budget = least}).net_bytes == least);
    const std::string error = bad_input([&] { return plan_of(rows, {.flex = flex, .budget = least - 1}); });
    RC_ASSERT(error.find("the least is " + std::to_string(std::llround(std::ceil(least))) + ", with ") !=
              std::string::npos);
}

/// The goal of least communication: each row, by itself, where it is sooner than anywhere else.
RC_GTEST_PROP(flexshard, the_least_communication_is_that_of_each_row, ()) {
    const sw::RowDistribution d = any_distribution();
    sw::Scaling scaling = paper_setting(*rc::gen::inRange(1, 100) / 10.0);
    scaling.bandwidths.all_to_all_intra = *rc::gen::inRange(10, 300) * 1e9;
    scaling.bandwidths.all_reduce_cross = *rc::gen::inRange(10, 300) * 1e9;
    const bool flex = *rc::gen::arbitrary<bool>();
    const sw::FlexShardPlan plan =
        plan_of(one_table(d, 1), {.flex = flex, .goal = FlexShardGoal::communication}, scaling);
    double best = 0;
    for (const double p : rows_of(d)) {
        double row = *sw::row_seconds(scaling, sw::Strategy::row, 256, p);
        row = std::min(row, *sw::row_seconds(scaling, sw::Strategy::dp, 256, p));
        if (flex) row = std::min(row, *sw::row_seconds(scaling, sw::Strategy::flex, 256, p));
        best += row;
    }
    const auto seconds = [&](sw::Strategy strategy, const sw::TierRows& tier) {
        return *sw::cost_of(strategy, scaling, static_cast<double>(tier.rows), 256, tier.lookups).seconds();
    };
    const sw::TableTiers total = plan.total();
    const double found = seconds(sw::Strategy::dp, total.dp) + seconds(sw::Strategy::flex, total.flex) +
                         seconds(sw::Strategy::row, total.row);
    RC_ASSERT(std::abs(found - best) <= 1e-9 * best);
    // a budget that it keeps to changes nothing, and one below it is kept to
    const auto with = [&](double budget) {
        return plan_of(one_table(d, 1), {.flex = flex, .goal = FlexShardGoal::communication, .budget = budget},
                       scaling);
    };
    RC_ASSERT(with(std::max(0.0, plan.net_bytes)).total().dp.rows == total.dp.rows);
    RC_ASSERT(with(std::max(0.0, plan.net_bytes / 2)).net_bytes <= std::max(0.0, plan.net_bytes / 2));
}

/// What a plan takes by the model that it was made with, and by another, whose bytes are not linear in p.
RC_GTEST_PROP(flexshard, a_plan_takes_what_its_rows_take, ()) {
    const std::int64_t chunk = any_chunk();
    const sw::RowDistribution a = any_distribution(chunk);
    const sw::RowDistribution b = any_distribution(chunk);
    const sw::MergedRows rows{{{"a", a, 16}, {"b", b, 64}}, chunk};
    const sw::Scaling scaling = paper_setting();
    const sw::FlexShardPlan plan = plan_of(rows, {.budget = *rc::gen::inRange(0, 60) * row_bytes}, scaling);
    const double same = sw::net_bytes(rows, plan, sw::paper_row_memory(scaling));
    RC_ASSERT(std::abs(same - plan.net_bytes) <= 1e-9 * (1 + std::abs(same)));

    const sw::RowMemory other{
        .name = "other", .bytes = [](sw::Strategy strategy, double dim, double p) {
            return (strategy == sw::Strategy::dp ? 3 : strategy == sw::Strategy::flex ? 2 : 1) * dim * (1 - p * p);
        }};
    double bytes = 0;
    for (const int t : {0, 1}) {
        const std::vector<double> p = chunked(t == 0 ? a : b, chunk);
        const auto& tiers = plan.tables[static_cast<std::size_t>(t)];
        for (std::int64_t i = 0; i < tiers.dp.rows + tiers.flex.rows; ++i) {
            const double of_row = p[static_cast<std::size_t>(i)];
            bytes += (i < tiers.dp.rows ? 2 : 1) * (t == 0 ? 16 : 64) * (1 - of_row * of_row);
        }
    }
    RC_ASSERT(std::abs(sw::net_bytes(rows, plan, other) - bytes) <= 1e-9 * (1 + bytes));
    RC_ASSERT_THROWS_AS(static_cast<void>(sw::net_bytes(rows, {}, other)), sw::BadInput);
}

TEST(flexshard, flex_ends_where_it_is_communication_neutral) {
    sw::Scaling scaling = paper_setting();
    scaling.bandwidths.all_to_all_global = 25e9;
    scaling.bandwidths.all_to_all_intra = 72e9;
    scaling.bandwidths.all_reduce_cross = 200e9;
    const double neutral = *sw::neutral_points(scaling, sw::paper_row_memory(scaling), 256).communication_flex_row;
    // 10 rows save what 1300 Flex rows and more take
    const sw::MergedRows rows =
        one_table(sw::RowDistribution{{{0.25, 10}, {2 * neutral, 700}, {neutral * 0.999, 50000}}}, 1);
    EXPECT_EQ(plan_of(rows, {}, scaling).total().flex.rows, 700);
    scaling.bandwidths.all_reduce_cross.reset();  // not known: memory alone
    EXPECT_EQ(plan_of(rows, {}, scaling).total().flex.rows,
              static_cast<std::int64_t>((0.25 * batch - dp_static) * 10 / flex_static));
}

TEST(flexshard, tables_weigh_by_their_own_bytes) {
    // One hot row of 64 elements pays for a quarter of the rows that one of 256 elements does.
    const sw::RowDistribution hot{{{0.25, 1}, {1e-9, 10000}}};
    const sw::RowDistribution cold{{{2e-9, 10000}}};
    const auto flex_rows = [&](int dim) {
        return plan_of({{{"hot", hot, dim}, {"cold", cold, 256}}, 1}, {}).tables[1].flex.rows;
    };
    const double saved = 0.25 * batch - dp_static;
    EXPECT_EQ(flex_rows(256), static_cast<std::int64_t>(saved / flex_static));
    EXPECT_EQ(flex_rows(64), static_cast<std::int64_t>(saved / 4 / flex_static));
}

TEST(flexshard, another_model_of_memory_is_planned_for_as_well) {
    // Replicas cost a row's bytes and nothing saves: the budget alone says how many.
    const sw::RowMemory plain{.name = "plain", .bytes = [](sw::Strategy strategy, double dim, double) {
                                  return strategy == sw::Strategy::row ? 0 : 4 * dim;
                              }};
    const sw::MergedRows rows = one_table(sw::RowDistribution{{{0.25, 100}, {0.125, 100}}}, 1);
    const sw::Scaling scaling = paper_setting();
    EXPECT_EQ(sw::plan_flexshard(rows, scaling, plain, {.flex = false, .budget = 37.5 * 1024}).total().dp.rows, 37);
    EXPECT_EQ(sw::plan_flexshard(rows, scaling, plain, {.flex = false}).total().dp.rows, 0);
}

TEST(flexshard, keeps_to_a_budget_to_the_last_bit) {
    const sw::RowMemory tenth{.name = "tenth", .bytes = [](sw::Strategy strategy, double, double) {
                                  return strategy == sw::Strategy::row ? 0.0 : 0.1;
                              }};
    const sw::MergedRows rows = one_table(sw::RowDistribution{{{0.25, 10000}}}, 1);
    for (int k = 1; k < 2000; ++k) {  // just too little for k rows, though some quotients round up to k
        const double budget = std::nextafter(0.1 * k, 0.0);
        const sw::FlexShardPlan plan =
            sw::plan_flexshard(rows, paper_setting(), tenth, {.flex = false, .budget = budget});
        ASSERT_EQ(plan.total().dp.rows, k - 1);
        ASSERT_LE(plan.net_bytes, budget);
    }
}

TEST(flexshard, refuses_what_has_no_answer) {
    const sw::MergedRows rows = one_table(sw::RowDistribution{{{0.25, 10}, {1e-9, 1000}}}, 1);
    const auto error = [&](const sw::FlexShardOptions& options, const sw::Scaling& scaling) {
        return bad_input([&] { return plan_of(rows, options, scaling); });
    };
    EXPECT_EQ(error({.goal = FlexShardGoal::memory, .budget = 1.0}, paper_setting()),
              "a budget has no effect where the goal is the least memory: leave it out");
    EXPECT_NE(
        error({.goal = FlexShardGoal::communication}, paper_setting(3))
            .find("give a budget, or the bandwidths of the global all-to-all and all-reduce, of the all-to-all inside"),
        std::string::npos);
    EXPECT_EQ(error({.flex = false, .goal = FlexShardGoal::communication}, paper_setting()).find("inside hosts"),
              std::string::npos);
    EXPECT_NE(error({.budget = std::numeric_limits<double>::infinity()}, paper_setting()).find("no number of bytes"),
              std::string::npos);
    EXPECT_EQ(error({.budget = -1e9}, paper_setting()),
              "a budget of -1000000000 bytes a rank: no plan takes as little; the least is -10424640, with 10 DP rows; "
              "give at least that");
    const sw::MergedRows cold = one_table(sw::RowDistribution{{{1e-9, 1000}}}, 1);
    EXPECT_EQ(bad_input([&] { return plan_of(cold, {.budget = -1.0}); }),
              "a budget of -1 bytes a rank: no plan takes as little; the least is 0, with 0 DP rows, since none saves "
              "memory; give at least that");
}

}  // namespace
}  // namespace shardwise_test
