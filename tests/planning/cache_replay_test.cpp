// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/cache_replay.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/setting.hpp"

namespace shardwise_test {
namespace {

using Trace = std::vector<std::int64_t>;

/// Rows of a part, the most often looked up first, then by number.
Trace hottest(const Trace& part, std::int64_t size) {
    std::map<std::int64_t, std::int64_t> counts;
    for (const std::int64_t row : part)
        ++counts[row];
    Trace rows;
    for (const auto& [row, count] : counts)
        rows.push_back(row);
    std::stable_sort(rows.begin(), rows.end(), [&](auto a, auto b) { return counts[a] > counts[b]; });
    rows.resize(std::min(rows.size(), static_cast<std::size_t>(size)));
    return rows;
}

double share_of(const Trace& rows, const Trace& trace) {
    const auto hit = [&](std::int64_t row) { return std::find(rows.begin(), rows.end(), row) != rows.end(); };
    return static_cast<double>(std::count_if(trace.begin(), trace.end(), hit)) / static_cast<double>(trace.size());
}

double lru(const Trace& trace, std::int64_t size) {
    std::deque<std::int64_t> cache;  // the last one first
    double hits = 0;
    for (const std::int64_t row : trace) {
        const auto found = std::find(cache.begin(), cache.end(), row);
        if (found != cache.end()) {
            ++hits;
            cache.erase(found);
        }
        cache.push_front(row);
        if (std::ssize(cache) > size) cache.pop_back();
    }
    return hits / static_cast<double>(trace.size());
}

RC_GTEST_PROP(cache_replay, hits_what_a_cache_would, ()) {
    const int rows = *rc::gen::inRange(1, 12);
    const auto drawn = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, rows));
    RC_PRE(drawn.size() >= 2);
    const Trace trace{drawn.begin(), drawn.end()};
    const auto half = trace.begin() + std::ssize(trace) / 2;
    const Trace before{trace.begin(), half};
    const Trace after{half, trace.end()};
    const Trace sizes{1, 2, 3, rows, 20};
    const std::vector<sw::CacheHits> found = sw::replay_caches(trace, sizes);
    RC_ASSERT(found.size() == sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        RC_ASSERT(found[i].size == sizes[i]);
        RC_ASSERT(found[i].in_sample == share_of(hottest(trace, sizes[i]), trace));
        RC_ASSERT(found[i].second_half == share_of(hottest(before, sizes[i]), after));
        RC_ASSERT(std::abs(found[i].lru - lru(trace, sizes[i])) < 1e-12);
    }
}

RC_GTEST_PROP(cache_replay, windows_have_as_many_rows_as_are_counted, ()) {
    const auto drawn = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 9)));
    const Trace trace{drawn.begin(), drawn.end()};
    const auto window = *rc::gen::inRange<std::int64_t>(1, std::ssize(trace) + 1);
    const sw::WindowRows found = sw::distinct_in_windows(trace, window);
    RC_ASSERT(found.windows == std::ssize(trace) / window);
    double distinct = 0;
    for (std::int64_t at = 0; at < found.windows; ++at)
        distinct +=
            static_cast<double>(std::set(trace.begin() + at * window, trace.begin() + (at + 1) * window).size());
    RC_ASSERT(std::abs(found.in_order - distinct / static_cast<double>(found.windows)) < 1e-9);
    double expected = 0;
    for (std::int64_t row = 0; row < 9; ++row) {
        const double p = share_of({row}, trace);
        expected += 1 - std::pow(1 - p, static_cast<double>(window));
    }
    RC_ASSERT(std::abs(found.expected - expected) < 1e-9);
}

TEST(cache_replay, tells_drift_from_chance) {
    // Rows 0 to 99 in the first half, 100 to 199 in the second, 50 times each.
    Trace drifts;
    for (int half = 0; half < 2; ++half)
        for (int i = 0; i < 5000; ++i)
            drifts.push_back(100 * half + i % 100);
    const sw::CacheHits of_drift = sw::replay_caches(drifts, Trace{100}).front();
    EXPECT_EQ(of_drift.in_sample, 0.5);
    EXPECT_EQ(of_drift.second_half, 0.0);
    EXPECT_NEAR(of_drift.shuffled, 0.44, 0.03);  // of each row, what is in front is not behind
    EXPECT_EQ(of_drift.lru, 1 - 200.0 / 10000);
    EXPECT_FALSE(of_drift.predicts());
    // The same rows all along.
    Trace stays;
    for (int i = 0; i < 10000; ++i)
        stays.push_back(i % 7 == 0 ? i % 200 : i % 20);
    EXPECT_TRUE(sw::replay_caches(stays, Trace{20}).front().predicts());
    // In order each window has its own rows; shuffled they have those of independent look-ups.
    const sw::WindowRows windows = sw::distinct_in_windows(drifts, 100);
    EXPECT_EQ(windows.in_order, 100);
    EXPECT_NEAR(windows.expected, 200 * (1 - std::pow(1 - 1.0 / 200, 100)), 1e-9);
    EXPECT_NEAR(windows.shuffled, windows.expected, 2);
    // Another seed, another order.
    EXPECT_NE(sw::distinct_in_windows(drifts, 100, 1).shuffled, windows.shuffled);
}

TEST(cache_replay, bad_input) {
    const Trace trace{3, 1, 3};
    EXPECT_EQ(bad_input([&] { return sw::replay_caches(Trace{3}, Trace{1}); }),
              "a trace of 1 look-ups: give at least 2");
    EXPECT_EQ(bad_input([&] { return sw::replay_caches(trace, Trace{}); }), "no size of a cache: give at least one");
    EXPECT_EQ(bad_input([&] { return sw::replay_caches(trace, Trace{2, 0}); }), "a cache of 0 rows: give at least 1");
    EXPECT_EQ(bad_input([&] {
                  return sw::replay_caches(Trace{3, -1}, Trace{1});
              }),
              "look-up 1 of a trace: -1 is no row");
    EXPECT_EQ(bad_input([&] { return sw::distinct_in_windows(trace, 4); }),
              "windows of 4 look-ups: give 1 to 3, which the trace has");
    EXPECT_EQ(bad_input([&] { return sw::distinct_in_windows(trace, 0); }),
              "windows of 0 look-ups: give 1 to 3, which the trace has");
}

}  // namespace
}  // namespace shardwise_test
