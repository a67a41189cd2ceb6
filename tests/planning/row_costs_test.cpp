// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/row_costs.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/setting.hpp"

namespace shardwise_test {
namespace {

using sw::Strategy;

void expect_relative(double found, double expected) {
    EXPECT_NEAR(found, expected, 1e-12 * expected);
}

TEST(neutral_points, are_those_of_the_paper) {
    sw::Scaling s = paper_setting(3);
    s.bandwidths.all_to_all_intra = 72e9;
    s.bandwidths.all_reduce_cross = 8 * 25e9;
    const sw::NeutralPoints n = sw::neutral_points(s, sw::paper_row_memory(s), 256);
    expect_relative(n.memory_dp_row, 5.96875 / 4096);
    expect_relative(n.memory_dp_flex, 5.25 / 4096);
    EXPECT_TRUE(std::isinf(n.memory_flex_row));
    expect_relative(*n.communication_dp_row, 1 / (6.0 * 4096));
    expect_relative(*n.communication_flex_row, 1 / 200e9 / (2 * 4096 * (1 / 25e9 - 1 / 72e9)));
    EXPECT_NEAR(n.memory_dp_row, 1.457214e-3, 5e-10);
    EXPECT_NEAR(n.memory_dp_flex, 1.281738e-3, 5e-10);
    EXPECT_NEAR(*n.communication_dp_row, 4.06901e-5, 5e-11);
    EXPECT_NEAR(*n.communication_flex_row, 2.34e-5, 5e-8);
}

TEST(neutral_points, that_are_not_there) {
    sw::Scaling s = paper_setting();
    const sw::RowMemory memory = sw::paper_row_memory(s);
    EXPECT_FALSE(sw::neutral_points(s, memory, 256).communication_dp_row);
    s.bandwidths.all_to_all_global = 25e9;
    EXPECT_FALSE(sw::neutral_points(s, memory, 256).communication_dp_row);
    s.bandwidths.all_to_all_intra = 25e9;  // no faster inside hosts
    s.bandwidths.all_reduce_cross = 200e9;
    EXPECT_TRUE(std::isinf(*sw::neutral_points(s, memory, 256).communication_flex_row));
    s.bandwidths.all_reduce_global = 300e9;  // DP sums sooner than Flex
    EXPECT_EQ(*sw::neutral_points(s, memory, 256).communication_dp_flex, 0);
    s.topology = {.hosts = 4, .ranks_per_host = 1};  // a host of one rank: Flex is DP with messages
    EXPECT_EQ(sw::neutral_points(s, sw::paper_row_memory(s), 256).memory_dp_flex, 0);
}

/// At the neutral point both cost the same, above it the replicated row costs less, below it more.
RC_GTEST_PROP(neutral_points, divide_the_frequencies, ()) {
    sw::Scaling s{.topology = {.hosts = *rc::gen::inRange(2, 9), .ranks_per_host = *rc::gen::inRange(2, 9)},
                  .batch = *rc::gen::inRange(1, 10000),
                  .multiplier = *rc::gen::inRange(10, 90) / 10.0};
    for (auto* bandwidth : {&s.bandwidths.all_to_all_global, &s.bandwidths.all_reduce_global})
        *bandwidth = *rc::gen::inRange(1, 400) * 1e9;
    s.bandwidths.all_to_all_intra = *s.bandwidths.all_to_all_global * *rc::gen::inRange(2, 9);
    s.bandwidths.all_reduce_cross = *s.bandwidths.all_reduce_global * *rc::gen::inRange(1, 9);
    const double dim = *rc::gen::inRange(1, 300);
    const sw::RowMemory memory = sw::paper_row_memory(s);
    const sw::NeutralPoints n = sw::neutral_points(s, memory, dim);
    const auto u = static_cast<double>(s.topology.ranks());
    const double w = s.topology.ranks_per_host;
    const auto b = static_cast<double>(s.batch);
    const auto near = [](double a, double exact) { return std::abs(a - exact) <= 1e-12 * exact; };
    RC_ASSERT(near(n.memory_dp_row, (s.multiplier - 1 / u) / b));
    RC_ASSERT(near(n.memory_dp_flex, (s.multiplier - s.multiplier / w) / b));
    const auto& bw = s.bandwidths;
    RC_ASSERT(near(*n.communication_dp_row, *bw.all_to_all_global / (2 * b * *bw.all_reduce_global)));
    RC_ASSERT(near(*n.communication_flex_row,
                   1 / *bw.all_reduce_cross / (2 * b * (1 / *bw.all_to_all_global - 1 / *bw.all_to_all_intra))));
    const auto less = [&](Strategy one, Strategy other, double p) {
        return memory.bytes(one, dim, p) < memory.bytes(other, dim, p);
    };
    RC_ASSERT(less(Strategy::dp, Strategy::row, 1.001 * n.memory_dp_row));
    RC_ASSERT(less(Strategy::row, Strategy::dp, 0.999 * n.memory_dp_row));
    RC_ASSERT(*sw::row_seconds(s, Strategy::flex, dim, 1.001 * *n.communication_flex_row) <
              *sw::row_seconds(s, Strategy::row, dim, 1.001 * *n.communication_flex_row));
}

}  // namespace
}  // namespace shardwise_test
