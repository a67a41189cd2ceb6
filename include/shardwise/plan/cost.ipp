// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <utility>

#include "shardwise/core/bytes.hpp"
#include "shardwise/plan/cost.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE void tally_messages(const std::vector<SegmentCost>& costs, const Topology& topology, int rank,
                                     MemoryTally& tally) {
    const auto bytes = [](const TierTraffic& cell) { return cell.payload + cell.control; };
    for (int peer = 0; peer < topology.ranks(); ++peer) {
        std::int64_t most = 0;
        for (const SegmentCost& cost : costs)
            if (peer != rank) most = std::max(most, bytes(cost.traffic.at(rank, peer)));
        tally.need(most);
    }
    for (const SegmentCost& cost : costs)
        for (int peer = 0; peer < topology.ranks(); ++peer)
            tally.need(peer == rank ? 0 : bytes(cost.traffic.at(peer, rank)));
}

SHARDWISE_INLINE std::vector<SegmentCost> predict(const Program& program, const Topology& topology,
                                                  const std::function<void*(const BranchPath&)>& cost_at,
                                                  MemoryTally* tally, int rank) {
    std::vector<SegmentCost> costs;
    for (std::size_t s = 0; s < program.segments.size(); ++s) {
        const Segment& segment = program.segments[s];
        TrafficMatrix none{topology};
        const auto shape = [&](const Instruction& step, TrafficMatrix& traffic) {
            void* const cost = cost_at(step.branch);
            std::vector<void*> branches;
            for (const BranchPath& branch : step.plans)
                branches.push_back(cost_at(branch));
            const CostEnv env{.topology = topology, .group = step.group(topology), .under = step.under(topology)};
            if (tally != nullptr && step.code->memory != nullptr) step.code->memory(env, cost, rank, *tally);
            step.code->shape(env, cost, branches.data(), branches.size(), traffic);
        };
        for (const Instruction& step : segment.local)
            shape(step, none);
        if (segment.posts.empty()) continue;
        SegmentCost cost{.segment = s, .traffic = TrafficMatrix{topology}, .steps = {}};
        for (const Instruction& step : segment.posts) {
            TrafficMatrix part{topology};
            shape(step, part);
            for (int from = 0; from < topology.ranks(); ++from) {
                for (int to = 0; to < topology.ranks(); ++to) {
                    const TierTraffic& cell = part.at(from, to);
                    const std::int64_t bytes = cell.payload + cell.control;
                    cost.traffic.at(from, to) += cell;
                    cost.traffic.at(from, to).control += padded_part(bytes) - bytes;
                }
            }
            cost.steps.push_back(std::move(part));
        }
        for (int from = 0; from < topology.ranks(); ++from)
            for (int to = 0; to < topology.ranks(); ++to)
                if (segment.exchanges(topology, from, to))
                    cost.traffic.at(from, to) += TierTraffic{
                        .payload = 0, .control = static_cast<std::int64_t>(sizeof(Envelope)), .messages = 1};
        costs.push_back(std::move(cost));
    }
    return costs;
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
