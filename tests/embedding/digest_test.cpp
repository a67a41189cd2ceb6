// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/core/facts.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/adagrad.hpp"
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

/// What ranks say whose layers are `layer(rank)`.
template <class Make>
std::vector<std::string> complaints(const Make& make, int ranks = 2) {
    std::vector<std::string> said(static_cast<std::size_t>(ranks));
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {1, ranks}, .deadline = std::chrono::seconds{20}}};
    try {
        world.run([&](sw::ThreadCommunicator& comm) {
            try {
                const auto layer = make(comm, comm.rank());
                const sw::JaggedBatch<std::int64_t> batch{
                    .samples = 1, .features = 1, .values = {1}, .lengths = {}, .weights = {}};
                auto flight = layer->start(batch.view());
                auto next = layer->start(batch.view());  // on its way already, as with prefetching
                static_cast<void>(layer->forward(flight));
            } catch (const sw::Mismatch& error) {
                said[static_cast<std::size_t>(comm.rank())] = error.what();
                throw;
            }
        });
    } catch (const sw::Mismatch&) {
    }
    return said;
}
std::unique_ptr<Layer> layer_of(sw::ThreadCommunicator& comm, std::int64_t rows, const sw::LayerOptions& options = {},
                                const char* name = "user") {
    return std::make_unique<Layer>(comm, std::vector<sw::TableConfig>{{.name = name, .rows = rows, .dim = 4}}, options);
}
bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(LayerDigest, WhatDiffersIsTold) {
    const auto rows = complaints([](auto& comm, int rank) { return layer_of(comm, rank == 1 ? 51 : 50); }, 3);
    EXPECT_TRUE(has(rows[0], "rank 1 runs another layer (table 'user': 50 rows here, 51 on rank 1): give")) << rows[0];
    EXPECT_TRUE(has(rows[1], "rank 0 runs another layer (table 'user': 51 rows here, 50 on rank 0): give")) << rows[1];
    EXPECT_TRUE(has(rows[2], "rank 1 runs another layer (table 'user': 50 rows here, 51 on rank 1): give")) << rows[2];

    const auto difference = [](auto make) { return complaints(make)[0]; };
    EXPECT_TRUE(has(difference([](auto& comm, int rank) { return layer_of(comm, 50, {.seed = rank == 0 ? 1U : 7U}); }),
                    "(seed: 1 here, 7 on rank 1)"));
    EXPECT_TRUE(has(difference([](auto& comm, int rank) {
                        return layer_of(comm, 50, {.learning_rate = {.base = rank == 0 ? 0.5F : 0.25F}});
                    }),
                    "(learning rate: other here than on rank 1"));
    EXPECT_TRUE(
        has(difference([](auto& comm, int rank) { return layer_of(comm, 50, {}, rank == 0 ? "user" : "item"); }),
            "(tables: user here, item on rank 1"));
    EXPECT_TRUE(has(difference([](auto& comm, int rank) {
                        auto layer = layer_of(comm, 50);
                        layer->set_steps(rank == 0 ? 3 : 4);
                        return layer;
                    }),
                    "(steps: 3 here, 4 on rank 1)"));
    EXPECT_TRUE(has(difference([](auto& comm, int rank) {
                        using Other = sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Optimizer<sw::Adagrad>>;
                        const std::vector<sw::TableConfig> tables{{.name = "user", .rows = 50, .dim = 4}};
                        return rank == 0 ? std::unique_ptr<sw::LayerBase>{std::make_unique<Layer>(comm, tables)}
                                         : std::make_unique<Other>(comm, tables);
                    }),
                    "(optimizer: sgd here, adagrad on rank 1"));
}

TEST(Facts, DifferencesInWords) {
    const std::vector<sw::Fact> mine{{.of = "table 'a'", .what = "rows", .value = "5"},
                                     {.of = "table 'a'", .what = "features", .value = "x, y"},
                                     {.of = "seed", .what = "", .value = "1"},
                                     {.of = "rates", .what = "", .value = "", .digest = 7}};
    EXPECT_EQ(sw::pack_facts(sw::unpack_facts(sw::pack_facts(mine))), sw::pack_facts(mine));
    EXPECT_EQ(sw::difference(mine, mine, 3), "");
    std::vector<sw::Fact> others = mine;  // what follows is told where nothing else is
    others[3].digest = 8;
    std::vector<sw::Fact> following = mine;
    following[3].follows = true;
    EXPECT_EQ(sw::difference(following, others, 3), "rates: other here than on rank 3");
    others[2].value = "2";
    EXPECT_EQ(sw::difference(following, others, 3), "seed: 1 here, 2 on rank 3");
    std::vector<sw::Fact> theirs = mine;
    theirs[3].digest = 8;
    EXPECT_EQ(sw::difference(mine, theirs, 3), "rates: other here than on rank 3");
    theirs[0].value = "6";
    theirs[1].value = "";
    EXPECT_EQ(sw::difference(mine, theirs, 3),
              "table 'a': 5 rows here, 6 on rank 3; table 'a', features: x, y here, none on rank 3; rates: other here "
              "than on rank 3");
    theirs[2].value = "2";
    EXPECT_TRUE(has(sw::difference(mine, theirs, 3), "; seed: 1 here, 2 on rank 3; and 1 more"));
    const std::string packed = sw::pack_facts(mine);
    for (std::size_t size = 0; size < packed.size(); ++size)  // what another rank sent is not trusted
        EXPECT_LT(sw::unpack_facts(packed.substr(0, size)).size(), mine.size());
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
