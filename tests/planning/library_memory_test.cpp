// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/library_memory.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/core/error.hpp"
#include "shardwise/planning/row_costs.hpp"
#include "shardwise/planning/row_law.hpp"
#include "shardwise/planning/workloads.hpp"

/// \file
/// Rows, one by one, take what a whole layer of them does.

namespace {

namespace sw = shardwise;

struct Rows {
    std::int64_t dp;
    std::int64_t flex;
};

/// What all rows take by the model, over what the layer's static and expected dynamic bytes are.
double by_rows_over_by_layer(const sw::Topology& topology, const std::string& law, int dim, const Rows& rows,
                             const sw::LayerNames& of) {
    constexpr std::int64_t batch = 1024;
    sw::LayerNames names = of;
    names.shardings = {"dp", "flex", "row"};
    names.tiered = true;
    names.pooling = "none";
    const std::vector<sw::RowDistribution> laws{sw::row_law(law)};
    sw::TableConfig table;
    table.name = "t";
    table.rows = laws[0].rows();
    table.dim = dim;
    const sw::RowPlan plan{.tiers = names.shardings,
                           .tables = {{.table = "t",
                                       .rows = table.rows,
                                       .tiers = {rows.dp, rows.flex, table.rows - rows.dp - rows.flex},
                                       .replicated = {},
                                       .unseen = {}}}};
    const sw::LayerBlueprint layer = sw::draw_layer(topology, {table}, names, {.rows = &plan});
    const sw::Workload workload = sw::workload_of(laws, {table}, batch);
    double of_layer = 0.0;  // the mean over ranks: hot rows are somewhere
    for (int rank = 0; rank < topology.ranks(); ++rank) {
        sw::MemoryTally tally;
        static_cast<void>(layer.expect_cost(workload, &tally, rank));
        of_layer += static_cast<double>(layer.static_bytes(rank) + tally.needed()) / topology.ranks();
    }

    const sw::RowMemory memory = sw::library_row_memory({.topology = topology, .batch = batch}, of);
    double of_rows = 0.0;
    std::int64_t row = 0;
    for (const sw::RowRun& run : laws[0].runs())
        for (std::int64_t i = 0; i < run.rows; ++i, ++row) {
            const auto strategy = row < rows.dp               ? sw::Strategy::dp
                                  : row < rows.dp + rows.flex ? sw::Strategy::flex
                                                              : sw::Strategy::row;
            // these rows are in the order of their frequency, and need no map
            of_rows += memory.bytes(strategy, dim, run.p) - 8.0 / 35.0 - (strategy == sw::Strategy::row ? 0.0 : 8.0);
        }
    return of_rows / of_layer;
}

TEST(LibraryMemory, AddsUpToThatOfALayer) {
    for (const sw::Topology& topology : {sw::Topology{.hosts = 2, .ranks_per_host = 4},
                                         {.hosts = 2, .ranks_per_host = 2},
                                         {.hosts = 3, .ranks_per_host = 1},
                                         {.hosts = 1, .ranks_per_host = 4}})
        for (const std::string law : {"zipf:40000:1.0:40", "exponential:20000:4000:100"})
            for (const Rows rows : {Rows{0, 0}, {256, 0}, {0, 1024}, {512, 4096}, {20000, 0}})
                for (const sw::LayerNames& names : {sw::LayerNames{}, {.optimizer = "adam", .forward_wire = "bf16"}})
                    for (const int dim : {4, 24})
                        // messages of vectors are taken to be the longest: too little where nearly all rows are in DP
                        EXPECT_NEAR(by_rows_over_by_layer(topology, law, dim, rows, names), 1.0,
                                    rows.dp < 1000 ? 0.045 : 0.07)
                            << topology.hosts << "x" << topology.ranks_per_host << " " << law << " dim " << dim
                            << " dp " << rows.dp << " flex " << rows.flex << " " << names.optimizer;
}

/// Static bytes to the byte, where nothing is looked up.
TEST(LibraryMemory, HasTheOptimizersSlots) {
    const sw::Scaling scaling{.topology = {.hosts = 4, .ranks_per_host = 8}, .batch = 4096};
    const auto bytes = [&](const std::string& optimizer, sw::Strategy strategy) {
        return sw::library_row_memory(scaling, {.optimizer = optimizer}).bytes(strategy, 16, 0.0);
    };
    EXPECT_DOUBLE_EQ(bytes("sgd", sw::Strategy::dp), 64 + 8 + 8.0 / 35);
    EXPECT_DOUBLE_EQ(bytes("rowwise_adagrad", sw::Strategy::dp), 68 + 8 + 8.0 / 35);
    EXPECT_DOUBLE_EQ(bytes("adam", sw::Strategy::flex), 3 * 64 / 8.0 + 8 + 8.0 / 35);
    EXPECT_DOUBLE_EQ(bytes("adagrad", sw::Strategy::row), 2 * 64 / 32.0 + 8.0 / 35);
    EXPECT_THROW(static_cast<void>(bytes("none", sw::Strategy::dp)), sw::BadInput);
}

/// Hot rows take less where they are replicated, cold ones less where they are not.
TEST(LibraryMemory, ReplicationPaysForHotRows) {
    const sw::Scaling scaling{.topology = {.hosts = 4, .ranks_per_host = 8}, .batch = 4096};
    const sw::RowMemory memory = sw::library_row_memory(scaling);
    const sw::NeutralPoints neutral = sw::neutral_points(scaling, memory, 256);
    EXPECT_GT(neutral.memory_dp_row, 1e-5);
    EXPECT_LT(neutral.memory_dp_row, 1e-1);
    for (double p = 1e-9; p < 1.0; p *= 1.5) {
        const bool pays = memory.bytes(sw::Strategy::dp, 256, p) <= memory.bytes(sw::Strategy::row, 256, p);
        EXPECT_EQ(pays, p >= neutral.memory_dp_row) << p;
    }
}

}  // namespace
