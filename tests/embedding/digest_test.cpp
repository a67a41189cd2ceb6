// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/row.hpp"

/// \file
/// Ranks whose layers have the same tables, and other features in them, are told so instead of training on.

namespace shardwise_test {
namespace {

namespace sw = shardwise;

using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Optimizer<sw::Sgd>>;

/// Two tables of one shape, so that a batch fits whatever features they have. \param second  of the second table
std::vector<sw::TableConfig> tables(std::vector<std::string> first, std::vector<std::string> second) {
    return {{.name = "a", .rows = 10, .dim = 4, .features = std::move(first)},
            {.name = "b", .rows = 10, .dim = 4, .features = std::move(second)}};
}

/// What a step says when rank 1 has these tables, and rank 0 features x, y in the one and z in the other.
std::string complaint(const std::vector<sw::TableConfig>& of_rank_1) {
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {1, 2}, .deadline = std::chrono::seconds{20}}};
    try {
        world.run([&](sw::ThreadCommunicator& comm) {
            Layer layer{comm, comm.rank() == 0 ? tables({"x", "y"}, {"z"}) : of_rank_1};
            const sw::JaggedBatch<std::int64_t> batch{
                .samples = 1, .features = 3, .values = {1, 2, 3}, .lengths = {}, .weights = {}};
            const auto output = layer.forward(batch.view());
            layer.backward(output);
        });
    } catch (const sw::Mismatch& error) {
        return error.what();
    }
    return {};
}

TEST(LayerDigest, FeaturesAndTheirOrderAreComparedAmongRanks) {
    const std::string told = "runs another layer";
    EXPECT_EQ(complaint(tables({"x", "y"}, {"z"})), "");
    EXPECT_NE(complaint(tables({"y", "x"}, {"z"})).find(told), std::string::npos);  // in another order
    EXPECT_NE(complaint(tables({"x", "w"}, {"z"})).find(told), std::string::npos);  // another one
    EXPECT_NE(complaint(tables({"x", "z"}, {"y"})).find(told), std::string::npos);  // swapped between tables
    EXPECT_NE(complaint(tables({"x"}, {"y", "z"})).find(told), std::string::npos);  // in one order, in another table
}

}  // namespace
}  // namespace shardwise_test
