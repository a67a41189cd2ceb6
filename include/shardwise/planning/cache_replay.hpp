// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shardwise/core/config.hpp"

/// \file
/// What caches would have done on look-ups that were recorded: whether the rows that were hot stay hot.

namespace shardwise::inline SHARDWISE_ABI {

/// Shares of the look-ups of a trace that a cache of so many rows has, 0 to 1.
struct CacheHits {
    std::int64_t size = 0;     ///< rows
    double in_sample = 0.0;    ///< the hottest rows of the whole trace, over the whole trace
    double second_half = 0.0;  ///< the hottest rows of the first half, over the second half
    double shuffled = 0.0;  ///< the same of the trace in a random order: what second_half is where time plays no part
    double lru = 0.0;       ///< the rows that were looked up last, over the whole trace, from an empty cache

    /// Whether the hottest rows of the past are those of the future, as far as so many look-ups can tell: that they hit
    /// at least half as often as in a random order.
    [[nodiscard]] bool predicts() const noexcept { return second_half >= 0.5 * shuffled; }
};

/// Replays a trace against static caches, which hold the hottest rows by count (of equal counts those of smaller
/// numbers), and against caches that evict the row that was used least recently.
/// Not collective. Cost: sorts, and log(look-ups) a look-up for caches of all sizes together. Memory: 40 bytes a
/// look-up.
/// \param trace  (look-up): rows, 0 or more, in the order of time \param sizes  of the caches \param seed  of the order
/// \throws BadInput for fewer than two look-ups, a negative row, no size, and one below 1
[[nodiscard]] std::vector<CacheHits> replay_caches(std::span<const std::int64_t> trace,
                                                   std::span<const std::int64_t> sizes, std::uint64_t seed = 0);

/// Distinct rows of windows of a trace, against what independent look-ups of the same frequencies would have.
struct WindowRows {
    std::int64_t windows = 0;  ///< whole ones
    double expected = 0.0;     ///< U(b) of the trace's own frequencies
    double in_order = 0.0;     ///< mean over the windows
    double shuffled = 0.0;     ///< the same of the trace in a random order
};

/// How many rows windows of a trace have, each counted once. Not collective.
/// \param window  b, look-ups; those behind the last whole window are left out
/// \throws BadInput for a window below 1 or longer than the trace, and a negative row
[[nodiscard]] WindowRows distinct_in_windows(std::span<const std::int64_t> trace, std::int64_t window,
                                             std::uint64_t seed = 0);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/cache_replay.ipp"
#endif
