// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/data/row_sampler.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/data/history_generator.hpp"
#include "shardwise/data/keyed_random.hpp"
#include "shardwise/planning/row_law.hpp"

namespace {

namespace sw = shardwise;
static_assert(sw::RowLaw<sw::RowSampler>);

TEST(RowSampler, DrawsEachRowInProportionToItsP) {
    // Rows 0, 1 to 3, 4 to 13, and one that is never looked up.
    const sw::RowSampler sampler{sw::RowDistribution{{{0.02, 10}, {0.5, 1}, {0.1, 3}, {0.0, 1}}}};
    ASSERT_EQ(sampler.rows(), 15);
    constexpr int draws = 200000;
    std::vector<int> found(15);
    sw::KeyedRandom random{1, 2, 3};
    for (int i = 0; i < draws; ++i)
        ++found.at(static_cast<std::size_t>(sampler(random)));
    for (std::size_t row = 0; row < found.size(); ++row) {
        const double p = row == 0 ? 0.5 : row < 4 ? 0.1 : row < 14 ? 0.02 : 0.0;
        EXPECT_NEAR(found[row], draws * p, 5 * std::sqrt(draws * p)) << row;
    }
}

/// Gives the largest number below 1, after one that chooses a column of the alias table.
struct Largest {
    int calls = 0;
    double uniform() { return ++calls == 1 ? 0.0 : std::nextafter(1.0, 0.0); }
};

TEST(RowSampler, StaysInTheRun) {
    constexpr std::int64_t rows = (std::int64_t{1} << 53) + 1;  // no double is as large
    const sw::RowSampler sampler{sw::RowDistribution{{{1.0, rows}}}};
    Largest largest;
    EXPECT_LT(sampler(largest), rows);
}

TEST(RowSampler, FollowsALawOfManyRows) {
    const sw::RowSampler sampler{sw::row_law("zipf_mandelbrot:30000:1.1:10:1")};
    EXPECT_EQ(sampler.rows(), 30000);
    double all = 0;
    double hot = 0;
    for (int i = 1; i <= 30000; ++i) {
        const double p = std::pow(i + 10, -1.1);
        all += p;
        if (i <= 300) hot += p;
    }
    sw::KeyedRandom random{4, 5, 6};
    int found = 0;
    for (int i = 0; i < 100000; ++i)
        found += sampler(random) < 300 ? 1 : 0;
    EXPECT_NEAR(found / 1e5, hot / all, 0.008);
}

}  // namespace
