// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/flexshard.hpp"
#include "shardwise/planning/replication_curve.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE std::vector<CurvePoint> replication_curve(const MergedRows& rows, const Scaling& scaling,
                                                           const RowMemory& memory, std::span<const std::int64_t> at) {
    if (!std::is_sorted(at.begin(), at.end()) || (!at.empty() && (at.front() < 0 || at.back() > rows.rows())))
        throw BadInput{concat({"a curve of ", at.front(), " to ", at.back(), " replicated rows of ", rows.rows(),
                               ": give rising numbers from 0 to all rows"})};
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
    if (std::any_of(rows.runs().begin(), rows.runs().end(), [](const auto& run) { return !run.replicable; })) {
        std::vector<RowTable> tables{rows.tables().begin(), rows.tables().end()};
        for (RowTable& table : tables)
            table.least_p = -1.0;
        return curve_points(MergedRows{std::move(tables), rows.chunk()}, scaling, memory);
    }
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
