// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The fragments of docs/ids.md, each in a context in which it runs.

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/shardwise.hpp"

namespace docs {
namespace {

namespace sw = shardwise;

TEST(Ids, AtTheirOwners) {
    const std::vector<sw::TableConfig> tables{{.name = "user", .rows = 100, .dim = 4},
                                              {.name = "item", .rows = 50, .dim = 2}};
    std::vector<sw::JaggedBatch<int>> own{{.samples = 2, .features = 2, .values = {1, 2, 3, 4}},
                                          {.samples = 1, .features = 2, .values = {5, 6}},
                                          {.samples = 1, .features = 2, .values = {7, 8}}};
    const auto batches_of_all_ranks = [&] {
        std::vector<sw::JaggedView<int>> views;
        for (const auto& batch : own)
            views.push_back(batch.view());
        return views;
    };
    const std::vector<float> ones(100, 1.0F);
    const auto gradient_of = [&](const auto& output) {
        return sw::MatrixView<const float>{ones.data(), output.rows(), output.columns()};
    };
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 3}};
    world.run([&](sw::ThreadCommunicator& comm) {
        // clang-format off
        using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Table>, sw::Ids<sw::AtOwner>>;
        Layer layer{comm, tables};
        const std::vector<std::int64_t> samples{2, 1, 1};  // (rank): how many of a batch's samples are whose, on all ranks alike
        const std::vector<sw::JaggedView<int>> batches = batches_of_all_ranks();
        const sw::JaggedBatch<int> given = sw::concatenated<int>(batches, layer.given_features());
        const sw::MatrixView<const float> output = layer.forward(given.view(), samples);  // of this rank's samples
        layer.backward(gradient_of(output));
        // clang-format on
        EXPECT_EQ(output.rows(), samples[static_cast<std::size_t>(comm.rank())]);
    });
}

}  // namespace
}  // namespace docs
