// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/workloads.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/support.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"
#include "shardwise/planning/expected_touches.hpp"
#include "shardwise/planning/row_counter.hpp"
#include "shardwise/sharding/row_plan.hpp"

/// \file
/// Workloads say of each row what the profile or law said.

namespace {

using planning_test::naive_counts;
using planning_test::naive_table;
using planning_test::Sample;
namespace sw = shardwise;

std::vector<Sample> any_samples(std::int64_t rows) {
    std::mt19937_64 random{*rc::gen::arbitrary<std::uint64_t>()};
    std::vector<Sample> samples(1 + random() % 40);
    for (Sample& sample : samples)
        for (std::uint64_t ids = random() % 6; ids > 0; --ids)
            sample.push_back(planning_test::skewed_row(random, rows));
    return samples;
}

/// (row): p and q; rows that are never looked up are not in it.
std::map<std::int64_t, std::pair<double, double>> by_row(const sw::TableUse& use) {
    std::map<std::int64_t, std::pair<double, double>> all;
    const std::set<std::int64_t> listed(use.rows.begin(), use.rows.end());
    std::int64_t next = 0;
    for (const sw::RowUse& run : use.runs) {
        std::int64_t other = -1;
        for (std::int64_t i = 0; i < run.rows; ++i, ++next) {
            if (next < std::ssize(use.rows)) {
                all[use.rows.at(static_cast<std::size_t>(next))] = {run.p, run.q};
                continue;
            }
            do
                ++other;
            while (all.contains(other) || listed.contains(other));
            all[other] = {run.p, run.q};
        }
    }
    return all;
}

RC_GTEST_PROP(Workloads, HaveTheCountsOfTheirProfile, ()) {
    const auto rows = *rc::gen::inRange<std::int64_t>(1, 60);
    const std::vector<Sample> samples = any_samples(rows);
    const sw::AccessProfile profile{.samples = std::ssize(samples), .tables = {naive_table("t", rows, samples)}};
    const std::vector<sw::TableConfig> tables{{.name = "t", .rows = rows, .dim = 4, .features = {"f", "g"}}};
    const sw::Workload workload = sw::workload_of(profile, tables, 7);
    check(workload, tables);
    RC_ASSERT(workload.samples == 7);
    const auto uses = by_row(workload.tables[0]);
    const auto counts = naive_counts(samples);
    RC_ASSERT(uses.size() == counts.size());
    const auto all = static_cast<double>(samples.size());
    double lookups = 0.0;
    for (const auto& [row, count] : counts) {
        RC_ASSERT(uses.at(row).first == static_cast<double>(count.lookups) / all);
        RC_ASSERT(uses.at(row).second == static_cast<double>(count.samples) / all);
        lookups += static_cast<double>(count.lookups) / all;
    }
    for (std::size_t i = 1; i < workload.tables[0].runs.size(); ++i)  // rows of equal counts are together
        for (std::size_t k = 0; k < i; ++k)
            RC_ASSERT(std::pair(workload.tables[0].runs[i].p, workload.tables[0].runs[i].q) !=
                      std::pair(workload.tables[0].runs[k].p, workload.tables[0].runs[k].q));
    RC_ASSERT(workload.lengths.size() == 2U);
    RC_ASSERT(std::abs(2 * workload.lengths[0].mean() - lookups) < 1e-9);
}

/// Look-ups that were counted for no row are spread over all of them.
TEST(Workloads, SpreadWhatAProfileForgot) {
    const sw::TableAccess table{
        .name = "t",
        .rows = 6,
        .lookups = 20,
        .error = 3,
        .seen = {{.row = 1, .lookups = 8, .samples = 5}, {.row = 4, .lookups = 4, .samples = 4}}};
    const auto uses = by_row(sw::use_of(table, 10));
    ASSERT_EQ(uses.size(), 6U);
    const double more = 8.0 / 6.0;
    EXPECT_EQ(sw::use_of(table, 10).rows, (std::vector<std::int64_t>{1, 4}));  // others need no memory
    EXPECT_EQ(uses.at(1), (std::pair{(8 + more) / 10, (5 + more) / 10}));
    EXPECT_EQ(uses.at(4), (std::pair{(4 + more) / 10, (4 + more) / 10}));
    for (const std::int64_t row : {0, 2, 3, 5})
        EXPECT_EQ(uses.at(row), (std::pair{more / 10, more / 10}));
    // the same where all rows are listed, and no row is in more samples than there are
    const sw::TableAccess two{.name = "t", .rows = 2, .lookups = 14, .error = 4, .seen = {{0, 8, 5}, {1, 2, 2}}};
    EXPECT_EQ(by_row(sw::use_of(two, 5)),
              (std::map<std::int64_t, std::pair<double, double>>{{0, {2.0, 1.0}}, {1, {0.8, 0.8}}}));
    EXPECT_THROW(static_cast<void>(sw::use_of(table, 0)), sw::BadInput);
    EXPECT_TRUE(sw::use_of({.name = "t", .rows = 6}, 0).runs.empty());
}

/// What UsedRows says after so many runs that are passed over.
std::vector<std::int64_t> walked(const sw::TableUse& use, std::size_t passed) {
    sw::UsedRows rows{use};
    std::vector<std::int64_t> all;
    for (std::size_t run = 0; run < use.runs.size(); ++run) {
        if (run < passed)
            rows.skip(use.runs[run].rows);
        else
            for (std::int64_t i = 0; i < use.runs[run].rows; ++i)
                all.push_back(rows.next());
    }
    return all;
}

/// Rows of the last run that are not listed are those that are.
RC_GTEST_PROP(Workloads, WalkOthersAsIfTheyWereListed, ()) {
    std::mt19937_64 random{*rc::gen::arbitrary<std::uint64_t>()};
    const auto rows = *rc::gen::inRange<std::int64_t>(2, 40);
    sw::TableUse listed{.table = "t", .runs = {}, .rows = {}};
    for (std::int64_t row = 0; row < rows; ++row)
        listed.rows.push_back(row);
    std::shuffle(listed.rows.begin(), listed.rows.end(), random);
    std::vector<std::int64_t> starts;
    for (std::int64_t left = rows; left > 0; left -= listed.runs.back().rows) {
        starts.push_back(rows - left);
        listed.runs.push_back({.p = 1.0 / static_cast<double>(starts.size()),
                               .q = 0.5 / static_cast<double>(starts.size()),
                               .rows = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(left))});
    }
    std::sort(listed.rows.begin() + starts.back(), listed.rows.end());
    sw::TableUse others = listed;
    others.rows.resize(static_cast<std::size_t>(starts.back()));
    const auto passed = static_cast<std::size_t>(random() % (listed.runs.size() + 1));
    RC_ASSERT(walked(listed, passed) ==
              (passed == starts.size()
                   ? std::vector<std::int64_t>{}
                   : std::vector<std::int64_t>(listed.rows.begin() + starts[passed], listed.rows.end())));
    RC_ASSERT(walked(others, passed) == walked(listed, passed));
    RC_ASSERT(by_row(others) == by_row(listed));

    const sw::Topology topology{.hosts = 2, .ranks_per_host = 2};
    sw::RowPlan plan{.tiers = {"dp", "row"}, .tables = {sw::all_in_last_tier("t", rows, 2)}};
    plan.tables[0].tiers = {rows / 2, rows - rows / 2};
    sw::RowPlan same = plan;
    expect_touches(plan, std::vector{listed}, 3, topology);
    expect_touches(same, std::vector{others}, 3, topology);
    RC_ASSERT(plan.tables[0].touches == same.tables[0].touches);
    const std::vector<sw::TableConfig> tables{{.name = "t", .rows = rows, .dim = 4}};
    const sw::LayerBlueprint layer =
        sw::draw_layer(topology, tables, {.shardings = {"dp", "row"}, .tiered = true}, {.rows = &plan});
    double lookups = 0.0;
    for (const sw::RowUse& run : listed.runs)
        lookups += run.p * static_cast<double>(run.rows);
    const auto expected = [&](const sw::TableUse& use) {
        const sw::Workload workload{
            .samples = 9, .weighted = false, .tables = {use}, .lengths = {sw::BagLengths::near(lookups)}};
        const sw::ExpectedTraffic moved = layer.expect_cost(workload, nullptr, 1).forward;
        std::vector<double> bytes;
        for (int from = 0; from < 4; ++from)
            for (int to = 0; to < 4; ++to)
                bytes.push_back(moved.at(from, to).payload);
        return bytes;
    };
    RC_ASSERT(expected(others) == expected(listed));
}

/// However few counters: a workload that a layer takes, with all look-ups and within the profile's error.
RC_GTEST_PROP(Workloads, OfBoundedProfilesKeepTheirBounds, ()) {
    const auto rows = *rc::gen::inRange<std::int64_t>(1, 60);
    const std::vector<Sample> samples = any_samples(rows);
    sw::RowCounter counter{*rc::gen::inRange<std::int64_t>(1, 12)};
    for (std::size_t s = 0; s < samples.size(); ++s)
        for (const std::int64_t row : samples[s])
            counter.count(row, static_cast<std::int64_t>(s));
    const sw::TableAccess table{
        .name = "t", .rows = rows, .lookups = counter.lookups(), .error = counter.error(), .seen = counter.seen()};
    const sw::AccessProfile profile{.samples = std::ssize(samples), .tables = {table}};
    validate(profile);
    const std::vector<sw::TableConfig> tables{{.name = "t", .rows = rows, .dim = 4}};
    const sw::Workload workload = sw::workload_of(profile, tables, 7);
    check(workload, tables);
    const auto all = static_cast<double>(samples.size());
    double lookups = 0.0;
    std::map<std::int64_t, double> listed;
    for (const sw::RowAccess& row : table.seen)
        listed[row.row] = static_cast<double>(row.lookups);
    for (const auto& [row, use] : by_row(workload.tables[0])) {
        const double more = all * use.first - listed[row];
        RC_ASSERT(more >= -1e-9 && more <= static_cast<double>(table.error) + 1e-9);
        lookups += use.first;
    }
    RC_ASSERT(std::abs(all * lookups - static_cast<double>(table.lookups)) < 1e-9 * (1 + all * lookups));
    if (table.lookups == 0) return;
    const sw::RowDistribution distribution = sw::distribution_of(table, profile.samples);
    RC_ASSERT(distribution.rows() == rows);
    RC_ASSERT(std::abs(distribution.lookups() - lookups) < 1e-9 * (1 + lookups));
}

TEST(Workloads, OfLawsAreInTheOrderOfFrequency) {
    const std::vector<sw::TableConfig> tables{{.name = "t", .rows = 5, .dim = 4}};
    const std::vector<sw::RowDistribution> laws{sw::RowDistribution{{{.p = 0.5, .rows = 4}, {.p = 1.0, .rows = 1}}}};
    const sw::Workload workload = sw::workload_of(laws, tables, 3);
    check(workload, tables);
    const auto uses = by_row(workload.tables[0]);
    EXPECT_DOUBLE_EQ(uses.at(0).first, 1.0);
    EXPECT_DOUBLE_EQ(uses.at(0).second, 1.0 - std::pow(2.0 / 3.0, 3));  // three ids, a third of them of this row
    EXPECT_DOUBLE_EQ(uses.at(4).first, 0.5);
    EXPECT_DOUBLE_EQ(uses.at(4).second, 1.0 - std::pow(5.0 / 6.0, 3));
    EXPECT_TRUE(workload.lengths[0].all_are(3));
    const std::vector<sw::TableConfig> others{{.name = "t", .rows = 6, .dim = 4}};
    EXPECT_THROW(static_cast<void>(sw::workload_of(laws, others, 3)), sw::BadInput);
    EXPECT_THROW(static_cast<void>(sw::workload_of(std::vector<sw::RowDistribution>{}, tables, 3)), sw::BadInput);
}

/// Without assumptions about ids: of the very samples that were profiled, drawn again one by one.
RC_GTEST_PROP(Workloads, TouchedRowsAreThoseOfSamplesDrawnAgain, ()) {
    const auto rows = *rc::gen::inRange<std::int64_t>(1, 60);
    const std::vector<Sample> samples = any_samples(rows);
    const sw::AccessProfile profile{.samples = std::ssize(samples), .tables = {naive_table("t", rows, samples)}};
    const std::vector<sw::TableConfig> tables{{.name = "t", .rows = rows, .dim = 4}};
    const auto sharding = *rc::gen::element<std::string>("row", "flex", "dp", "table", "col");
    const sw::LayerBlueprint layer =
        sw::draw_layer({.hosts = 2, .ranks_per_host = 3}, tables, {.shardings = {sharding}, .pooling = "none"});
    const auto batch = *rc::gen::inRange<std::int64_t>(0, 20);
    const sw::ExpectedLayerCost cost = layer.expect_cost(sw::workload_of(profile, tables, batch));
    const auto expected = [&](std::int64_t drawn) {
        double touched = 0.0;
        for (const auto& [row, count] : naive_counts(samples))
            touched += 1.0 - std::pow(1.0 - static_cast<double>(count.samples) / static_cast<double>(samples.size()),
                                      static_cast<double>(drawn));
        return touched;
    };
    RC_ASSERT(std::abs(cost.all_touched().rank - expected(batch)) < 1e-9);
    RC_ASSERT(std::abs(cost.all_touched().host - expected(3 * batch)) < 1e-9);
    RC_ASSERT(std::abs(cost.all_touched().world - expected(6 * batch)) < 1e-9);
}

}  // namespace
