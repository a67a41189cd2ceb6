// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/optimizer/frozen.hpp"

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/embedding/make_layer.hpp"

/// \file
/// Layers that learn nothing, beside what the laws say of them: that there is nothing of a backward pass.

namespace frozen_layers {
namespace {

namespace sw = shardwise;

const std::vector<sw::TableConfig> tables = {{.name = "a", .rows = 50, .dim = 4}, {.name = "b", .rows = 9, .dim = 2}};
const sw::Topology four_ranks{.hosts = 2, .ranks_per_host = 2};

template <class Call>
std::string message_of(Call call) {
    try {
        call();
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return "nothing was wrong";
}

sw::JaggedBatch<std::int64_t> batch_of(int rank, int number) {
    sw::JaggedBatch<std::int64_t> batch{.samples = 2, .features = 2, .values = {}, .lengths = {}, .weights = {}};
    for (const std::int64_t rows : {50, 9})
        for (int i = 0; i < 2; ++i)
            batch.values.push_back((rank * 5 + number * 7 + i * 3) % rows);
    return batch;
}

TEST(Frozen, ThePlanHasNoAdjoint) {
    const sw::LayerBlueprint paper = sw::EmbeddingLayer<sw::Optimizer<sw::Frozen>>::blueprint(four_ranks, tables);
    const sw::Program& program = paper.traits().program;
    EXPECT_EQ(program.forward, program.segments.size());
    EXPECT_EQ(paper.static_bytes(0, sw::MemoryPart::moments), 0);
    const sw::LayerBlueprint learning = sw::EmbeddingLayer<>::blueprint(four_ranks, tables);
    EXPECT_EQ(paper.static_bytes(0), learning.static_bytes(0, sw::MemoryPart::tables));
    EXPECT_LT(program.parts, learning.traits().program.parts);  // flights keep no tapes of a backward pass
}

TEST(Frozen, BackwardIsRefusedByName) {
    sw::ThreadWorld world{four_ranks};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto layer = sw::make_layer(comm, tables, {.optimizer = "frozen"});
        EXPECT_FALSE(layer->learns());
        const auto batch = batch_of(comm.rank(), 0);
        auto flight = layer->start(batch.view());
        const sw::LayerVectors vectors = layer->forward(flight);
        EXPECT_EQ(message_of([&] { layer->backward(std::move(flight), vectors); }),
                  "backward of a layer whose optimizer 'frozen' learns nothing: let the flight end with its handle, or "
                  "give the layer another optimizer");
        EXPECT_EQ(layer->steps(), 0);
        flight = layer->start(batch.view());  // ranks go on together
        EXPECT_EQ(layer->forward(flight).pooled.rows(), 2);
    });
}

/// Flights that are looked up late, and ended in another order than they were started.
TEST(Frozen, SeveralFlightsAreUnderWay) {
    sw::ThreadWorld world{four_ranks};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<sw::Optimizer<sw::Frozen>> layer{comm, tables};
        std::vector<std::vector<float>> alone;
        for (int number = 0; number < 6; ++number) {
            const auto batch = batch_of(comm.rank(), number);
            const auto result = layer.forward(batch.view());
            alone.emplace_back(result.data(), result.data() + result.rows() * result.columns());
        }
        std::deque<sw::LayerFlight> flights;
        for (int number = 0; number < 6; ++number) {
            const auto batch = batch_of(comm.rank(), number);
            flights.push_back(layer.start(batch.view()));
        }
        std::vector<sw::MatrixView<const float>> results;
        for (sw::LayerFlight& flight : flights)
            results.push_back(layer.forward(flight));
        for (std::size_t number = 0; number < 6; ++number)
            EXPECT_EQ(std::vector<float>(results[number].data(),
                                         results[number].data() + results[number].rows() * results[number].columns()),
                      alone[number]);
        while (!flights.empty()) {
            flights.pop_back();
            if (!flights.empty()) flights.pop_front();
        }
        EXPECT_EQ(layer.forward(batch_of(comm.rank(), 1).view()).rows(), 2);
    });
}

TEST(Frozen, CopiesInGroupsAreNeverSynced) {
    sw::ThreadWorld world{four_ranks};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<sw::Optimizer<sw::Frozen>, sw::Groups<2>> layer{comm, tables};
        EXPECT_TRUE(layer.sync_program().segments.empty());
        EXPECT_EQ(layer.predict_static_bytes(comm.rank(), sw::MemoryPart::marks), 0);
        EXPECT_EQ(layer.forward(batch_of(comm.rank(), 0).view()).rows(), 2);
        EXPECT_FALSE(layer.sync());
        EXPECT_EQ(layer.synced_payload(), 0);
    });
    const auto refused = [&](const sw::GroupOptions& groups) {
        return message_of(
            [&] { return sw::draw_layer(four_ranks, tables, {.optimizer = "frozen"}, {.groups = groups}); });
    };
    EXPECT_EQ(refused({.count = 2, .sync_every = 4}),
              "sync_every 4 where rows are frozen, and copies never differ: leave it out");
    EXPECT_EQ(refused({.count = 2, .rows = sw::SyncRows::all}),
              "rows all where rows are frozen, and copies never differ: leave it out");
    EXPECT_EQ(refused({.count = 2, .placement = sw::GroupPlacement::inside_hosts}), "nothing was wrong");
}

}  // namespace
}  // namespace frozen_layers
