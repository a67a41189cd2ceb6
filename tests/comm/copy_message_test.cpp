// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/comm/copy_message.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace shardwise_test {
namespace {

std::vector<std::byte> random_bytes(std::size_t count) {
    std::mt19937_64 random{count};
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes)
        byte = std::byte(random());
    return bytes;
}

/// Copies `size` bytes from and to places in larger pieces, and looks at every byte of the second afterwards.
template <class Copy>
bool copies(Copy copy, std::size_t from, std::size_t to, std::size_t size) {
    constexpr std::size_t rest = 40;
    const std::vector<std::byte> source = random_bytes(from + size + rest);
    std::vector<std::byte> target = random_bytes(to + size + rest + 1);
    std::vector<std::byte> expected = target;
    for (std::size_t i = 0; i < size; ++i)
        expected[to + i] = source[from + i];
    copy(target.data() + to, source.data() + from, size);
    return target == expected;
}

RC_GTEST_PROP(CopyMessage, CopiesWhatItShould, ()) {
    const auto from = *rc::gen::inRange<std::size_t>(0, 70);
    const auto to = *rc::gen::inRange<std::size_t>(0, 70);
    const auto size = *rc::gen::inRange<std::size_t>(0, 300);
    RC_ASSERT(copies(shardwise::detail::copy_message, from, to, size));
#ifdef __SSE2__
    RC_ASSERT(copies(shardwise::detail::copy_past_caches, from, to, size));
#endif
}

TEST(CopyMessage, AtTheSizeFromWhichItPassesTheCaches) {
    for (const std::size_t more : {0U, 1U, 17U})
        EXPECT_TRUE(
            copies(shardwise::detail::copy_message, 3, 5, shardwise::detail::copy_past_caches_bytes - 1 + more));
}

}  // namespace
}  // namespace shardwise_test
