// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "shardwise/core/error.hpp"
#include "shardwise/core/split_mix.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/workload.hpp"
#include "shardwise/planning/access_profile.hpp"
#include "shardwise/planning/cache_replay.hpp"
#include "shardwise/planning/coverage.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

using Trace = std::span<const std::int64_t>;

SHARDWISE_INLINE void check_trace(Trace trace) {
    const auto negative = std::find_if(trace.begin(), trace.end(), [](std::int64_t row) { return row < 0; });
    if (negative != trace.end())
        throw BadInput{concat({"look-up ", negative - trace.begin(), " of a trace: ", *negative, " is no row"})};
}

/// How often the rows of a trace are looked up, each look-up a sample.
SHARDWISE_INLINE TableAccess access_of(Trace trace) {
    std::vector<std::int64_t> rows{trace.begin(), trace.end()};
    std::sort(rows.begin(), rows.end());
    TableAccess table{.name = "trace", .rows = rows.empty() ? 0 : rows.back() + 1, .lookups = std::ssize(rows)};
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i == 0 || rows[i] != rows[i - 1]) table.seen.push_back({.row = rows[i]});
        ++table.seen.back().lookups;
        ++table.seen.back().samples;
    }
    return table;
}

/// The same look-ups in an order that hashes of their places say.
SHARDWISE_INLINE std::vector<std::int64_t> in_random_order(Trace trace, std::uint64_t seed) {
    std::vector<std::pair<std::uint64_t, std::int64_t>> keyed;
    keyed.reserve(trace.size());
    for (const std::uint64_t key = split_mix(seed); const std::int64_t row : trace)
        keyed.emplace_back(split_mix(key + split_mix_step * keyed.size()), row);
    std::sort(keyed.begin(), keyed.end());
    std::vector<std::int64_t> rows;
    rows.reserve(keyed.size());
    for (const auto& [key, row] : keyed)
        rows.push_back(row);
    return rows;
}

/// (row count): how many look-ups are of a row behind whose last look-up so many other rows have been looked up; those
/// of rows that were not looked up before are not among them. A cache of the rows that were looked up last hits just
/// those with fewer other rows than it has room for.
SHARDWISE_INLINE std::vector<std::int64_t> reuse_distances(Trace trace) {
    const std::size_t count = trace.size();
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return trace[a] < trace[b]; });
    std::vector<std::size_t> before(count, count);  // the row's look-up before this one
    for (std::size_t i = 1; i < count; ++i)
        if (trace[order[i]] == trace[order[i - 1]]) before[order[i]] = order[i - 1];
    // Of each row the last look-up so far is marked; a Fenwick tree counts marks.
    std::vector<std::int64_t> marks(count + 1);
    const auto mark = [&](std::size_t place, std::int64_t by) {
        for (std::size_t at = place + 1; at <= count; at += at & -at)
            marks[at] += by;
    };
    const auto marked_up_to = [&](std::size_t place) {
        std::int64_t sum = 0;
        for (std::size_t at = place + 1; at != 0; at -= at & -at)
            sum += marks[at];
        return sum;
    };
    std::vector<std::int64_t> distances;
    std::int64_t rows = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (before[i] == count) {
            ++rows;
            distances.push_back(0);
        } else {
            ++distances[static_cast<std::size_t>(rows - marked_up_to(before[i]))];
            mark(before[i], -1);
        }
        mark(i, 1);
    }
    return distances;
}

SHARDWISE_INLINE double second_half_hits(Trace trace, std::int64_t size) {
    const std::size_t half = trace.size() / 2;
    return coverage_of(hottest_rows(access_of(trace.first(half)), size), access_of(trace.subspan(half)));
}

SHARDWISE_INLINE double mean_distinct(Trace trace, std::int64_t window) {
    const auto windows = std::ssize(trace) / window;
    double sum = 0.0;
    for (std::int64_t at = 0; at < windows; ++at)
        sum += static_cast<double>(
            access_of(trace.subspan(static_cast<std::size_t>(at * window), static_cast<std::size_t>(window)))
                .seen.size());
    return sum / static_cast<double>(windows);
}

}  // namespace detail

SHARDWISE_INLINE std::vector<CacheHits> replay_caches(std::span<const std::int64_t> trace,
                                                      std::span<const std::int64_t> sizes, std::uint64_t seed) {
    detail::check_trace(trace);
    if (trace.size() < 2) throw BadInput{concat({"a trace of ", trace.size(), " look-ups: give at least 2"})};
    if (sizes.empty()) throw BadInput{"no size of a cache: give at least one"};
    const std::vector<std::int64_t> shuffled = detail::in_random_order(trace, seed);
    const TableAccess all = detail::access_of(trace);
    const std::vector<std::int64_t> distances = detail::reuse_distances(trace);
    std::vector<CacheHits> hits;
    for (const std::int64_t size : sizes) {
        if (size < 1) throw BadInput{concat({"a cache of ", size, " rows: give at least 1"})};
        const auto within = distances.begin() + std::min<std::int64_t>(size, std::ssize(distances));
        const auto found = std::accumulate(distances.begin(), within, std::int64_t{0});
        hits.push_back({.size = size,
                        .in_sample = coverage(all, size),
                        .second_half = detail::second_half_hits(trace, size),
                        .shuffled = detail::second_half_hits(shuffled, size),
                        .lru = static_cast<double>(found) / static_cast<double>(trace.size())});
    }
    return hits;
}

SHARDWISE_INLINE WindowRows distinct_in_windows(std::span<const std::int64_t> trace, std::int64_t window,
                                                std::uint64_t seed) {
    detail::check_trace(trace);
    if (window < 1 || window > std::ssize(trace))
        throw BadInput{concat({"windows of ", window, " look-ups: give 1 to ", trace.size(), ", which the trace has"})};
    double expected = 0.0;
    for (const RowAccess& row : detail::access_of(trace).seen)
        expected += chance_of(static_cast<double>(row.lookups) / static_cast<double>(trace.size()),
                              static_cast<double>(window));
    return {.windows = std::ssize(trace) / window,
            .expected = expected,
            .in_order = detail::mean_distinct(trace, window),
            .shuffled = detail::mean_distinct(detail::in_random_order(trace, seed), window)};
}

}  // namespace shardwise::inline SHARDWISE_ABI
