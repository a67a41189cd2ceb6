// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/embedding/kernels/distinct_ids.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory_resource>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

/// \file
/// Distinct ids against a map, over lists of one table, by a slot a row and by hash.

namespace shardwise_test {
namespace {

namespace sw = shardwise;

/// Some lists of ids below `rows`, of which few or many are distinct.
template <class Id>
std::vector<std::vector<Id>> lists_of(std::uint64_t seed, std::int64_t rows) {
    std::mt19937_64 random{seed};
    std::vector<std::vector<Id>> lists(1 + random() % 3);
    const std::uint64_t used = 1 + random() % static_cast<std::uint64_t>(std::min<std::int64_t>(rows, 300));
    const std::uint64_t step = static_cast<std::uint64_t>(rows) / used;
    for (auto& list : lists)
        for (std::uint64_t i = random() % 400; i > 0; --i)
            list.push_back(static_cast<Id>(random() % used * step));
    return lists;
}

template <class Id, class To>
void check(sw::DistinctIds& find, std::uint64_t seed, std::int64_t rows) {
    const auto lists = lists_of<Id>(seed, rows);
    std::int64_t ids = 0;
    for (const auto& list : lists)
        ids += std::ssize(list);
    find.begin(ids, rows);
    std::vector<To> distinct(static_cast<std::size_t>(ids));
    std::map<std::int64_t, sw::LocalRow> expected;  // numbered as they come
    for (const auto& list : lists) {
        std::vector<sw::LocalRow> numbers(list.size());
        find.number(std::span<const Id>{list}, distinct.data(), numbers.data());
        for (std::size_t i = 0; i < list.size(); ++i) {
            const auto number = expected.try_emplace(list[i], static_cast<sw::LocalRow>(expected.size())).first->second;
            RC_ASSERT(numbers[i] == number);
            RC_ASSERT(distinct[number] == static_cast<To>(list[i]));
        }
    }
    RC_ASSERT(find.count() == std::ssize(expected));
}

RC_GTEST_PROP(DistinctIds, AreThoseOfAMap, ()) {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    sw::DistinctIds find;
    find.on(*std::pmr::get_default_resource());
    for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{77}, std::int64_t{5000},
                                    std::int64_t{std::numeric_limits<std::int32_t>::max()}}) {
        check<std::int32_t, std::int32_t>(find, seed, rows);  // one after the other, in the same memory
        check<std::int64_t, std::int32_t>(find, seed + 1, rows);
        check<std::int64_t, std::int64_t>(find, seed + 2, rows);
    }
    check<std::int64_t, std::int64_t>(find, seed, std::int64_t{1} << 45);
}

TEST(DistinctIds, TakeASlotARowOrTwoAnId) {
    EXPECT_EQ(sw::DistinctIds::slots(100, 10), 10);
    EXPECT_EQ(sw::DistinctIds::slots(100, 256), 256);
    EXPECT_EQ(sw::DistinctIds::slots(100, 1'000'000), 256);
    EXPECT_EQ(sw::DistinctIds::slots(1, 7), 2);
    EXPECT_EQ(sw::DistinctIds::slots(0, 7), 0);
}

}  // namespace
}  // namespace shardwise_test
