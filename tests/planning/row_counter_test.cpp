// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/planning/row_counter.hpp"

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/support.hpp"

namespace {

using namespace planning_test;  // NOLINT(google-build-using-namespace)

std::vector<Sample> random_samples(std::mt19937_64& random) {
    const std::int64_t rows = 1 + static_cast<std::int64_t>(random() % 200);
    const int form = static_cast<int>(random() % 3);
    std::vector<Sample> samples(random() % 300);
    std::int64_t next = 0;
    for (Sample& sample : samples)
        for (std::uint64_t left = random() % 6; left != 0; --left) {
            const std::int64_t drawn = skewed_row(random, rows);
            // skewed; all different for long, the worst there is; one hot row among those
            sample.push_back(form == 0 ? drawn : form == 2 && drawn < rows / 3 ? 0 : next++ % (3 * rows));
        }
    return samples;
}

sw::TableAccess counted(const std::vector<Sample>& samples, std::int64_t counters) {
    sw::RowCounter counter{counters};
    std::int64_t number = 0;
    for (const Sample& sample : samples) {
        for (const std::int64_t row : sample)
            counter.count(row, number);
        ++number;
    }
    return {
        .name = "t", .rows = 1 << 20, .lookups = counter.lookups(), .error = counter.error(), .seen = counter.seen()};
}

RC_GTEST_PROP(RowCounter, WithoutALimitItIsExact, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    const std::vector<Sample> samples = random_samples(random);
    RC_ASSERT(counted(samples, 0) == naive_table("t", 1 << 20, samples));
}

RC_GTEST_PROP(RowCounter, WithALimitItKeepsItsBound, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    const std::vector<Sample> samples = random_samples(random);
    const auto counts = naive_counts(samples);
    const auto counters = 1 + static_cast<std::int64_t>(random() % 60);
    const sw::TableAccess table = counted(samples, counters);
    RC_ASSERT(broken_bound(table, counts) == "");
    RC_ASSERT(std::ssize(table.seen) <= counters);
    RC_ASSERT(3 * table.error * counters <= 4 * table.lookups);
    // and validate() takes it
    sw::validate({.samples = std::ssize(samples), .tables = {table}});
    if (std::ssize(counts) <= counters) RC_ASSERT(table == naive_table("t", 1 << 20, samples));
    for (const auto& [row, exact] : counts) {
        const auto is_row = [number = row](const sw::RowAccess& one) { return one.row == number; };
        if (exact.lookups > table.error) RC_ASSERT(std::any_of(table.seen.begin(), table.seen.end(), is_row));
    }
}

// A power law in a tenth of the memory: the hottest rows have exact counts, and the error is far below the promise.
TEST(RowCounter, HotRowsOfASkewedStreamAreCountedWell) {
    std::mt19937_64 random{1};
    std::vector<Sample> samples;
    for (int i = 0; i != 200'000; ++i)
        samples.push_back({skewed_row(random, 100'000)});
    const auto counts = naive_counts(samples);
    const std::int64_t counters = std::ssize(counts) / 10;
    const sw::TableAccess table = counted(samples, counters);
    EXPECT_GT(table.error, 0);
    EXPECT_LT(table.error * counters, table.lookups);
    for (const sw::RowAccess& row : table.seen)
        if (row.row < 20) {
            EXPECT_EQ(row.lookups, counts.at(row.row).lookups) << row.row;
        }
}

TEST(RowCounter, RefusesNumbersOfCountersThatMakeNoSense) {
    EXPECT_EQ(bad_input([] { sw::RowCounter{-1}; }),
              "-1 counters of rows: give 1 to 2147483648, or 0 to count every row");
    EXPECT_EQ(bad_input([] { sw::RowCounter{(std::int64_t{1} << 31) + 1}; }),
              "2147483649 counters of rows: give 1 to 2147483648, or 0 to count every row");
}

}  // namespace
