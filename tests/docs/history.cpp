// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// Prints what histories cost by their length, as sequences and as sums: FlexShard's Figure 1 for layers of this
/// library.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/planning/row_law.hpp"
#include "shardwise/planning/workloads.hpp"

namespace {

namespace sw = shardwise;

constexpr sw::Topology topology{.hosts = 4, .ranks_per_host = 8};
constexpr int tables = 8;
constexpr std::int64_t samples = 4096;

struct Cost {
    double moved = 0;   ///< MB that a rank sends in a step
    double memory = 0;  ///< MB of its buffers
};

Cost cost_of(int length, const std::string& pooling) {
    std::vector<sw::TableConfig> configs;
    for (int t = 0; t < tables; ++t)
        configs.push_back({.name = "history " + std::to_string(t), .rows = 1'000'000, .dim = 256});
    const std::vector<sw::RowDistribution> laws(
        tables, sw::row_law("zipf:1000000:1.05:" + std::to_string(static_cast<double>(length) / tables)));
    const sw::LayerBlueprint layer =
        sw::draw_layer(topology, configs, {.shardings = {"row"}, .optimizer = "sgd", .pooling = pooling});
    sw::MemoryTally tally;
    const sw::ExpectedLayerCost cost = layer.expect_cost(sw::workload_of(laws, configs, samples), &tally);
    double payload = 0;
    for (const auto* way : {&cost.forward, &cost.backward})
        payload += way->total().host.payload + way->total().cross_host.payload;
    return {.moved = payload / topology.ranks() / 1e6, .memory = static_cast<double>(tally.bytes()) / 1e6};
}

}  // namespace

int main() {
    std::printf(
        "ids of a sample       as sequences              as sums\n"
        "in 8 tables        MB sent  MB buffers     MB sent  MB buffers\n");
    for (const int length : {8, 40, 80, 200, 400, 800, 2000}) {
        const Cost sequences = cost_of(length, "none");
        const Cost sums = cost_of(length, "sum");
        std::printf("%11d       %8.0f  %10.0f    %8.0f  %10.0f\n", length, sequences.moved, sequences.memory,
                    sums.moved, sums.memory);
    }
}
