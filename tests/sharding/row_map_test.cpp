// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/sharding/row_map.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/error.hpp"

/// \file
/// Every row has one place in one tier, found from either side.

namespace {

using shardwise::RowMap;
using shardwise::TableRowPlan;

/// A plan with random tiers; replicated rows in the order of their numbers or shuffled.
TableRowPlan random_plan() {
    const auto rows = *rc::gen::inRange<std::int64_t>(1, 2000);
    const auto tiers = *rc::gen::inRange<std::size_t>(1, 4);
    std::mt19937_64 dice{*rc::gen::arbitrary<std::uint64_t>()};
    TableRowPlan plan{.table = "t", .rows = rows, .tiers = {}, .replicated = {}, .unseen = {}};
    std::int64_t left = rows;
    for (std::size_t tier = 0; tier + 1 < tiers; ++tier) {
        plan.tiers.push_back(static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(left + 1)));
        if (dice() % 3 == 0) plan.tiers.back() = std::min<std::int64_t>(left, static_cast<std::int64_t>(dice() % 3));
        left -= plan.tiers.back();
    }
    plan.tiers.push_back(left);
    if (dice() % 4 != 0) {
        plan.replicated.resize(static_cast<std::size_t>(rows));
        std::iota(plan.replicated.begin(), plan.replicated.end(), 0);
        if (dice() % 4 != 0) std::shuffle(plan.replicated.begin(), plan.replicated.end(), dice);
        plan.replicated.resize(static_cast<std::size_t>(rows - left));
    }
    if (dice() % 2 == 0) {
        plan.unseen.resize(static_cast<std::size_t>(rows));
        const bool tail = dice() % 2 == 0;
        for (std::size_t row = 0; row < plan.unseen.size(); ++row)
            plan.unseen[row] = tail ? row > plan.unseen.size() / 2 : dice() % 3 == 0;
        for (std::int64_t i = 0; i < rows - left; ++i)  // those were seen
            plan.unseen[static_cast<std::size_t>(
                plan.replicated.empty() ? i : plan.replicated[static_cast<std::size_t>(i)])] = false;
    }
    return plan;
}

RC_GTEST_PROP(RowMap, IsABijectionOfRowsAndPlaces, ()) {
    const TableRowPlan plan = random_plan();
    const RowMap map{plan};
    RC_ASSERT(map.rows() == plan.rows);
    std::set<std::pair<int, std::int64_t>> places;
    for (std::int64_t row = 0; row < plan.rows; ++row) {
        const int tier = map.tier(row);
        const std::int64_t place = map.place(row);
        RC_ASSERT(place >= 0 && place < map.rows(tier));
        RC_ASSERT(map.rows(tier) == plan.tiers[static_cast<std::size_t>(tier)]);
        RC_ASSERT(map.row(tier, place) == row);
        places.emplace(tier, place);
    }
    RC_ASSERT(places.size() == static_cast<std::size_t>(plan.rows));
}

/// Replicated rows have the places of the plan, the others follow by number; said here without the map's tables.
RC_GTEST_PROP(RowMap, PutsRowsWhereThePlanSays, ()) {
    const TableRowPlan plan = random_plan();
    const RowMap map{plan};
    const std::int64_t replicated = plan.rows - plan.tiers.back();
    std::set<std::int64_t> hot;
    std::int64_t next = 0;
    for (std::size_t tier = 0; tier + 1 < plan.tiers.size(); ++tier)
        for (std::int64_t place = 0; place < plan.tiers[tier]; ++place, ++next) {
            const std::int64_t row = plan.replicated.empty() ? next : plan.replicated[static_cast<std::size_t>(next)];
            hot.insert(row);
            RC_ASSERT(map.tier(row) == static_cast<int>(tier));
            RC_ASSERT(map.place(row) == place);
        }
    RC_ASSERT(std::ssize(hot) == replicated);
    std::int64_t place = 0;
    for (std::int64_t row = 0; row < plan.rows; ++row) {
        if (hot.contains(row)) continue;
        RC_ASSERT(map.tier(row) == map.tiers() - 1);
        RC_ASSERT(map.place(row) == place++);
        RC_ASSERT(map.unseen(row) == (!plan.unseen.empty() && plan.unseen[static_cast<std::size_t>(row)]));
    }
}

RC_GTEST_PROP(RowMap, TakesAQuarterByteARowAndEightBytesAReplicatedOne, ()) {
    const TableRowPlan plan = random_plan();
    shardwise::MemoryAccount memory;
    const RowMap map{plan, memory.tables()};
    RC_ASSERT(memory.static_bytes() == map.bytes());
    const std::int64_t replicated = plan.rows - plan.tiers.back();
    RC_ASSERT(map.bytes() <= plan.rows / 4 + 8 * replicated + 32);
    bool in_order = std::is_sorted(plan.unseen.begin(), plan.unseen.end());
    for (std::size_t i = 0; i < plan.replicated.size(); ++i)
        in_order &= plan.replicated[i] == static_cast<std::int64_t>(i);
    RC_ASSERT((map.bytes() == 0) == in_order);
}

std::string error_of(const TableRowPlan& plan) {
    try {
        const RowMap map{plan};
    } catch (const shardwise::BadInput& error) {
        return error.what();
    }
    return {};
}

TEST(RowMap, SaysWhatIsWrongWithAPlan) {
    const std::string of = "the row plan of table 't': ";
    EXPECT_EQ(error_of({.table = "t", .rows = 5, .tiers = {2, 2}, .replicated = {}, .unseen = {}}),
              of + "its tiers have 4 rows together, and the table has 5");
    EXPECT_EQ(error_of({.table = "t", .rows = 5, .tiers = {-1, 6}, .replicated = {}, .unseen = {}}),
              of + "every tier has a number of rows, 0 or more");
    EXPECT_EQ(error_of({.table = "t", .rows = 5, .tiers = {2, 3}, .replicated = {4, 4}, .unseen = {}}),
              of + "row 4 stands twice");
    EXPECT_EQ(error_of({.table = "t", .rows = 5, .tiers = {2, 3}, .replicated = {4, 5}, .unseen = {}}),
              of + "row 5 is none of the table; its rows are 0 to 4");
    EXPECT_EQ(error_of({.table = "t", .rows = 5, .tiers = {2, 3}, .replicated = {4}, .unseen = {}}),
              of + "it names 1 replicated rows, and its tiers but the last have 2");
    EXPECT_EQ(error_of({.table = "t", .rows = 5, .tiers = {2, 3}, .replicated = {}, .unseen = {true}}),
              of + "it says of 1 rows whether they were seen, and the table has 5");
    EXPECT_EQ(error_of({.table = "t", .rows = 4, .tiers = {1, 1, 1, 1}, .replicated = {}, .unseen = {}}),
              "the row plan of table 't' has 4 tiers, and at most 3 fit");
    EXPECT_EQ(error_of({.table = "t", .rows = 5, .tiers = {2, 3}, .replicated = {4, 1}, .unseen = {}}), "");
    const std::vector<bool> unseen{false, true, false, false, false};
    const std::string replicated =
        "the row plan of table 't': row 1 is replicated, and said to have been seen by no profile: such rows are in "
        "the last tier";
    EXPECT_EQ(error_of({.table = "t", .rows = 5, .tiers = {2, 3}, .replicated = {4, 1}, .unseen = unseen}), replicated);
    EXPECT_EQ(error_of({.table = "t", .rows = 5, .tiers = {2, 3}, .replicated = {}, .unseen = unseen}), replicated);
    EXPECT_EQ(error_of({.table = "t", .rows = 5, .tiers = {1, 4}, .replicated = {}, .unseen = unseen}), "");
}

}  // namespace
