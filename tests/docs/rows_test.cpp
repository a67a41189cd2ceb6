// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The fragments of docs/rows.md.

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/planning/flexshard.hpp"
#include "shardwise/planning/plan_seconds.hpp"
#include "shardwise/planning/replication_curve.hpp"
#include "shardwise/planning/row_law.hpp"
#include "shardwise/planning/row_plans.hpp"

namespace {

namespace sw = shardwise;

TEST(rows, are_planned) {
    // clang-format off
    const sw::MergedRows rows{{
        {.name = "clicks", .distribution = sw::row_law("zipf:1000000:1.05:400"), .dim = 64},
        {.name = "users", .distribution = sw::RowDistribution{{{.p = 0.01, .rows = 500}, {.p = 1e-6, .rows = 2000000}}}, .dim = 32},
    }, 32};  // counts are multiples of 32 rows a table
    const sw::Scaling scaling{.topology = {.hosts = 4, .ranks_per_host = 8}, .batch = 4096};
    const sw::FlexShardPlan plan =
        sw::plan_flexshard(rows, scaling, sw::paper_row_memory(scaling), {.cut = sw::FlexShardCut::flex});
    const std::int64_t replicated = plan.tables[0].dp.rows;      // the most often looked up rows of "clicks"
    const std::int64_t on_each_host = plan.tables[0].flex.rows;  // those that come next
    // clang-format on
    EXPECT_GT(replicated, 0);
    EXPECT_GT(on_each_host, replicated);
    EXPECT_EQ(plan.tables[1].dp.rows, 512);  // in chunks of 32
    EXPECT_LE(plan.net_bytes, 0);
}

TEST(rows, are_planned_in_order) {
    const sw::MergedRows rows{{{.name = "clicks", .distribution = sw::row_law("zipf:100000:1.05:400"), .dim = 64}}, 32};
    const sw::Scaling scaling{.topology = {.hosts = 4, .ranks_per_host = 8}, .batch = 4096};
    // clang-format off
const sw::FlexShardOptions options{.cut = sw::FlexShardCut::flex};
const sw::FlexShardPlan counts = sw::plan_flexshard(rows, scaling, sw::paper_row_memory(scaling), options);
const sw::RowPlan plan = sw::plan_in_order(rows, counts, options, scaling);
    // clang-format on
    EXPECT_EQ(plan.tiers, (std::vector<std::string>{"dp", "flex", "row"}));
    EXPECT_EQ(plan.tables[0].table, "clicks");
    EXPECT_EQ(plan.tables[0].tiers[1], counts.tables[0].flex.rows);
    EXPECT_TRUE(plan.tables[0].replicated.empty());
    EXPECT_EQ(plan.tables[0].touches[0].world, plan.tables[0].tiers[0]);  // p above 1e-3, 131072 samples
}

TEST(rows, are_planned_for_a_memory_of_ones_own) {
    const sw::MergedRows rows{{{.name = "clicks", .distribution = sw::row_law("zipf:1000000:1.05:400"), .dim = 64}},
                              32};
    const sw::Scaling scaling{.topology = {.hosts = 4, .ranks_per_host = 8}, .batch = 4096};
    // clang-format off
    // Weights and one moment a row of them, no dynamic memory at all.
    const sw::RowMemory weights{.name = "weights", .bytes = [](sw::Strategy strategy, double dim, double) {
        const double row_bytes = 4 * dim + 4;
        return strategy == sw::Strategy::dp ? row_bytes : row_bytes / (strategy == sw::Strategy::flex ? 8 : 32);
    }};
    const sw::FlexShardPlan plan = sw::plan_flexshard(rows, scaling, weights, {.flex = false, .budget = 1e6});
    // clang-format on
    EXPECT_EQ(plan.total().dp.rows, 3968);  // of 31/32 of 260 bytes each, in chunks of 32
}

TEST(rows, are_planned_from_a_profile) {
    const sw::AccessProfile profile{
        .samples = 10,
        .tables = {{.name = "item", .rows = 8, .lookups = 26, .error = 0, .seen = {{1, 4, 4}, {2, 9, 7}, {6, 13, 8}}}}};
    const std::vector<int> dims{16};
    sw::ThreadWorld world{sw::Topology{2, 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        // clang-format off
        const sw::Scaling scaling{.topology = comm.topology(), .batch = 512};  // samples a rank
        const sw::RowPlan plan = sw::plan_profile(profile, dims, scaling, sw::paper_row_memory(scaling), {.flex = false}, comm.size());
        const std::vector<double> shares = sw::expected_coverage(plan);  // (tier): of all look-ups, 0 to 1
        // clang-format on
        EXPECT_EQ(plan.tables[0].replicated, (std::vector<std::int64_t>{6, 2, 1}));
        EXPECT_EQ(shares, (std::vector<double>{1.0, 0.0}));
    });
}

}  // namespace
