// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/core/split_mix.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace shardwise_test {
namespace {

using shardwise::split_mix;
using shardwise::split_mix_step;

// The reference implementation's first numbers (Steele, Lea and Flood; splitmix64.c of Sebastiano Vigna), whose state
// starts at the seed and grows by the step before each draw.
TEST(SplitMix, GivesTheNumbersOfTheReferenceImplementation) {
    static_assert(split_mix(0) == 0);
    std::uint64_t state = 1234567;
    for (const std::uint64_t expected : {6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                                         4593380528125082431U, 16408922859458223821U})
        EXPECT_EQ(split_mix(state += split_mix_step), expected);
}

}  // namespace
}  // namespace shardwise_test
