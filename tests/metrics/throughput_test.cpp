// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/metrics/throughput.hpp"

#include <chrono>
#include <cmath>

#include <gtest/gtest.h>

namespace shardwise_test {
namespace {

using shardwise::Throughput;
using shardwise::ThroughputSums;

// Advances by a quarter of a second whenever it is read.
struct TickingClock {
    using duration = std::chrono::milliseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<TickingClock>;
    static constexpr bool is_steady = true;
    static inline int reads = 0;
    static time_point now() { return time_point{duration{250 * reads++}}; }
};

TEST(Throughput, IsSamplesOverSeconds) {
    Throughput<TickingClock> throughput;
    throughput.add(100);
    throughput.add(25);
    ThroughputSums sums = throughput.sums();
    EXPECT_EQ(sums.samples, 125);
    EXPECT_EQ(sums.seconds, 0.25);
    EXPECT_EQ(sums.samples_per_second(), 500);
    EXPECT_EQ(throughput.sums().seconds, 0.5);
    throughput.restart();
    throughput.add(1);
    sums = throughput.sums();
    EXPECT_EQ(sums.samples, 1);
    EXPECT_EQ(sums.seconds, 0.25);
}

TEST(Throughput, OfRanksSideBySideCountsTheSlowest) {
    ThroughputSums world;
    world += {.samples = 100, .seconds = 2};
    world += {.samples = 50, .seconds = 5};
    world += {.samples = 0, .seconds = 1};
    EXPECT_EQ(world.samples, 150);
    EXPECT_EQ(world.seconds, 5);
    EXPECT_EQ(world.samples_per_second(), 30);
}

TEST(Throughput, IsUndefinedBeforeTimePasses) {
    EXPECT_TRUE(std::isnan(ThroughputSums{}.samples_per_second()));
    Throughput<> real;
    EXPECT_GE(real.sums().seconds, 0);
}

}  // namespace
}  // namespace shardwise_test
