// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/parameter.hpp"

#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

namespace {

using shardwise::BadInput;
using shardwise::Parameter;
using shardwise::ParameterSet;

TEST(parameter, all_lie_in_one_buffer_at_aligned_places) {
    shardwise::MemoryAccount memory;
    ParameterSet set{memory.tables()};
    const Parameter& first = set.reserve("first", 3, 7);
    const Parameter& second = set.reserve("second", 1, 1);
    const Parameter& third = set.reserve("third", 16, 2);
    EXPECT_EQ(memory.allocations(), 0);
    set.allocate();
    EXPECT_EQ(memory.allocations(), 2);

    ASSERT_EQ(set.values().size(), 32U + 16U + 32U);
    ASSERT_EQ(set.gradients().size(), set.values().size());
    std::int64_t index = 0;
    for (const Parameter& parameter : set) {
        EXPECT_EQ(parameter.index, index++);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(parameter.value.data()) % 64, 0U);
        EXPECT_EQ(parameter.value.data() - set.values().data(), parameter.gradient.data() - set.gradients().data());
        EXPECT_EQ(parameter.values().size(), parameter.size());
        EXPECT_EQ(parameter.value.stride(), parameter.columns);
    }
    EXPECT_EQ(first.value.data(), set.values().data());
    EXPECT_EQ(second.value.data(), set.values().data() + 32);
    EXPECT_EQ(third.value.data(), set.values().data() + 48);
    for (const float value : set.values())
        EXPECT_EQ(value, 0.0F);
    EXPECT_EQ(set.find("second"), &second);
    EXPECT_EQ(set.find("fourth"), nullptr);

    const ParameterSet moved{std::move(set)};
    EXPECT_EQ(moved.find("second"), &second);
    EXPECT_EQ(second.value.data(), moved.values().data() + 32);
}

TEST(parameter, refuses_what_cannot_be_meant) {
    shardwise::MemoryAccount memory;
    ParameterSet set{memory.tables()};
    set.reserve("weight", 2, 2);
    EXPECT_THROW(set.reserve("weight", 2, 2), BadInput);
    EXPECT_THROW(set.reserve("empty", 0, 2), BadInput);
    EXPECT_THROW(set.reserve("negative", 2, -1), BadInput);
    set.allocate();
    EXPECT_THROW(set.reserve("late", 2, 2), BadInput);
    EXPECT_THROW(set.allocate(), BadInput);
}

}  // namespace
