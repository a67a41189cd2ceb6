// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/core/prefetch.hpp"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace {

TEST(ForPages, HasEachNumberOnceInOrderAndPartsEndWithPages) {
    std::vector<int> all(5000);
    std::iota(all.begin(), all.end(), 0);
    for (const std::size_t first : {0U, 1U, 17U, 1023U})
        for (const std::size_t count : {0U, 1U, 300U, 1024U, 3900U}) {
            const std::span<const int> data = std::span<const int>{all}.subspan(first, count);
            std::size_t next = 0;
            EXPECT_TRUE(shardwise::for_pages(data, [&](std::span<const int> part) {
                EXPECT_FALSE(part.empty());
                EXPECT_EQ(part.data(), data.data() + next);
                next += part.size();
                const auto begin = reinterpret_cast<std::uintptr_t>(part.data());
                const auto last = reinterpret_cast<std::uintptr_t>(part.data() + part.size() - 1);
                EXPECT_EQ(begin / 4096, last / 4096);
                EXPECT_TRUE((last + sizeof(int)) % 4096 == 0 || next == count) << "ends before its page";
                return true;
            }));
            EXPECT_EQ(next, count);
        }
}

TEST(ForPages, StopsWhereItIsTold) {
    const std::vector<int> all(5000);
    int parts = 0;
    EXPECT_FALSE(shardwise::for_pages(std::span<const int>{all}, [&](std::span<const int>) { return ++parts < 2; }));
    EXPECT_EQ(parts, 2);
}

}  // namespace
