// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/sharding/row_plan.hpp"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "shardwise/core/error.hpp"
#include "shardwise/sharding/row_reduction.hpp"

namespace {

namespace sw = shardwise;

sw::TableRowPlan plan() {
    return {.table = "t", .rows = 100, .tiers = {10, 90}, .replicated = {}, .unseen = {}};
}

std::string refusal(const sw::TableRowPlan& plan) {
    try {
        sw::check(plan);
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return "";
}

TEST(RowPlan, SumsOfRowsTravelTouchedUntilThePlanSaysOtherwise) {
    sw::TableRowPlan one = plan();
    EXPECT_EQ(sw::dense_sums(one, 0, {.partial = 16, .whole = 16}), sw::DenseSums{});
    one.touches = {{.rank = 1, .host = 5, .world = 10}, {.rank = 0, .host = 0, .world = 0}};
    EXPECT_EQ(sw::dense_sums(one, 0, {.partial = 16, .whole = 16}), (sw::DenseSums{false, false, true}));
    one.reduction = sw::RowReduction::touched;
    EXPECT_EQ(sw::dense_sums(one, 0, {.partial = 16, .whole = 16}), sw::DenseSums{});
    one.reduction = sw::RowReduction::dense;
    EXPECT_EQ(sw::dense_sums(one, 0, {.partial = 16, .whole = 16}), (sw::DenseSums{true, true, true}));
}

RC_GTEST_PROP(RowReductionProperties, WhicheverMovesFewerBytes, ()) {
    const auto rows = *rc::gen::inRange<std::int64_t>(0, 100000);
    const auto touched = *rc::gen::inRange<std::int64_t>(0, rows + 1);
    const auto sum = *rc::gen::inRange<std::int64_t>(1, 2000);
    // eighths of a byte, so that nothing rounds
    const bool dense = 8 * touched * (sum + 4) > rows * (8 * sum + 1);
    RC_ASSERT(sw::cheaper_sums(rows, {.rank = touched, .host = 0, .world = 0}, {.partial = sum, .whole = 1}) ==
              (sw::DenseSums{dense, false, false}));
    RC_ASSERT(sw::cheaper_sums(rows, {.rank = 0, .host = touched, .world = 0}, {.partial = sum, .whole = 1}) ==
              (sw::DenseSums{false, dense, false}));
    RC_ASSERT(sw::cheaper_sums(rows, {.rank = 0, .host = 0, .world = touched}, {.partial = 1, .whole = sum}) ==
              (sw::DenseSums{false, false, dense}));
}

TEST(RowPlan, SaysWhatIsWrongWithItsExpectations) {
    sw::TableRowPlan one = plan();
    one.touches = {{.rank = 1, .host = 2, .world = 3}};
    EXPECT_NE(refusal(one).find("rows are touched of 1 tiers, and it has 2"), std::string::npos) << refusal(one);
    one.touches.push_back({.rank = 1, .host = 2, .world = 91});
    EXPECT_NE(refusal(one).find("touch 91 of the 90 rows of tier 1"), std::string::npos) << refusal(one);
    one.touches.back() = {.rank = -1, .host = 2, .world = 90};
    EXPECT_NE(refusal(one).find("touch -1 of the 90 rows"), std::string::npos) << refusal(one);
    one.touches.back().rank = 0;
    EXPECT_EQ(refusal(one), "");
}

std::string refusal(const sw::RowPlan& plan) {
    try {
        sw::check(plan);
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return {};
}

TEST(RowPlan, HasEachTableOnceAndItsTiers) {
    sw::RowPlan all{.tiers = {"dp", "row"}, .tables = {plan()}};
    EXPECT_EQ(refusal(all), "");
    all.tables.push_back(plan());
    EXPECT_NE(refusal(all).find("' twice: give each one once"), std::string::npos) << refusal(all);
    all.tables.pop_back();
    all.tiers = {"dp", "flex", "row"};
    EXPECT_NE(refusal(all).find("has rows of 2 tiers, and the plan has 3"), std::string::npos) << refusal(all);
}

/// Ranks with plans that place any row elsewhere have another digest; what is for reports alone is not in it.
TEST(RowPlan, IsInTheDigestRowByRow) {
    const auto digest = [](auto change) {
        sw::RowPlan all{.tiers = {"dp", "row"}, .tables = {plan()}};
        all.tables[0].tiers = {3, 97};
        all.tables[0].replicated = {7, 1, 4};
        change(all);
        sw::Digest of_plan;
        all.add_to(of_plan);
        return of_plan.bits16();
    };
    const auto same = digest([](auto&) {});
    EXPECT_EQ(digest([](auto& all) { all.tables[0].lookups = {1, 2}; }), same);
    EXPECT_NE(digest([](auto& all) { all.tables[0].replicated = {7, 1, 5}; }), same);
    EXPECT_NE(digest([](auto& all) { all.tables[0].replicated = {1, 7, 4}; }), same);
    EXPECT_NE(digest([](auto& all) { all.tables[0].replicated = {}; }), same);
    EXPECT_NE(digest([](auto& all) { all.tables[0].tiers = {4, 96}; }), same);
    EXPECT_NE(digest([](auto& all) { all.tables[0].table = "u"; }), same);
    EXPECT_NE(digest([](auto& all) { all.tables[0].rows = 101; }), same);
    EXPECT_NE(digest([](auto& all) { all.tiers = {"flex", "row"}; }), same);
}

}  // namespace
