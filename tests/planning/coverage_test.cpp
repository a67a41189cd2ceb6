// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/planning/coverage.hpp"

#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/support.hpp"

namespace {

using namespace planning_test;  // NOLINT(google-build-using-namespace)

using Rows = std::vector<std::int64_t>;

const sw::AccessProfile ties{
    .samples = 20,
    .tables = {{.name = "a", .rows = 50, .lookups = 16, .seen = {{1, 2, 2}, {3, 6, 6}, {5, 2, 1}, {9, 6, 4}}},
               {.name = "b", .rows = 50, .lookups = 24, .seen = {{0, 6, 6}, {3, 16, 16}, {4, 2, 2}}}}};

TEST(Coverage, TheHottestRowsComeFirstAndTiesGoByRowNumber) {
    EXPECT_EQ(sw::hottest_rows(ties.tables[0], 3), (Rows{3, 9, 1}));
    EXPECT_EQ(sw::hottest_rows(ties.tables[0], 100), (Rows{3, 9, 1, 5}));
    EXPECT_EQ(sw::hottest_rows(ties.tables[0], 0), Rows{});
    EXPECT_EQ(sw::by_frequency(ties.tables[0], 2), (std::vector<sw::RowAccess>{{3, 6, 6}, {9, 6, 4}}));
    EXPECT_EQ(sw::sorted_frequencies(ties.tables[0], ties.samples), (std::vector<double>{0.3, 0.3, 0.1, 0.1}));
    // across tables: the earlier one first
    EXPECT_EQ(sw::hottest_rows(ties, 5), (std::vector<sw::TableRow>{{1, 3}, {0, 3}, {0, 9}, {1, 0}, {0, 1}}));
    EXPECT_EQ(bad_input([] { static_cast<void>(sw::hottest_rows(ties.tables[0], -1)); }),
              "the -1 hottest rows: give a number that is not negative");
}

TEST(Coverage, IsAShareOfLookUps) {
    EXPECT_EQ(sw::coverage(ties.tables[0], 1), 6.0 / 16);
    EXPECT_EQ(sw::coverage(ties.tables[0], 3), 14.0 / 16);
    EXPECT_EQ(sw::coverage(ties.tables[0], 50), 1.0);
    EXPECT_EQ(sw::coverage(ties, 2), 22.0 / 40);
    EXPECT_EQ(sw::coverage_of(Rows{9, 2, 1}, ties.tables[0]), 8.0 / 16);
    EXPECT_EQ(sw::coverage_of(Rows{3, 4}, ties.tables[1]), 18.0 / 24);
    EXPECT_EQ(sw::coverage_of(std::vector<sw::TableRow>{{0, 1}, {1, 4}, {1, 49}}, ties), 4.0 / 40);
    EXPECT_EQ(sw::coverage(sw::TableAccess{.name = "none", .rows = 5}, 5), 0.0);
    EXPECT_EQ(bad_input([] {
                  static_cast<void>(sw::coverage_of(std::vector<sw::TableRow>{{2, 7}}, ties));
              }),
              "row 7 of table 2: the profile has 2 tables");
}

// Look-ups that a bounded count has lost count among all, so that a coverage is never too high.
TEST(Coverage, OfABoundedCountIsAShareOfAllLookUps) {
    const sw::TableAccess table{.name = "a", .rows = 50, .lookups = 40, .error = 5, .seen = {{3, 10, 10}}};
    EXPECT_EQ(sw::coverage(table, 5), 0.25);
}

RC_GTEST_PROP(Coverage, NoOtherRowsCoverMore, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    std::vector<Sample> samples(50);
    for (Sample& sample : samples)
        for (int i = 0; i != 4; ++i)
            sample.push_back(skewed_row(random, 60));
    const sw::TableAccess table = naive_table("t", 60, samples);
    Rows others(60);
    for (std::size_t i = 0; i != 60; ++i)
        others[i] = static_cast<std::int64_t>(i);
    std::shuffle(others.begin(), others.end(), random);
    const auto count = static_cast<std::int64_t>(random() % 60);
    others.resize(static_cast<std::size_t>(count));
    RC_ASSERT(sw::coverage_of(others, table) <= sw::coverage(table, count));
    double sum = 0;
    for (const double p : sw::sorted_frequencies(table, 50))
        sum += p;
    RC_ASSERT(std::abs(sum - sw::lookups_per_sample(table, 50)) < 1e-12);
}

}  // namespace
