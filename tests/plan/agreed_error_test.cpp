// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/row.hpp"

/// \file
/// When several ranks find something wrong at once, all ranks throw one text: the first rank's.

namespace shardwise_test {
namespace {

namespace sw = shardwise;

using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Optimizer<sw::Sgd>>;

sw::JaggedBatch<std::int64_t> batch_of(std::int64_t id) {
    return {.samples = 1, .features = 1, .values = {id}, .lengths = {}, .weights = {}};
}

/// (rank): what it throws when the ranks `bad` look up ids that are no rows, each another one.
std::vector<std::string> errors(const std::set<int>& bad) {
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {2, 2}, .deadline = std::chrono::seconds{20}}};
    std::vector<std::string> all(4);
    world.run([&](sw::ThreadCommunicator& comm) {
        Layer layer{comm, {{.name = "t", .rows = 10, .dim = 3}}};
        try {
            static_cast<void>(layer.forward(batch_of(bad.contains(comm.rank()) ? 90 + comm.rank() : 1).view()));
        } catch (const sw::BadInput& error) {
            all[static_cast<std::size_t>(comm.rank())] = error.what();
        }
        layer.backward(layer.forward(batch_of(2).view()));  // the layer goes on
    });
    return all;
}

TEST(AgreedError, IsTheFirstRanksOnEveryRank) {
    const auto text = [](int rank, const std::string& more) {
        return "rank " + std::to_string(rank) + ": feature 't', sample 0: id " + std::to_string(90 + rank) +
               " is not a row of table 't'; its rows are 0 to 9" + more;
    };
    EXPECT_EQ(errors({}), std::vector<std::string>(4, ""));
    EXPECT_EQ(errors({2}), std::vector<std::string>(4, text(2, "")));
    EXPECT_EQ(errors({1, 3}), std::vector<std::string>(4, text(1, " (and 1 more ranks found something wrong)")));
    EXPECT_EQ(errors({0, 1, 3}), std::vector<std::string>(4, text(0, " (and 2 more ranks found something wrong)")));
    EXPECT_EQ(errors({0, 1, 2, 3}), std::vector<std::string>(4, text(0, " (and 3 more ranks found something wrong)")));
}

/// What a rank lets escape ends its world, and the others still hear of it: each has begun the round that says so.
TEST(AgreedError, IsThrownByAllRanksThoughOneLetsItEscapeAtOnce) {
    for (int times = 0; times < 100; ++times) {
        sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {2, 2}, .deadline = std::chrono::seconds{20}}};
        std::vector<std::string> all(4);
        EXPECT_THROW(world.run([&](sw::ThreadCommunicator& comm) {
            Layer layer{comm, {{.name = "t", .rows = 10, .dim = 3}}};
            try {
                static_cast<void>(layer.forward(batch_of(comm.rank() == 1 ? 91 : 1).view()));
            } catch (const std::exception& error) {
                all[static_cast<std::size_t>(comm.rank())] = error.what();
                throw;
            }
        }),
                     sw::BadInput);
        ASSERT_EQ(all, std::vector<std::string>(
                           4, "rank 1: feature 't', sample 0: id 91 is not a row of table 't'; its rows are 0 to 9"));
    }
}

}  // namespace
}  // namespace shardwise_test
