// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/optimizer/sum_of_squares.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace shardwise_test {
namespace {

/// Lane by lane, as the documentation says it: the elements i, i + 8, i + 16... of each lane in order, then the lanes.
double by_lanes(const std::vector<float>& gradient) {
    double total = 0.0;
    for (std::size_t lane = 0; lane < 8; ++lane) {
        double sum = 0.0;
        for (std::size_t i = lane; i < gradient.size(); i += 8) {
            const double square = static_cast<double>(gradient[i]) * static_cast<double>(gradient[i]);  // exact
            sum = sum + square;
        }
        total = total + sum;
    }
    return total;
}

TEST(SumOfSquares, IsBitForBitTheSumByLanes) {
    std::mt19937 random{5};
    std::normal_distribution<float> normal;
    int differs = 0;
    for (int round = 0; round < 300; ++round) {
        std::vector<float> gradient(static_cast<std::size_t>(round % 150));
        for (float& g : gradient)
            g = std::ldexp(normal(random), static_cast<int>(random() % 40) - 20);
        const double sum = shardwise::sum_of_squares(gradient.data(), static_cast<int>(gradient.size()));
        ASSERT_EQ(std::bit_cast<std::uint64_t>(sum), std::bit_cast<std::uint64_t>(by_lanes(gradient)))
            << gradient.size();
        double straight = 0.0;
        for (const float g : gradient)
            straight = std::fma(static_cast<double>(g), static_cast<double>(g), straight);
        differs += straight == sum ? 0 : 1;
        EXPECT_NEAR(sum, straight, 1e-12 * straight);
    }
    EXPECT_GT(differs, 50);  // the order shows, so that the comparison says something
}

TEST(SumOfSquares, OfNothingIsZero) {
    const double sum = shardwise::sum_of_squares(nullptr, 0);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(sum), 0U);
}

TEST(SumOfSquares, DoesNotOverflowWhereFloatsWould) {
    const std::vector<float> gradient(3, 3e38F);
    EXPECT_NEAR(shardwise::sum_of_squares(gradient.data(), 3), 2.7e77, 1e71);
}

}  // namespace
}  // namespace shardwise_test
