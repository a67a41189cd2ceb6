// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <limits>

#include "shardwise/planning/row_costs.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// The least p above 0 from which on a falling function is at most 0, to the last bit that the function knows; infinity
/// where there is none below 2^20, 0 where it is so from 2^-1000 on.
template <class F>
double where_not_positive(const F& f) {
    double low = 0x1p-1000;
    double high = 0x1p20;
    if (f(high) > 0.0) return std::numeric_limits<double>::infinity();
    if (f(low) <= 0.0) return 0.0;
    while (high > 2.0 * low) {
        const double middle = std::sqrt(low) * std::sqrt(high);
        (f(middle) > 0.0 ? low : high) = middle;
    }
    for (;;) {
        const double middle = low + (high - low) / 2.0;
        if (middle <= low || middle >= high) return high;
        (f(middle) > 0.0 ? low : high) = middle;
    }
}

}  // namespace detail

SHARDWISE_INLINE RowMemory paper_row_memory(const Scaling& scaling) {
    return {.name = "paper", .bytes = [scaling = checked(scaling)](Strategy strategy, double dim, double p) {
                return cost_of(strategy, scaling, 1.0, dim, p).bytes();
            }};
}

SHARDWISE_INLINE std::optional<double> row_seconds(const Scaling& scaling, Strategy strategy, double dim, double p) {
    return cost_of(strategy, scaling, 1.0, dim, p).seconds();
}

SHARDWISE_INLINE bool knows_seconds(const Scaling& scaling, bool flex) {
    const auto known = [&](Strategy strategy) { return row_seconds(scaling, strategy, 1.0, 0.0).has_value(); };
    return known(Strategy::dp) && known(Strategy::row) && (!flex || known(Strategy::flex));
}

SHARDWISE_INLINE NeutralPoints neutral_points(const Scaling& scaling, const RowMemory& memory, double dim) {
    const auto in_memory = [&](Strategy strategy, Strategy other) {
        return detail::where_not_positive(
            [&](double p) { return memory.bytes(strategy, dim, p) - memory.bytes(other, dim, p); });
    };
    const auto in_seconds = [&](Strategy strategy, Strategy other) -> std::optional<double> {
        if (!row_seconds(scaling, strategy, dim, 0.0) || !row_seconds(scaling, other, dim, 0.0)) return std::nullopt;
        return detail::where_not_positive(
            [&](double p) { return *row_seconds(scaling, strategy, dim, p) - *row_seconds(scaling, other, dim, p); });
    };
    return {.memory_dp_row = in_memory(Strategy::dp, Strategy::row),
            .memory_dp_flex = in_memory(Strategy::dp, Strategy::flex),
            .memory_flex_row = in_memory(Strategy::flex, Strategy::row),
            .communication_dp_row = in_seconds(Strategy::dp, Strategy::row),
            .communication_flex_row = in_seconds(Strategy::flex, Strategy::row),
            .communication_dp_flex = in_seconds(Strategy::dp, Strategy::flex)};
}

}  // namespace shardwise::inline SHARDWISE_ABI
