// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "shardwise/plan/cost.hpp"
#include "shardwise/topology/cluster.hpp"

namespace sw = shardwise;

TEST(Seconds, TheSlowestRankAndTierDecide) {
    const sw::Cluster cluster{.host = {.latency = 1.0, .bandwidth = 100.0},
                              .cross_host = {.latency = 2.0, .bandwidth = 10.0}};
    sw::TrafficMatrix round{{.hosts = 2, .ranks_per_host = 2}};
    EXPECT_EQ(sw::seconds(round, cluster), 0.0);
    round.at(0, 1) = {.payload = 150, .control = 50, .messages = 1};  // inside host 0: 1 + 2 s
    EXPECT_DOUBLE_EQ(sw::seconds(round, cluster), 3.0);
    round.at(0, 2) = {.payload = 10, .control = 0, .messages = 1};  // across: 2 + 1 s, beside the other tier
    EXPECT_DOUBLE_EQ(sw::seconds(round, cluster), 3.0);
    round.at(0, 3) = {.payload = 20, .control = 0, .messages = 1};  // across, after the other: 3 + 4 s
    EXPECT_DOUBLE_EQ(sw::seconds(round, cluster), 7.0);
    round.at(1, 3) = {.payload = 70, .control = 0, .messages = 1};  // rank 3 receives from 0 and 1: 4 + 9 s
    EXPECT_DOUBLE_EQ(sw::seconds(round, cluster), 13.0);
    const sw::SegmentCost segment{.segment = 0, .traffic = round, .steps = {}};
    EXPECT_DOUBLE_EQ(sw::seconds({segment, segment}, cluster), 26.0);
}
