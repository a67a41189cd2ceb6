// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The fragments of docs/groups.md and docs/plan_groups.md, each in a context in which it runs.

#include <cstdio>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/dense/sample_counts.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/planning/group_choice.hpp"
#include "shardwise/planning/row_law.hpp"
#include "shardwise/planning/workloads.hpp"
#include "shardwise/shardwise.hpp"

namespace docs {
namespace {

namespace sw = shardwise;

struct Batch {
    sw::JaggedBatch<int> ids;
};
const std::vector<sw::TableConfig> grouped_tables{{.name = "item", .rows = 100, .dim = 4}};

TEST(Groups, ALoop) {
    const std::vector<sw::TableConfig>& tables = grouped_tables;
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        std::vector<Batch> batches(3);
        for (Batch& batch : batches)
            batch.ids = {.samples = 2, .features = 1, .values = {comm.rank(), 7}};
        std::vector<float> of_loss(2 * 4, 0.5F);
        const auto learn = [&](const Batch&, const auto& pooled) {
            EXPECT_EQ(pooled.columns(), 4);
            return sw::MatrixView<const float>{of_loss.data(), 2, 4};
        };
        // clang-format off
        using Layer = sw::EmbeddingLayer<sw::Groups<2>, sw::Optimizer<sw::RowwiseAdagrad<>>>;
        Layer layer{comm, tables};
        for (const Batch& batch : batches) {
            const auto pooled = layer.forward(batch.ids.view());
            layer.backward(learn(batch, pooled));  // updates this group's copy, and sends the first messages of a sync
        }
        layer.sync();  // copies are equal: before tables are read
        // clang-format on
        EXPECT_EQ(layer.groups().group_of(comm.rank()), comm.rank() / 2);

        const std::vector<std::int64_t> samples_by_rank{2, 2, 2, 0};
        std::vector<float> to_embeddings{1, 1};
        // clang-format off
        const sw::SampleCounts samples = sw::count_samples(layer.groups(), comm.rank(), samples_by_rank);
        // one backward pass, of a loss that is a mean over samples.world; then, for the embeddings,
        for (float& gradient : to_embeddings)
            gradient *= samples.to_group();  // world / group: as if it had been a mean over the group
        // clang-format on
        EXPECT_EQ(to_embeddings[0], comm.rank() < 2 ? 1.5F : 3.0F);
    });
}

struct Step {
    std::vector<sw::JaggedView<int>> views;  // (rank of the world)
};

TEST(Groups, WhatASyncMoves) {
    const std::vector<sw::TableConfig>& tables = grouped_tables;
    std::vector<sw::JaggedBatch<int>> batches;
    for (int rank = 0; rank < 4; ++rank)
        batches.push_back({.samples = 2, .features = 1, .values = {rank, 7}});
    std::vector<Step> steps(4);
    for (Step& step : steps)
        for (const auto& batch : batches)
            step.views.push_back(batch.view());
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<sw::Groups<2, sw::SyncEvery<3>>> layer{comm, tables};
        const std::vector<float> gradient(2 * 4, 0.5F);
        // clang-format off
        sw::SyncTally tally;  // of a layer that has made no step yet; SyncTally{layer.steps()} of one whose copies are equal now
        std::int64_t predicted = 0;
        for (const Step& step : steps) {  // (rank of the world): the batches of all ranks
            const sw::LayerCost cost = layer.predict_cost(step.views, nullptr, sw::BatchKind::any, &tally);
            const sw::Traffic sent = cost.sync.sent_by(comm.rank());  // nothing where no sync follows the step
            predicted += sent.host.payload + sent.cross_host.payload;
        }
        for (const sw::SegmentCost& round : layer.blueprint().predict_sync(tally, comm.rank())) {  // of layer.sync(), now
            const sw::Traffic sent = round.traffic.sent_by(comm.rank());
            predicted += sent.host.payload + sent.cross_host.payload;
        }
        // clang-format on
        for (const Step& step : steps) {
            static_cast<void>(layer.forward(step.views[static_cast<std::size_t>(comm.rank())]));
            layer.backward({gradient.data(), 2, 4});
        }
        EXPECT_TRUE(layer.sync());
        EXPECT_FALSE(layer.sync());
        EXPECT_GT(predicted, 0);
        EXPECT_EQ(layer.synced_payload(), predicted);
    });
}

TEST(Groups, AChoice) {
    using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Table>>;
    const sw::Topology cluster_topology{.hosts = 2, .ranks_per_host = 4};
    const sw::Workload workload = sw::workload_of(std::vector{sw::row_law("zipf:100:1:3")}, grouped_tables, 64);
    const std::vector<sw::TableConfig>& tables = grouped_tables;
    // clang-format off
        const sw::DrawGroups draw = [&](const sw::GroupOptions& groups) {
            return Layer::blueprint(cluster_topology, tables, {.groups = groups});
        };
        const std::vector<sw::GroupOptions> ways{
            {.count = 1}, {.count = 2}, {.count = 4}, {.count = 4, .placement = sw::GroupPlacement::inside_hosts}};
        const sw::GroupSetting setting{.compute = 3e-3, .lookup_rate = 20e9, .room = 40e9};  // seconds, bytes a second, bytes
        const std::vector<sw::GroupChoice> choices = sw::weigh_groups(draw, ways, workload, setting);
        const std::optional<std::size_t> best = sw::best_groups(choices);
        if (best)
            std::printf("%d groups %s: %.3f ms a step\n", choices[*best].groups.count,
                        choices[*best].groups.placement == sw::GroupPlacement::inside_hosts ? "inside hosts" : "across hosts",
                        1e3 * choices[*best].step.total());
    // clang-format on
    EXPECT_TRUE(best);
    EXPECT_TRUE(choices[3].possible());
}

}  // namespace
}  // namespace docs
