// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/plan/cost.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/plan/describe.hpp"
#include "toy.hpp"

/// \file
/// Predictions by hand, and what describe makes of them. That they are what is counted: see together_test.cpp.

namespace shardwise_test::toy {
namespace {

using sw::OneHost;
using sw::Peers;
using sw::Plan;
using sw::World;

constexpr sw::Topology topology{.hosts = 2, .ranks_per_host = 2};
/// The first plan has what each rank has at even places.
using Line = Plan<Side<0, Plan<Gather<World>>, Plan<Weigh<>, Gather<Peers>>>>;

std::vector<sw::SegmentCost> costs_of(const Counts& counts, sw::MemoryTally* tally = nullptr, int rank = 0) {
    sw::CostTree<Domain::Cost> tree;
    tree.own.counts = counts;
    return sw::predict(sw::make_program<Domain, Line>(), topology, tree, tally, rank);
}

TEST(Cost, OfARoundIsThatOfItsPartsAndEnvelopes) {
    const auto costs = costs_of({1, 2, 3, 4});  // (rank): in the first plan 1 1 2 2, in the second 0 1 1 2
    ASSERT_EQ(costs.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i)
        EXPECT_EQ(costs[i].segment, (std::vector<std::size_t>{0, 1, 3})[i]);
    const auto cell = [&](std::size_t i, int from, int to) { return costs[i].traffic.at(from, to); };
    using Tier = sw::TierTraffic;
    // A count and the numbers, padded to 8 bytes, behind an envelope of 16.
    EXPECT_EQ(cell(0, 0, 1), (Tier{.payload = 4, .control = 16 + 4, .messages = 1}));
    EXPECT_EQ(cell(0, 3, 0), (Tier{.payload = 8, .control = 16 + 4 + 4, .messages = 1}));
    EXPECT_EQ(cell(0, 0, 0), Tier{});
    EXPECT_EQ(cell(1, 0, 2), (Tier{.payload = 0, .control = 16 + 4 + 4, .messages = 1}));
    EXPECT_EQ(cell(1, 3, 1), (Tier{.payload = 8, .control = 16 + 4 + 4, .messages = 1}));
    EXPECT_EQ(cell(1, 0, 1), Tier{});
    // Backward both go in one message, each padded: as many as the receiver had.
    EXPECT_EQ(costs[2].steps.size(), 2U);
    EXPECT_EQ(cell(2, 0, 3), (Tier{.payload = 8, .control = 16, .messages = 1}));
    EXPECT_EQ(cell(2, 2, 0), (Tier{.payload = 4, .control = 16 + 4, .messages = 1}));
    EXPECT_EQ(cell(2, 1, 3), (Tier{.payload = 16, .control = 16, .messages = 1}));
    EXPECT_EQ(cell(2, 3, 1), (Tier{.payload = 8, .control = 16 + 4 + 4, .messages = 1}));
    EXPECT_EQ(costs[0].steps.size(), 1U);
    EXPECT_EQ(costs[0].steps[0].at(3, 0), (Tier{.payload = 8, .control = 4, .messages = 0}));
    EXPECT_EQ(sw::rounds_of(costs, 3), (std::vector<std::int64_t>{3 * 32, 32, 24 + 24 + 32}));
}

TEST(Cost, OfBuffersIsTheMostOfEachOverAllBatches) {
    sw::MemoryTally tally;
    const auto batch = [&](const Counts& counts) {
        tally.begin_batch();
        const auto costs = costs_of(counts, &tally, 1);
        const std::int64_t steps = tally.bytes();
        sw::tally_messages(costs, topology, 1, tally);
        return steps;
    };
    EXPECT_EQ(batch({2, 2, 2, 2}), 64 + 64);  // 16 and 8 bytes
    EXPECT_EQ(tally.bytes(), 128 + (3 + 3 + 1 + 3) * 64);
    const std::int64_t before = tally.bytes();
    // 40 + 1 + 1 + 1 numbers are 172 bytes, of which a buffer makes 192; the other's peer is rank 3.
    EXPECT_EQ(batch({80, 2, 2, 2}), before + 128);
    // Rank 0 sends 16 + 164 bytes and padding, rank 1 sends 16 + 160 back.
    EXPECT_EQ(tally.bytes(), before + 128 + 128 + 128);
    const std::int64_t most = tally.bytes();
    EXPECT_EQ(batch({2, 2, 2, 2}), most);
    EXPECT_EQ(tally.bytes(), most);
}

TEST(CostTree, HasOneCostForEachPlan) {
    sw::CostTree<int> tree;
    tree.at({}) = 1;
    tree.at({2}) = 2;
    tree.at({2, 0}) = 3;
    tree.at({0, 2}) = 4;
    EXPECT_EQ(tree.own, 1);
    EXPECT_EQ(tree.branches.size(), 3U);
    EXPECT_EQ(tree.at({2}), 2);
    EXPECT_EQ(tree.at({2, 0}), 3);
    EXPECT_EQ(tree.at({0, 2}), 4);
    EXPECT_EQ(tree.at({0}), 0);
}

using Nested = Plan<Scale<3>, Side<0, Plan<Gather<World>>, Plan<Side<0, Plan<Gather<OneHost>>, Plan<Weigh<>>>>>>;

TEST(Describe, NamesThePlansInsideAndSumsRounds) {
    const sw::Program program = sw::make_program<Domain, Nested>();
    EXPECT_EQ(sw::describe(program, {"left"}),
              "forward\n"
              "  segment 0\n    Scale3\n    Deal\n    [1] Deal\n    [left] Gather<World>\n    [1] [0] Gather<Host>\n"
              "  segment 1\n    [1] [1] Weigh\n    [1] Append\n    Append\n"
              "backward (derived)\n"
              "  segment 2\n    Cut\n    [1] Cut\n    [left] Scatter<World>\n    [1] [0] Scatter<Host>\n"
              "  segment 3\n    [1] [1] WeighBack\n    [1] Undeal\n    Undeal\n    Scale3\n");
    const std::string costly = sw::describe(sw::make_program<Domain, Line>(), {}, costs_of({1, 2, 3, 4}));
    EXPECT_EQ(costly,
              "forward\n"
              "  segment 0\n    Deal\n    [0] Gather<World>  ->  host 24 + 16 B, cross_host 48 + 32 B\n"
              "    = one round: host 24 + 88 B, cross_host 48 + 176 B, 12 messages\n"
              "  segment 1\n    [1] Weigh\n    [1] Gather<Peers>  ->  host 0 + 0 B, cross_host 16 + 16 B\n"
              "    = one round: host 0 + 0 B, cross_host 16 + 88 B, 4 messages\n"
              "  segment 2\n    Append\n"
              "backward (derived)\n"
              "  segment 3\n    Cut\n    [0] Scatter<World>  ->  host 24 + 0 B, cross_host 48 + 0 B\n"
              "    [1] Scatter<Peers>  ->  host 0 + 0 B, cross_host 16 + 0 B\n"
              "    = one round: host 24 + 72 B, cross_host 64 + 152 B, 12 messages\n"
              "  segment 4\n    [1] WeighBack\n    Undeal\n");
}

TEST(Describe, AsAMermaidFlowChart) {
    EXPECT_EQ(sw::describe_mermaid(sw::make_program<Domain, Nested>(), {"left"}),
              "flowchart TD\n"
              "    s0[\"forward 0<br/>Scale3<br/>Deal<br/>[1] Deal\"]\n"
              "    s0 -->|\"[left] Gather&lt;World&gt;, [1] [0] Gather&lt;Host&gt;\"| s1\n"
              "    s1[\"forward 1<br/>[1] [1] Weigh<br/>[1] Append<br/>Append\"]\n"
              "    s1 --> s2\n"
              "    s2[\"backward 2<br/>Cut<br/>[1] Cut\"]\n"
              "    s2 -->|\"[left] Scatter&lt;World&gt;, [1] [0] Scatter&lt;Host&gt;\"| s3\n"
              "    s3[\"backward 3<br/>[1] [1] WeighBack<br/>[1] Undeal<br/>Undeal<br/>Scale3\"]\n");
}

}  // namespace
}  // namespace shardwise_test::toy
