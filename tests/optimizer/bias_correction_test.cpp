// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/optimizer/bias_correction.hpp"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace shardwise_test {
namespace {

using shardwise::bias_correction;

TEST(BiasCorrection, IsOneMinusThePower) {
    EXPECT_EQ(bias_correction(0.9, 1), 1.0 - 0.9);
    EXPECT_EQ(bias_correction(0.5, 10), 1.0 - 0x1p-10);
    for (const double beta : {0.0, 0.1, 0.9, 0.999})
        for (const std::int64_t steps : {1, 2, 3, 7, 100, 12345})
            EXPECT_NEAR(bias_correction(beta, steps), 1.0 - std::pow(beta, static_cast<double>(steps)), 1e-12);
}

// A checkpoint may say any number of steps: nothing is left to correct then, and it is known at once.
TEST(BiasCorrection, OfManyStepsIsOne) {
    EXPECT_EQ(bias_correction(0.999, std::int64_t{1} << 53), 1.0);
    EXPECT_EQ(bias_correction(0.0, std::int64_t{1} << 53), 1.0);
}

}  // namespace
}  // namespace shardwise_test
