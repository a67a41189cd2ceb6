// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include "shardwise/planning/plan_seconds.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE PlanSeconds plan_seconds(const MergedRows& rows, const Scaling& scaling, const FlexShardPlan& plan) {
    PlanSeconds sum{0.0, 0.0, 0.0, 0.0, 0.0};
    const auto add = [](std::optional<double>& to, double times, const std::optional<double>& seconds) {
        if (to) to = seconds ? std::optional{*to + times * *seconds} : std::nullopt;
    };
    for (std::size_t t = 0; t < plan.tables.size(); ++t) {
        const auto cost = [&](Strategy strategy, const TierRows& of) {
            if (of.rows == 0) return StrategyCost{};  // no row, no time, whatever the bandwidth
            return cost_of(strategy, scaling, static_cast<double>(of.rows), rows.tables()[t].dim, of.lookups);
        };
        const TableTiers& tiers = plan.tables[t];
        const RowDistribution& all = rows.tables()[t].distribution;
        const StrategyCost flex = cost(Strategy::flex, tiers.flex);
        add(sum.row_only, 2.0, cost(Strategy::row, {all.rows(), all.lookups()}).dynamic_seconds);
        add(sum.all_to_all_global, 2.0, cost(Strategy::row, tiers.row).dynamic_seconds);
        add(sum.all_to_all_intra, 2.0, flex.dynamic_seconds);
        add(sum.all_reduce_global, 1.0, cost(Strategy::dp, tiers.dp).static_seconds);
        add(sum.all_reduce_cross, 1.0, flex.static_seconds);
    }
    return sum;
}

SHARDWISE_INLINE std::optional<double> PlanSeconds::speedup(bool cross_hidden) const {
    if (!row_only || !all_to_all_global || !all_reduce_global || (!cross_hidden && !all_reduce_cross))
        return std::nullopt;
    const double sum = *all_to_all_global + *all_reduce_global + (cross_hidden ? 0.0 : *all_reduce_cross);
    return sum > 0.0 ? std::optional{*row_only / sum} : std::nullopt;
}

}  // namespace shardwise::inline SHARDWISE_ABI
