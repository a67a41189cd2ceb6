// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/row.hpp"

/// \file
/// Two layers of one configuration on one communicator are two layers: a rank that calls them in another order is told
/// so, instead of learning the one's gradient into the other.

namespace shardwise_test {
namespace {

namespace sw = shardwise;

using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Optimizer<sw::Sgd>>;

/// What two ranks say that make the layers `first`, `second` of one configuration and run a step of each, rank 1 in
/// another order where it is `swapped`.
template <class Communicator>
std::string complaint(bool swapped) {
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {1, 2}, .deadline = std::chrono::seconds{20}}};
    try {
        world.run([&](sw::ThreadCommunicator& below) {
            Communicator comm{below};
            const std::vector<sw::TableConfig> tables{{.name = "t", .rows = 10, .dim = 4}};
            Layer first{comm, tables};
            Layer second{comm, tables};
            const bool turned = swapped && comm.rank() == 1;
            const sw::JaggedBatch<std::int64_t> batch{
                .samples = 1, .features = 1, .values = {3}, .lengths = {}, .weights = {}};
            for (Layer* layer : {turned ? &second : &first, turned ? &first : &second}) {
                auto flight = layer->start(batch.view());
                const auto output = layer->forward(flight);
                layer->backward(std::move(flight), output);
            }
        });
    } catch (const sw::Mismatch& error) {
        return error.what();
    }
    return {};
}

/// The communicator itself.
struct Plain {
    sw::ThreadCommunicator& below;
    [[nodiscard]] int rank() const { return below.rank(); }
    operator sw::CommunicatorRef() const { return below; }
};

TEST(TwoLayers, OfOneConfigurationInOneOrderTrain) {
    EXPECT_EQ(complaint<Plain>(false), "");
    EXPECT_EQ(complaint<sw::CountingCommunicator<sw::ThreadCommunicator>>(false), "");
}

TEST(TwoLayers, OfOneConfigurationInAnotherOrderOnOneRankAreAMismatch) {
    EXPECT_NE(complaint<Plain>(true).find("runs another layer"), std::string::npos);
    EXPECT_NE(complaint<sw::CountingCommunicator<sw::ThreadCommunicator>>(true).find("runs another layer"),
              std::string::npos);
}

}  // namespace
}  // namespace shardwise_test
