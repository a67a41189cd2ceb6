// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>

#include "shardwise/planning/flexshard.hpp"
#include "shardwise/planning/replication_curve.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE std::vector<CurvePoint> replication_curve(const MergedRows& rows, const Scaling& scaling,
                                                           const RowMemory& memory, std::span<const std::int64_t> at) {
    const bool seconds = knows_seconds(scaling, false);
    std::vector<CurvePoint> curve;
    CurvePoint here;
    if (seconds) here.net_seconds = 0.0;
    const auto plus = [&](const MergedRows::Run& run, std::int64_t count) {
        const double dim = rows.dim(run);
        const auto n = static_cast<double>(count);
        const auto more = [&](const auto& cost) { return n * (cost(Strategy::dp) - cost(Strategy::row)); };
        CurvePoint next = here;
        next.rows += count;
        next.lookups += n * run.p;
        next.net_bytes += more([&](Strategy strategy) { return memory.bytes(strategy, dim, run.p); });
        if (seconds)
            *next.net_seconds += more([&](Strategy strategy) { return *row_seconds(scaling, strategy, dim, run.p); });
        return next;
    };
    for (const MergedRows::Run& run : rows.runs()) {
        while (curve.size() < at.size() && at[curve.size()] <= here.rows + run.rows)
            curve.push_back(plus(run, at[curve.size()] - here.rows));
        if (curve.size() == at.size()) break;
        here = plus(run, run.rows);
    }
    return curve;
}

SHARDWISE_INLINE CurvePoints curve_points(const MergedRows& rows, const Scaling& scaling, const RowMemory& memory) {
    Scaling memory_alone = checked(scaling);
    memory_alone.bandwidths = {};
    // How many rows are DP at a point, in two tiers; 0 where it does not exist.
    const auto replicated = [&](FlexShardGoal goal, const Scaling& of) {
        return plan_flexshard(rows, of, memory, {.flex = false, .goal = goal}).total().dp.rows;
    };
    const std::int64_t a = replicated(FlexShardGoal::memory, memory_alone);
    const std::int64_t b = a == 0 ? 0 : replicated(FlexShardGoal::neutral, memory_alone);
    const std::int64_t c = knows_seconds(scaling, false) ? replicated(FlexShardGoal::communication, scaling) : 0;
    const auto point = [&](std::int64_t count) {
        return replication_curve(rows, scaling, memory, std::array{count}).front();
    };
    CurvePoints points;
    points.d = point(rows.rows());
    if (a != 0) points.a = point(a);
    if (c != 0) points.c = point(c);
    if (b != 0 && (b != rows.rows() || points.d.net_bytes == 0.0)) points.b = point(b);
    return points;
}

}  // namespace shardwise::inline SHARDWISE_ABI
