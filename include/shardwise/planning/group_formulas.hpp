// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>

#include "shardwise/core/config.hpp"

/// \file
/// The formulas of two-dimensional sparse parallelism: what M replica groups of T ranks cost, and what they do to
/// moments. What a layer really moves and holds, its blueprint says; see group_choice.hpp.

namespace shardwise::inline SHARDWISE_ABI {

/// Bytes that tables take on a rank beyond those of one group: S (M - 1) / T (section 5).
/// \param table_bytes  S: of all tables, once
[[nodiscard]] constexpr double replication_overhead(double table_bytes, int groups, int ranks) noexcept {
    return table_bytes * (groups - 1) / ranks;
}

/// Seconds of a ring all-reduce that makes the copies of all rows equal: 2 S (M - 1) / (T B) (formula (1)).
/// \param table_bytes  S: of all that is synced, moments too, once
/// \param bandwidth    B: bytes a second that a rank sends
[[nodiscard]] constexpr double sync_seconds(double table_bytes, int groups, int ranks, double bandwidth) noexcept {
    return 2 * replication_overhead(table_bytes, groups, ranks) / bandwidth;
}

/// A training step, by its parts, one after the other; seconds.
struct StepSeconds {
    double compute = 0;    ///< what groups do not change: dense layers and their sums
    double lookup = 0;     ///< e: look-ups and updates of rows, where all ranks have as many
    double imbalance = 1;  ///< what the rank with the most rows looks up, over the mean: all wait for it
    double exchange = 0;   ///< ids, vectors and gradients
    double sync = 0;       ///< of copies

    [[nodiscard]] constexpr double total() const noexcept { return compute + lookup * imbalance + exchange + sync; }
};

/// How many times as fast a second moment grows under M groups as under one, where a gradient is a mean over the
/// samples of a group: c* = (1 + r) / (1 + r / M), from 1 to M. (From Proposition 1)
/// \param noise  r: the variance of a group's gradient over its squared mean
[[nodiscard]] constexpr double moment_growth(double noise, int groups) noexcept {
    return (1 + noise) / (1 + noise / groups);
}

/// The learning rate that rows have, over that under one group, where moments are divided by `scale`: sqrt(c / c*).
[[nodiscard]] inline double effective_rate(double scale, double noise, int groups) {
    return std::sqrt(scale / moment_growth(noise, groups));
}

}  // namespace shardwise::inline SHARDWISE_ABI
