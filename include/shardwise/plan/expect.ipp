// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <utility>

#include "shardwise/plan/expect.hpp"
#include "shardwise/plan/expected_count.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE std::vector<ExpectedSegment> expect(const Program& program, const Topology& topology,
                                                     const std::function<void*(const BranchPath&)>& lanes_at,
                                                     std::span<MemoryTally> tallies, int first) {
    return detail::walk_costs(program, topology,
                              detail::CostReading<ExpectedCount>{.shape = &StepCode::expect,
                                                                 .memory = &StepCode::expect_memory,
                                                                 .lanes_at = lanes_at,
                                                                 .tallies = tallies,
                                                                 .rank = first});
}

SHARDWISE_INLINE void tally_messages(const std::vector<ExpectedSegment>& costs, const Topology& topology, int rank,
                                     MemoryTally& tally) {
    detail::tally_message_buffers(costs, topology, rank, tally);
}

SHARDWISE_INLINE std::vector<SegmentCost> rounded(const std::vector<ExpectedSegment>& costs) {
    const auto whole = [](const ExpectedTraffic& from) {
        TrafficMatrix to{from.topology()};
        for (int sender = 0; sender < from.topology().ranks(); ++sender)
            for (int receiver = 0; receiver < from.topology().ranks(); ++receiver) {
                const TierTrafficOf<double>& cell = from.at(sender, receiver);
                to.at(sender, receiver) = {.payload = std::llround(cell.payload),
                                           .control = std::llround(cell.control),
                                           .messages = std::llround(cell.messages)};
            }
        return to;
    };
    std::vector<SegmentCost> all;
    for (const ExpectedSegment& cost : costs) {
        SegmentCost& one = all.emplace_back();
        one.segment = cost.segment;
        one.traffic = whole(cost.traffic);
        for (const ExpectedTraffic& step : cost.steps)
            one.steps.push_back(whole(step));
    }
    return all;
}

}  // namespace shardwise::inline SHARDWISE_ABI
