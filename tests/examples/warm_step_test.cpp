// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/checks.hpp"
#include "model.hpp"
#include "options.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/data/generator.hpp"

/// \file
/// A warm training step of the whole DLRM takes no memory: neither from its accounts nor from the heap.

namespace sw = shardwise;

namespace {

class WarmDlrmStep : public testing::TestWithParam<const char*> {};

TEST_P(WarmDlrmStep, AllocatesNothing) {
    train_dlrm::Options options;
    options.batch = 64;
    options.rows = {50};
    options.bottom = {32, options.dim};
    options.top = {32, 1};
    options.policies.sharding = "row";
    options.policies.order = GetParam();
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        train_dlrm::Model model{options, comm};
        sw::ClickGenerator generator{{.rows = std::vector<std::int64_t>(train_dlrm::categories, options.rows[0]),
                                      .dense_columns = train_dlrm::dense_features,
                                      .slice = {.batch = options.batch, .rank = comm.rank(), .ranks = comm.size()}}};
        std::array<sw::ClickBatch, 2> batches;
        for (auto& batch : batches)
            generator.next(batch);
        const auto step = [&](std::size_t number) {
            const sw::ClickBatch& batch = batches.at(number % 2);
            model.start(batch);
            const auto logits = model.forward(batch);
            static_cast<void>(model.learn(batch, logits, options.batch * comm.size()));
        };
        for (std::size_t i = 0; i < 6; ++i)
            step(i);
        const auto counted = [&] {
            return std::array{model.embedding_memory().allocations(), model.dense_memory().allocations()};
        };
        const auto before_all = counted();
        int rounds_that_took_some = 0;  // a rank that runs ahead may find a queue longer than ever before: seldom
        for (std::size_t i = 0; i < 20; ++i) {
            const std::int64_t before = conformance::allocations;
            step(i);
            rounds_that_took_some += conformance::allocations != before ? 1 : 0;
        }
        EXPECT_LT(rounds_that_took_some, 5);
        EXPECT_EQ(counted(), before_all);
    });
}

INSTANTIATE_TEST_SUITE_P(Orders, WarmDlrmStep, testing::Values("tree", "wide_tree"),
                         [](const auto& instance) { return std::string{instance.param}; });

}  // namespace
