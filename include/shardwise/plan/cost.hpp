// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/bytes.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/cluster.hpp"

/// \file
/// The cost reader: bytes and messages of one batch, step by step, without a communicator.

namespace shardwise::inline SHARDWISE_ABI {

/// The cost reader's counterpart of a frame: what it knows of all ranks, for the plan and each of its branches.
template <class Cost>
struct CostTree {
    Cost own;
    std::vector<CostTree> branches;

    [[nodiscard]] Cost& at(const BranchPath& branch) {
        CostTree* node = this;
        for (const std::size_t i : branch)
            node = &node->branches.at(i);
        return node->own;
    }
};

/// What one flush moves, and which of its bytes belong to which step.
struct SegmentCost {
    std::size_t segment = 0;
    TrafficMatrix traffic;             ///< envelopes and padding included
    std::vector<TrafficMatrix> steps;  ///< (post of the segment): its own bytes, no messages
};

/// Adds the needs of a flight's message buffers on `rank`: one to each peer for all segments, one from each peer a
/// segment.
inline void tally_messages(const std::vector<SegmentCost>& costs, const Topology& topology, int rank,
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

/// Walks segments [first, last) of a program. With a tally, adds what the steps' buffers need on `rank`. `tree` is the
/// domain's CostTree: bound to all ranks' batches, and carried from the forward to the backward plan. Not collective;
/// the same on every rank.
template <class Cost>
[[nodiscard]] std::vector<SegmentCost> predict(const Program& program, std::size_t first, std::size_t last,
                                               const Topology& topology, CostTree<Cost>& tree,
                                               MemoryTally* tally = nullptr, int rank = 0) {
    std::vector<SegmentCost> costs;
    for (std::size_t s = first; s < last; ++s) {
        const Segment& segment = program.segments[s];
        TrafficMatrix none{topology};
        const auto shape = [&](const Instruction& step, TrafficMatrix& traffic) {
            void* const cost = &tree.at(step.branch);
            if (tally != nullptr && step.calls->memory != nullptr) step.calls->memory(cost, rank, *tally);
            step.calls->shape(cost, traffic);
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
                if (Program::exchanges(segment, topology, from, to))
                    cost.traffic.at(from, to) += TierTraffic{
                        .payload = 0, .control = static_cast<std::int64_t>(sizeof(Envelope)), .messages = 1};
        costs.push_back(std::move(cost));
    }
    return costs;
}

/// How long a flush takes on a cluster: the slowest rank's, where a rank's sends and receives go on at once, both tiers
/// too, and each tier takes its messages one after the other. A bound for planning; contention inside the network is
/// not in it.
[[nodiscard]] inline double seconds(const TrafficMatrix& flush, const Cluster& cluster) {
    const Topology& topology = flush.topology();
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
                sending += time(flush.at(rank, peer));
                receiving += time(flush.at(peer, rank));
            }
            slowest = std::max({slowest, sending, receiving});
        }
    }
    return slowest;
}

/// The exchange time of all flushes, one after the other.
[[nodiscard]] inline double seconds(const std::vector<SegmentCost>& costs, const Cluster& cluster) {
    double sum = 0.0;
    for (const SegmentCost& cost : costs)
        sum += seconds(cost.traffic, cluster);
    return sum;
}

}  // namespace shardwise::inline SHARDWISE_ABI
