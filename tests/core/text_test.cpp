// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/core/text.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include <gtest/gtest.h>

namespace sw = shardwise;

namespace {

TEST(Text, NumbersAreWrittenAsToStringDoes) {
    const std::int64_t least = std::numeric_limits<std::int64_t>::min();
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    EXPECT_EQ(sw::concat({least}), std::to_string(least));
    EXPECT_EQ(sw::concat({most}), std::to_string(most));
    EXPECT_EQ(sw::concat({-1, " ", 2U, " ", std::int8_t{-3}, " ", std::uint8_t{200}}), "-1 2 -3 200");
    EXPECT_EQ(sw::concat({0.1F, " ", 1e20, " ", -0.5}),
              std::to_string(0.1F) + " " + std::to_string(1e20) + " " + std::to_string(-0.5));
}

TEST(Text, WordsOfEveryKindStandOneBehindTheOther) {
    const std::string text = "item";
    EXPECT_EQ(sw::concat({"table '", text, "', ", std::string_view{"rows!", 4}, std::string{" "}, 7}),
              "table 'item', rows 7");
    EXPECT_EQ(sw::concat({}), "");
    EXPECT_EQ(sw::concat({"", std::string{}, ""}), "");
}

enum Unscoped { one };
static_assert(!std::is_constructible_v<sw::Word, char> && !std::is_constructible_v<sw::Word, bool> &&
                  !std::is_constructible_v<sw::Word, Unscoped>,
              "none of them is the number that it would be written as");

}  // namespace
