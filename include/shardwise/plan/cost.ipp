// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <utility>

#include "shardwise/plan/cost.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE void tally_messages(const std::vector<SegmentCost>& costs, const Topology& topology, int rank,
                                     MemoryTally& tally) {
    detail::tally_message_buffers(costs, topology, rank, tally);
}

SHARDWISE_INLINE std::vector<SegmentCost> predict(const Program& program, const Topology& topology,
                                                  const std::function<void*(const BranchPath&)>& cost_at,
                                                  MemoryTally* tally, int rank) {
    return detail::walk_costs(program, topology,
                              detail::CostReading<std::int64_t>{.shape = &StepCode::shape,
                                                                .memory = &StepCode::memory,
                                                                .lanes_at = cost_at,
                                                                .tallies = one_or_none(tally),
                                                                .rank = rank});
}

SHARDWISE_INLINE double seconds(const TrafficMatrix& round, const Cluster& cluster) {
    const Topology& topology = round.topology();
    double slowest = 0.0;
    for (int rank = 0; rank < topology.ranks(); ++rank) {
        for (const Tier tier : {Tier::host, Tier::cross_host}) {
            double sending = 0.0;
            double receiving = 0.0;
            const auto time = [&](const TierTraffic& cell) {
                return static_cast<double>(cell.messages) * cluster.of(tier).latency +
                       static_cast<double>(cell.payload + cell.control) / cluster.of(tier).bandwidth;
            };
            for (int peer = 0; peer < topology.ranks(); ++peer) {
                if (peer == rank || topology.tier(rank, peer) != tier) continue;
                sending += time(round.at(rank, peer));
                receiving += time(round.at(peer, rank));
            }
            slowest = std::max({slowest, sending, receiving});
        }
    }
    return slowest;
}

SHARDWISE_INLINE double seconds(const std::vector<SegmentCost>& costs, const Cluster& cluster) {
    double sum = 0.0;
    for (const SegmentCost& cost : costs)
        sum += seconds(cost.traffic, cluster);
    return sum;
}

SHARDWISE_INLINE std::vector<std::int64_t> rounds_of(const std::vector<SegmentCost>& costs, int rank) {
    std::vector<std::int64_t> bytes;
    for (const SegmentCost& cost : costs) {
        const Traffic sent = cost.traffic.sent_by(rank);
        bytes.push_back(sent.host.payload + sent.host.control + sent.cross_host.payload + sent.cross_host.control);
    }
    return bytes;
}

SHARDWISE_INLINE std::vector<std::int64_t> payload_by_post(const std::vector<SegmentCost>& costs, int rank) {
    std::vector<std::int64_t> payload;
    for (const SegmentCost& cost : costs)
        for (const TrafficMatrix& step : cost.steps) {
            const Traffic sent = step.sent_by(rank);
            payload.push_back(sent.host.payload + sent.cross_host.payload);
        }
    return payload;
}

}  // namespace shardwise::inline SHARDWISE_ABI
