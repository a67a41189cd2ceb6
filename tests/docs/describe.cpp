// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// Prints what the documentation shows of plans: `describe row`, `describe row mermaid`, `describe dp`,
/// `describe two_stage`, ...

#include <cstdio>
#include <string>
#include <vector>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/shardwise.hpp"

namespace {

namespace sw = shardwise;

/// The plan of a layer on two hosts of two ranks, with the bytes of a batch of 64 samples a rank, one id a bag;
/// coalesced, every id twice.
template <class S, class C = sw::Flat, class R = sw::Raw, class I = sw::AtSample>
std::string description(bool mermaid) {
    using Layer = sw::EmbeddingLayer<sw::Sharding<S>, sw::Collective<C>, sw::Requests<R>, sw::Ids<I>,
                                     sw::Optimizer<sw::RowwiseAdagrad<>>>;
    std::string text;
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        if (comm.rank() != 0) return;
        std::vector<sw::TableConfig> tables{{.name = "country", .rows = 200, .dim = 16, .sharding = "dp"},
                                            {.name = "category", .rows = 5000, .dim = 16, .sharding = "table"},
                                            {.name = "item", .rows = 100'000, .dim = 16, .sharding = "row"}};
        if (!Layer::policies::mixed)
            for (sw::TableConfig& table : tables)
                table.sharding.clear();
        const Layer layer{comm, tables};
        std::vector<sw::JaggedBatch<int>> batches(4);
        std::vector<sw::JaggedView<int>> views;
        for (int rank = 0; rank < 4; ++rank) {
            auto& batch = batches[static_cast<std::size_t>(rank)];
            batch.samples = 64;
            batch.features = 3;
            for (int i = 0; i < 3 * 64; ++i)
                batch.values.push_back((i * 37 + rank * 11) % (Layer::policies::coalesced ? 32 : 200));
            views.push_back(batch.view());
        }
        text = mermaid ? sw::describe_mermaid(layer.program(), layer.branches())
                       : sw::describe(layer.program(), layer.branches(), layer.predict_cost(views).segments);
    });
    return text;
}

/// Four ranks in two groups, two tables, each over the two ranks of a group: who has what, and what a step and a sync
/// move of a batch of 64 samples a rank, one id a bag. (Two-dimensional sparse parallelism, Figure 3)
std::string replica_groups(bool mermaid) {
    const sw::Topology topology{.hosts = 2, .ranks_per_host = 2};
    using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Groups<2>>;
    const sw::LayerBlueprint layer = Layer::blueprint(
        topology, {{.name = "user", .rows = 1000, .dim = 16}, {.name = "item", .rows = 5000, .dim = 16}});
    const sw::ReplicaGroups& groups = layer.groups().ranks;
    const auto node = [](int rank) { return "r" + std::to_string(rank); };
    const auto rows_of = [&](int rank) {
        std::string text;
        for (const sw::TablePlacement& table : layer.parts()[0].placement.tables)
            for (const sw::ShardPlacement& shard : table.shards)
                if (shard.owner == groups.index_of(rank))
                    text += (text.empty() ? "" : ", ") + std::to_string(shard.rows) + " rows of " + table.name;
        return text;
    };
    if (mermaid) {
        std::string text = "flowchart LR\n";
        for (int group = 0; group < groups.count(); ++group) {
            text += "    subgraph g" + std::to_string(group) + "[\"group " + std::to_string(group) + "\"]\n";
            for (int index = 0; index < groups.group.size; ++index) {
                const int rank = groups.rank_of(group, index);
                text += "        " + node(rank) + "[\"rank " + std::to_string(rank) + "<br/>" + rows_of(rank) + "\"]\n";
            }
            text += "        " + node(groups.rank_of(group, 0)) + " <-->|\"ids, vectors, gradients\"| " +
                    node(groups.rank_of(group, 1)) + "\n    end\n";
        }
        for (int index = 0; index < groups.group.size; ++index)
            text +=
                "    " + node(groups.rank_of(0, index)) + " <-.->|\"sync\"| " + node(groups.rank_of(1, index)) + "\n";
        return text;
    }
    std::string text;
    for (int rank = 0; rank < topology.ranks(); ++rank)
        text += "rank " + std::to_string(rank) + ": group " + std::to_string(groups.group_of(rank)) + ", " +
                rows_of(rank) + "\n";
    std::vector<sw::JaggedBatch<int>> batches(4);
    std::vector<sw::JaggedView<int>> views;
    for (int rank = 0; rank < topology.ranks(); ++rank) {
        auto& batch = batches[static_cast<std::size_t>(rank)];
        batch.samples = 64;
        batch.features = 2;
        for (int i = 0; i < 2 * 64; ++i)
            batch.values.push_back((i * 37 + rank * 11) % 200);
        views.push_back(batch.view());
    }
    const sw::LayerCost cost = layer.predict_cost(views);
    return text + "\n" + sw::describe(layer.traits().program, layer.branches(), cost.segments) + "sync of copies\n" +
           sw::describe(layer.groups().sync, {}, cost.sync_segments);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string sharding = argc > 1 ? argv[1] : "row";
    const bool mermaid = argc > 2 && std::string{argv[2]} == "mermaid";
    std::string text;
    if (sharding == "row") text = description<sw::Row>(mermaid);
    if (sharding == "dp") text = description<sw::DP>(mermaid);
    if (sharding == "mixed") text = description<sw::Mixed<sw::DP, sw::Table, sw::Row>>(mermaid);
    if (sharding == "two_stage") text = description<sw::Row, sw::TwoStage>(mermaid);
    if (sharding == "hierarchical") text = description<sw::Row, sw::Hierarchical>(mermaid);
    if (sharding == "hot") {
        const auto traits = sw::KnownPolicies{}.traits({.shardings = {"dp", "row"}, .tiered = true});
        text = sw::describe(traits.program_of(sw::BatchKind::hot), {"dp"});
    }
    if (sharding == "coalesced") text = description<sw::Row, sw::Flat, sw::Coalesced>(mermaid);
    if (sharding == "at_owner") text = description<sw::Table, sw::Flat, sw::Raw, sw::AtOwner>(mermaid);
    if (sharding == "groups") text = replica_groups(mermaid);
    std::fputs(text.c_str(), stdout);
    return text.empty() ? 2 : 0;
}
