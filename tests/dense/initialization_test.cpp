// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/initialization.hpp"

#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace {

TEST(initialization, is_the_same_on_every_machine) {
    static_assert(shardwise::uniform_value(0, 0, 0) == shardwise::uniform_value(0, 0, 0));
    constexpr float expected[] = {-0x1.71f62ap-1F, 0x1.e26896p-1F, -0x1.43bf82p-1F, 0x1.8c5014p-2F};
    EXPECT_EQ(shardwise::uniform_value(0, 0, 0), expected[0]);
    EXPECT_EQ(shardwise::uniform_value(0, 0, 1), expected[1]);
    EXPECT_EQ(shardwise::uniform_value(0, 1, 0), expected[2]);
    EXPECT_EQ(shardwise::uniform_value(1, 0, 0), expected[3]);
}

TEST(initialization, is_uniform_with_the_asked_variance) {
    constexpr double variance = 2.0 / 37.0;
    std::vector<float> values(100000);
    const float bound = shardwise::uniform_bound(variance);
    shardwise::fill_uniform(values, bound, 7, 3);
    double sum = 0.0;
    double squares = 0.0;
    double quarter = 0.0;
    for (const float value : values) {
        EXPECT_LT(std::abs(value), bound);
        sum += value;
        squares += static_cast<double>(value) * value;
        quarter += value < -bound / 2 ? 1.0 : 0.0;
    }
    const auto count = static_cast<double>(values.size());
    EXPECT_NEAR(sum / count, 0.0, 4 * std::sqrt(variance / count));
    EXPECT_NEAR(squares / count, variance, 0.02 * variance);
    EXPECT_NEAR(quarter / count, 0.25, 0.006);
}

TEST(initialization, seeds_parameters_and_elements_differ) {
    std::set<float> seen;
    for (std::uint64_t seed = 0; seed < 10; ++seed)
        for (std::uint64_t stream = 0; stream < 10; ++stream)
            for (std::uint64_t element = 0; element < 10; ++element)
                seen.insert(shardwise::uniform_value(seed, stream, element));
    EXPECT_GE(seen.size(), 998U);  // of 2^24 values, a pair or two may coincide
}

}  // namespace
