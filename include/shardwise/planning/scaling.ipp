// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/scaling.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE const char* name_of(Strategy strategy) {
    switch (strategy) {
        case Strategy::dp:
            return "dp";
        case Strategy::flex:
            return "flex";
        case Strategy::row:
            return "row";
        case Strategy::col:
            break;
    }
    return "col";
}

SHARDWISE_INLINE std::int64_t samples_of_all(std::int64_t batch, const Topology& topology) {
    constexpr std::int64_t most = std::int64_t{1} << 53;
    if (batch > most / topology.ranks())
        throw BadInput{concat({"a batch of ", batch, " samples on each of ", topology.ranks(), " ranks: give at most ",
                               most, " samples together"})};
    return batch * topology.ranks();
}

SHARDWISE_INLINE const Scaling& checked(const Scaling& scaling) {
    static_cast<void>(Topology::checked(scaling.topology));
    if (scaling.batch < 1) throw BadInput{concat({"a batch of ", scaling.batch, " samples a rank: give at least 1"})};
    static_cast<void>(samples_of_all(scaling.batch, scaling.topology));
    if (!(scaling.multiplier >= 1.0) || !std::isfinite(scaling.multiplier))
        throw BadInput{concat({"a multiplier of ", scaling.multiplier,
                               " for the memory of replicas: give at least 1, which is the weights alone"})};
    if (!(scaling.element_bytes > 0.0) || !std::isfinite(scaling.element_bytes))
        throw BadInput{concat({scaling.element_bytes, " bytes an element: give a number above 0"})};
    const CollectiveBandwidths& b = scaling.bandwidths;
    for (const auto& one : {b.all_to_all_global, b.all_to_all_intra, b.all_reduce_global, b.all_reduce_cross})
        if (one && (!(*one > 0.0) || !std::isfinite(*one)))
            throw BadInput{concat({"a bandwidth of ", *one, " bytes a second: give a finite number above 0"})};
    return scaling;
}

SHARDWISE_INLINE StrategyCost cost_of(Strategy strategy, const Scaling& scaling, double rows, double dim,
                                      double lookups) {
    const auto ranks = static_cast<double>(scaling.topology.ranks());
    const auto host_ranks = static_cast<double>(scaling.topology.ranks_per_host);
    const double row_bytes = dim * scaling.element_bytes;
    const double looked_up = static_cast<double>(scaling.batch) * lookups;  // by a rank, in a step
    const auto over = [](double bytes, const std::optional<double>& bandwidth) {
        return bandwidth ? std::optional{bytes / *bandwidth} : std::nullopt;
    };
    StrategyCost cost;
    cost.elements_accessed = looked_up * dim;  // with rows and columns alike: a part of what all ranks look up
    switch (strategy) {
        case Strategy::dp:
            cost.static_bytes = scaling.multiplier * rows * row_bytes;
            cost.dynamic_bytes = looked_up * row_bytes;
            cost.static_seconds = over(rows * row_bytes, scaling.bandwidths.all_reduce_global);
            break;
        case Strategy::flex:
            cost.static_bytes = scaling.multiplier * rows / host_ranks * row_bytes;
            cost.dynamic_bytes = 2.0 * looked_up * row_bytes;
            cost.ids = looked_up;
            cost.dynamic_seconds = over(looked_up * row_bytes, scaling.bandwidths.all_to_all_intra);
            cost.static_seconds = over(rows * row_bytes, scaling.bandwidths.all_reduce_cross);
            break;
        case Strategy::row:
        case Strategy::col:
            cost.static_bytes = rows / ranks * row_bytes;
            cost.dynamic_bytes = 2.0 * looked_up * row_bytes;
            cost.ids = strategy == Strategy::row ? looked_up : ranks * looked_up;
            cost.dynamic_seconds = over(looked_up * row_bytes, scaling.bandwidths.all_to_all_global);
            break;
    }
    return cost;
}

SHARDWISE_INLINE ReplicationRatio dp_over_row(const Scaling& scaling, double alpha) {
    const StrategyCost dp = cost_of(Strategy::dp, scaling, 1.0, 1.0, alpha);
    const StrategyCost row = cost_of(Strategy::row, scaling, 1.0, 1.0, alpha);
    ReplicationRatio ratio{.memory = dp.bytes() / row.bytes()};
    if (dp.seconds() && row.seconds()) ratio.communication = *dp.seconds() / *row.seconds();
    return ratio;
}

}  // namespace shardwise::inline SHARDWISE_ABI
