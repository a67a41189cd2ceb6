// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The code of docs/requests.md.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/shardwise.hpp"

namespace docs {
namespace {

namespace sw = shardwise;

sw::MatrixView<const float> gradient_of(const sw::MatrixView<const float>& output) {
    return output;
}

TEST(Requests, AreCoalesced) {
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        const sw::JaggedBatch<int> owning{
            .samples = 2, .features = 3, .values = {7, 7, 12, 40, 12, 40}, .lengths = {1, 1, 2, 1, 0, 1}};
        const sw::JaggedView<int> batch = owning.view();
        using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Requests<sw::Coalesced>>;
        Layer layer{comm,
                    {{.name = "user", .rows = 1000, .dim = 2},
                     {.name = "item", .rows = 5000, .dim = 4, .features = {"seen", "bought"}}}};
        const sw::MatrixView<const float> output = layer.forward(batch);
        layer.backward(gradient_of(output));
        const sw::RequestCounts& counts = layer.request_counts();  // of this rank's batches so far
        const double times = static_cast<double>(counts.lookups) / static_cast<double>(counts.distinct);
        EXPECT_EQ(counts.lookups, 6);
        EXPECT_EQ(counts.distinct, 3);  // rows 7 of users, 12 and 40 of items
        EXPECT_EQ(times, 2.0);
    });
}

TEST(Requests, AreChosenByTheCostReader) {
    const sw::Topology cluster{.hosts = 4, .ranks_per_host = 8};
    const std::vector<sw::TableConfig> tables = {{.name = "item", .rows = 1000, .dim = 16}};
    const auto best_for = [&](int rows) {
        std::vector<sw::JaggedBatch<int>> owning(32);
        std::vector<sw::JaggedView<int>> batches;
        for (auto& batch : owning) {
            batch.samples = 16;
            batch.features = 1;
            for (int i = 0; i < 16 * 64; ++i)
                batch.values.push_back(i * 37 % rows);
            batch.lengths.assign(16, 64);
            batches.push_back(batch.view());
        }
        const auto seconds = [&](const std::string& requests) {
            const sw::LayerBlueprint layer = sw::draw_layer(cluster, tables, {.requests = requests});
            return sw::seconds(layer.predict_cost(batches).segments, sw::Cluster{});
        };
        const std::string best = seconds("coalesced") < seconds("raw") ? "coalesced" : "raw";
        return best;
    };
    EXPECT_EQ(best_for(40), "coalesced");
    EXPECT_EQ(best_for(1000), "raw");
}

}  // namespace
}  // namespace docs
