// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/merged_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/setting.hpp"

namespace shardwise_test {
namespace {

/// Rows of a table that may be replicated, the first of its order.
std::int64_t replicable_rows(const sw::RowTable& table) {
    const std::vector<double> p = rows_of(table.distribution);
    return std::count_if(p.begin(), p.end(), [&](double one) { return one > table.least_p; });
}

RC_GTEST_PROP(merged_rows, are_the_means_of_chunks_by_falling_p, ()) {
    const auto chunk = *rc::gen::inRange<std::int64_t>(1, 40);
    std::vector<sw::RowTable> tables;
    for (int t = *rc::gen::inRange(1, 4); t > 0; --t)
        tables.push_back(
            {.name = "t", .distribution = any_distribution(), .dim = t, .least_p = *rc::gen::inRange(-1, 20) / 8192.0});
    const sw::MergedRows merged{tables, chunk};

    std::vector<std::vector<double>> found(tables.size());  // (table, row): p
    double last = 1e9;
    std::int64_t rows = 0;
    double lookups = 0;
    for (const sw::MergedRows::Run& run : merged.runs()) {
        RC_ASSERT(run.p <= last * (1 + 1e-15));
        last = run.p;
        const auto t = static_cast<std::size_t>(run.table);
        RC_ASSERT(merged.dim(run) == tables[t].dim);
        found[t].insert(found[t].end(), static_cast<std::size_t>(run.rows), run.p);
        // no chunk is on both sides of that
        const std::int64_t hot = replicable_rows(tables[t]);
        RC_ASSERT(run.replicable == (std::ssize(found[t]) <= hot));
        const bool ends = std::ssize(found[t]) == tables[t].distribution.rows() || std::ssize(found[t]) == hot;
        RC_ASSERT(run.rows % chunk == 0 || (ends && run.rows < chunk));
        rows += run.rows;
        lookups += run.p * static_cast<double>(run.rows);
    }
    RC_ASSERT(rows == merged.rows());
    RC_ASSERT(std::abs(lookups - merged.lookups()) <= 1e-12 * lookups);  // whose products may be fused
    for (std::size_t t = 0; t < tables.size(); ++t) {
        const std::vector<double> p = rows_of(tables[t].distribution);
        RC_ASSERT(found[t].size() == p.size());
        const std::int64_t hot = replicable_rows(tables[t]);
        for (std::int64_t i = 0, next = 0; i < std::ssize(p); i = next) {
            next = std::min(i + chunk, i < hot ? hot : std::ssize(p));
            const auto first = p.begin() + i;
            const auto end = p.begin() + next;
            const double mean = std::accumulate(first, end, 0.0) / static_cast<double>(end - first);
            for (std::ptrdiff_t j = 0; j < end - first; ++j)
                RC_ASSERT(std::abs(found[t][static_cast<std::size_t>(i + j)] - mean) <= 1e-14 * mean);
        }
    }
}

RC_GTEST_PROP(merged_rows, of_one_p_have_it_to_the_bit, ()) {
    const double p = *rc::gen::inRange(1, 100000) / 77777.0;
    const std::int64_t rows = *rc::gen::inRange<std::int64_t>(1, 100);
    const bool replicable = *rc::gen::arbitrary<bool>();
    const sw::RowTable table{.name = "t",
                             .distribution = sw::RowDistribution{{{p, rows}}},
                             .dim = 1,
                             .least_p = replicable ? std::nextafter(p, 0.0) : p};
    const sw::MergedRows merged{{table}, *rc::gen::inRange<std::int64_t>(1, 40)};
    for (const sw::MergedRows::Run& run : merged.runs()) {
        RC_ASSERT(run.p == p);
        RC_ASSERT(run.replicable == replicable);
    }
}

TEST(merged_rows, know_which_rows_a_profile_lists) {
    const sw::TableAccess exact{.name = "t", .rows = 9, .lookups = 6, .seen = {{2, 1, 1}, {3, 3, 2}, {7, 2, 2}}};
    EXPECT_EQ(sw::row_table(exact, 4, 8).least_p, 0.0);
    const sw::TableAccess bounded{.name = "t", .rows = 9, .lookups = 24, .error = 2, .seen = exact.seen};
    const sw::RowTable table = sw::row_table(bounded, 4, 8);
    EXPECT_EQ(table.least_p, 0.5);  // 18 of 24 look-ups are of no row, two for each
    EXPECT_EQ(rows_of(table.distribution), (std::vector<double>{1.25, 1.0, 0.75, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}));
    const sw::MergedRows merged{{table}, 4};
    EXPECT_EQ(merged.runs().size(), 3U);  // chunks of 3, 4 and 2 rows
    EXPECT_EQ(merged.runs()[0].rows, 3);
    EXPECT_TRUE(merged.runs()[0].replicable);
    EXPECT_FALSE(merged.runs()[1].replicable);
    EXPECT_DOUBLE_EQ(merged.lookups(), 6.0);
    const sw::TableAccess all{.name = "t", .rows = 2, .lookups = 2, .seen = {{0, 1, 1}, {1, 1, 1}}};
    EXPECT_LT(sw::row_table(all, 2, 8).least_p, 0.0);
}

TEST(merged_rows, refuse_what_makes_no_sense) {
    const sw::RowDistribution one{{{0.5, 3}}};
    EXPECT_EQ(bad_input([] { return sw::MergedRows({}, 1); }), "no table to plan for: give at least one");
    EXPECT_EQ(bad_input([&] { return sw::MergedRows({{"a", one, 4}}, 0); }), "chunks of 0 rows: give at least 1");
    EXPECT_EQ(bad_input([&] {
                  return sw::MergedRows({{"a", one, 0}}, 1);
              }),
              "table 'a' has dimension 0: give at least 1");
    EXPECT_EQ(bad_input([&] {
                  return sw::MergedRows({{"a", sw::RowDistribution{{{0.0, 3}}}, 4}}, 1);
              }),
              "no row of any table is looked up: give a law, or a profile of samples, that has look-ups");
    const sw::RowDistribution large{{{0.5, INT64_MAX}}};
    EXPECT_NE(bad_input([&] {
                  return sw::MergedRows({{"a", large, 1}, {"b", one, 1}}, 1);
              }).find("more than"),
              std::string::npos);
}

}  // namespace
}  // namespace shardwise_test
