// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/plan/expected_count.hpp"
#include "shardwise/plan/itinerary.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/topology/members.hpp"
#include "shardwise/topology/replica_groups.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// The walk through all segments of a program that the cost reader and the expectation reader have in common.

namespace shardwise::inline SHARDWISE_ABI {

/// What one round moves, and which of its bytes belong to which step.
template <class Count>
struct SegmentCostOf {
    std::size_t segment = 0;
    TrafficMatrixOf<Count> traffic;             ///< envelopes and padding included
    std::vector<TrafficMatrixOf<Count>> steps;  ///< (post of the segment): its own bytes, no messages
};

namespace detail {

/// How one reader reads a step.
template <class Count>
struct CostReading {
    ShapeOfStep<Count>* StepCode::*shape;
    MemoryOfStep* StepCode::*memory;
    const std::function<void*(const BranchPath&)>& lanes_at;
    std::span<MemoryTally> tallies;  ///< of ranks whose memory is asked for, one after the other
    int rank;                        ///< the first of them

    void read(const Instruction& step, const Topology& topology, TrafficMatrixOf<Count>& round) const {
        void* const lanes = lanes_at(step.branch);
        std::vector<void*> branches;
        for (const BranchPath& branch : step.plans)
            branches.push_back(lanes_at(branch));
        const CostEnv env{.topology = topology, .group = step.group(topology), .under = step.under(topology)};
        MemoryOfStep* const needs = step.code->*memory;
        for (std::size_t i = 0; needs != nullptr && i < tallies.size(); ++i)
            needs(env, lanes, rank + static_cast<int>(i), tallies[i]);
        (step.code->*shape)(env, lanes, branches.data(), branches.size(), round);
    }
};

/// \tparam Mean  what the means of Counts are
template <class Count, class Mean = decltype(mean_of(Count{}))>
std::vector<SegmentCostOf<Mean>> walk_costs(const Program& program, const Topology& topology,
                                            const CostReading<Count>& reading) {
    std::vector<SegmentCostOf<Mean>> costs;
    for (std::size_t s = 0; s < program.segments.size(); ++s) {
        const Segment& segment = program.segments[s];
        TrafficMatrixOf<Count> none{topology};
        for (const Instruction& step : segment.local)
            reading.read(step, topology, none);
        if (segment.posts.empty()) continue;
        SegmentCostOf<Mean> cost{.segment = s, .traffic = TrafficMatrixOf<Mean>{topology}, .steps = {}};
        for (const Instruction& step : segment.posts) {
            TrafficMatrixOf<Count> moved{topology};
            reading.read(step, topology, moved);
            TrafficMatrixOf<Mean>& part = cost.steps.emplace_back(topology);
            for (int from = 0; from < topology.ranks(); ++from) {
                for (int to = 0; to < topology.ranks(); ++to) {
                    const TierTrafficOf<Count>& cell = moved.at(from, to);
                    part.at(from, to) = {
                        .payload = mean_of(cell.payload), .control = mean_of(cell.control), .messages = 0};
                    cost.traffic.at(from, to) += part.at(from, to);
                    cost.traffic.at(from, to).control += padding_of(cell.payload + cell.control);
                }
            }
        }
        for (int from = 0; from < topology.ranks(); ++from)
            for (int to = 0; to < topology.ranks(); ++to)
                if (segment.exchanges(topology, from, to))
                    cost.traffic.at(from, to) +=
                        TierTrafficOf<Mean>{.payload = 0, .control = sizeof(Envelope), .messages = 1};
        costs.push_back(std::move(cost));
    }
    return costs;
}

/// What the ranks of a group move, added to what ranks of the world do. \param member  one of the group's
/// \param to  one a round of the program, or none yet
template <class Mean>
void add_in_world(const std::vector<SegmentCostOf<Mean>>& costs, const Topology& world, const Members& group,
                  int member, std::vector<SegmentCostOf<Mean>>& to) {
    const auto add = [&](const TrafficMatrixOf<Mean>& moved, TrafficMatrixOf<Mean>& all) {
        for (int from = 0; from < group.size; ++from)
            for (int peer = 0; peer < group.size; ++peer)
                all.at(group.member(member, from), group.member(member, peer)) += moved.at(from, peer);
    };
    for (std::size_t i = 0; i < costs.size(); ++i) {
        if (i == to.size())
            to.push_back({.segment = costs[i].segment,
                          .traffic = TrafficMatrixOf<Mean>{world},
                          .steps = {costs[i].steps.size(), TrafficMatrixOf<Mean>{world}}});
        add(costs[i].traffic, to[i].traffic);
        for (std::size_t step = 0; step < costs[i].steps.size(); ++step)
            add(costs[i].steps[step], to[i].steps[step]);
    }
}

/// Adds the envelopes that tell other groups of errors. \param topology  a group's
template <class Mean>
void add_witnesses(const Program& program, const Topology& topology, const ReplicaGroups& groups,
                   std::vector<SegmentCostOf<Mean>>& to) {
    if (groups.count() == 1) return;
    const std::vector<Agreement> agreed = agreements(program, topology, groups.count());
    for (SegmentCostOf<Mean>& cost : to)
        for (int rank = 0; rank < groups.world.ranks(); ++rank)
            for (const int witness :
                 witnesses_of(program.segments[cost.segment], agreed[cost.segment].witnesses, topology, groups, rank))
                cost.traffic.at(rank, witness) +=
                    TierTrafficOf<Mean>{.payload = 0, .control = sizeof(Envelope), .messages = 1};
}

/// As tally_messages().
template <class Mean>
void tally_message_buffers(const std::vector<SegmentCostOf<Mean>>& costs, const Topology& topology, int rank,
                           MemoryTally& tally) {
    const auto bytes = [](const TierTrafficOf<Mean>& cell) { return rounded_up(cell.payload + cell.control); };
    for (int peer = 0; peer < topology.ranks(); ++peer) {
        std::int64_t most = 0;
        for (const auto& cost : costs)
            if (peer != rank) most = std::max(most, bytes(cost.traffic.at(rank, peer)));
        tally.need(most);
    }
    for (const auto& cost : costs)
        for (int peer = 0; peer < topology.ranks(); ++peer)
            tally.need(peer == rank ? 0 : bytes(cost.traffic.at(peer, rank)));
}

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
