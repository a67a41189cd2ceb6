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
#include "sequence_options.hpp"
#include "sequences.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/data/generator.hpp"

/// \file
/// A warm training step of a whole model takes no memory: neither from its accounts nor from the heap.

namespace sw = shardwise;

namespace {

/// Steps on two batches in turn until nothing should be new, then looks for memory taken. \param samples  of a batch
void expect_warm_steps(train_dlrm::Model& model, const std::array<sw::ClickBatch, 2>& batches, std::int64_t samples) {
    const auto step = [&](std::size_t number) {
        const sw::ClickBatch& batch = batches.at(number % 2);
        model.start(batch);
        const auto logits = model.forward(batch);
        static_cast<void>(model.learn(batch, logits, {.world = samples, .group = samples}));
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
}

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
        expect_warm_steps(model, batches, options.batch * comm.size());
    });
}

TEST_P(WarmDlrmStep, OfSequencesAllocatesNothing) {
    for (const char* pooling : {"attention", "transformer", "mean"}) {
        SCOPED_TRACE(pooling);
        train_dlrm::Options options;
        train_dlrm::set_sequence_defaults(options);
        options.batch = 16;
        options.dim = 8;
        options.policies.order = GetParam();
        options.sequences->pooling = pooling;
        options.sequences->rows = 300;
        options.sequences->users = 40;
        options.sequences->histories = train_dlrm::make_histories(*options.sequences, {}, 1.0, 1);
        sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
        world.run([&](sw::ThreadCommunicator& comm) {
            train_dlrm::Model model{options, comm};
            sw::NextItems source{
                train_dlrm::next_items(*options.sequences, sw::NextItemOptions::Part::train, 1,
                                       {.batch = options.batch, .rank = comm.rank(), .ranks = comm.size()})};
            std::array<sw::ClickBatch, 2> batches;
            for (auto& batch : batches)
                source.next(batch);
            expect_warm_steps(model, batches, options.batch * comm.size());
        });
    }
}

INSTANTIATE_TEST_SUITE_P(Orders, WarmDlrmStep, testing::Values("tree", "wide_tree"),
                         [](const auto& instance) { return std::string{instance.param}; });

}  // namespace
