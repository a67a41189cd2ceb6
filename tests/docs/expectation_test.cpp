// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The fragments of docs/expectation.md.

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/plan/cost.hpp"
#include "shardwise/planning/access_profile.hpp"
#include "shardwise/planning/workloads.hpp"
#include "shardwise/topology/cluster.hpp"

namespace {

namespace sw = shardwise;

TEST(expectation, is_what_the_page_says) {
    // one id a sample: either of two rows
    const sw::AccessProfile profile{.samples = 1000,
                                    .tables = {{.name = "item",
                                                .rows = 20000,
                                                .lookups = 1000,
                                                .seen = {{.row = 3, .lookups = 500, .samples = 500},
                                                         {.row = 77, .lookups = 500, .samples = 500}}}}};
    // clang-format off
    const std::vector<sw::TableConfig> tables = {{.name = "item", .rows = 20000, .dim = 32}};
    const sw::LayerBlueprint layer = sw::draw_layer({.hosts = 4, .ranks_per_host = 8}, tables, {.shardings = {"row"}});
    const sw::Workload workload = sw::workload_of(profile, tables, 4096);  // samples a rank
    sw::MemoryTally tally;
    const sw::ExpectedLayerCost cost = layer.expect_cost(workload, &tally, 0);
    const double across_hosts = cost.forward.total().cross_host.payload;  // bytes
    const double rows_of_a_host = cost.all_touched().host;                // distinct rows that its samples look up
    const std::int64_t dynamic_bytes = tally.bytes();                     // of the buffers of rank 0
    const double seconds = sw::seconds(sw::rounded(cost.segments), sw::Cluster{});
    // clang-format on
    // of 32 ranks' ids half go to rank 3 and half to rank 13, on hosts 0 and 1; 24 ranks are on other hosts than each
    EXPECT_DOUBLE_EQ(across_hosts, 24 * 4096 * (4 + 4 * 32));
    EXPECT_DOUBLE_EQ(rows_of_a_host, 2);
    EXPECT_GT(dynamic_bytes, 4096 * 32 * 4);
    EXPECT_GT(seconds, 0);
}

}  // namespace
