// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The fragments of README.md and docs/, each in a context in which it runs.

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/checking.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/shardwise.hpp"

namespace docs {
namespace {

namespace sw = shardwise;

sw::JaggedBatch<int> ones(std::int64_t samples, int first = 0) {
    sw::JaggedBatch<int> batch{.samples = samples, .features = 1};
    for (int i = 0; i < samples; ++i)
        batch.values.push_back(first + i);
    return batch;
}
const std::vector<sw::TableConfig> tables{{.name = "item", .rows = 100, .dim = 4}};

TEST(Fragments, Relays) {
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Collective<sw::TwoStage>>;
        Layer layer{comm, tables};
        EXPECT_EQ(layer.forward(ones(3).view()).rows(), 3);
    });
    world.run([](sw::ThreadCommunicator& comm) {
        using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Table>, sw::Collective<sw::Hierarchical>>;
        Layer layer{comm,
                    {{.name = "country", .rows = 200, .dim = 16}, {.name = "item", .rows = 100'000, .dim = 16}},
                    {.towers = {{"item"}, {"country"}}}};
        EXPECT_GE(layer.predict_static_bytes(0), 100'000 * 17 * 4);  // item
        EXPECT_GE(layer.predict_static_bytes(2), 200 * 17 * 4);      // country
        EXPECT_LE(layer.predict_static_bytes(2), 2 * 200 * 17 * 4);
        EXPECT_EQ(layer.predict_static_bytes(1), 0);
    });
}

TEST(Fragments, FlightsAhead) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        using Layer = sw::EmbeddingLayer<>;
        Layer layer{comm, tables};
        std::vector<sw::JaggedBatch<int>> batches;
        for (int i = 0; i < 5; ++i)
            batches.push_back(ones(3, 10 * i));
        std::vector<float> gradient(12, 0.25F);
        const auto learn = [&](const sw::MatrixView<const float>& pooled) {
            return sw::MatrixView<const float>{gradient.data(), pooled.rows(), pooled.columns()};
        };

        Layer::Flight next = layer.start(batches[0].view());
        for (std::size_t i = 0; i < batches.size(); ++i) {
            Layer::Flight current = std::move(next);
            if (i + 1 < batches.size()) next = layer.start(batches[i + 1].view());  // its ids travel from now on
            const auto pooled = layer.forward(current);
            layer.backward(std::move(current), learn(pooled));
        }
        EXPECT_EQ(layer.steps(), 5);
    });
}

TEST(Fragments, LayersByNames) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    for (const std::string sharding : {"row", "col"}) {
        world.run([&](sw::ThreadCommunicator& comm) {
            const auto batch = ones(3);
            const auto gradient_of = [](const sw::MatrixView<const float>& pooled) { return pooled; };

            const sw::LayerNames names{.shardings = {sharding}, .optimizer = "adagrad", .pooling = "mean"};
            const std::unique_ptr<sw::LayerBase> layer = sw::make_layer(comm, tables, names);

            sw::LayerFlight flight = layer->start(batch.view());
            const sw::LayerVectors result = layer->forward(flight);
            layer->backward(std::move(flight), {.pooled = gradient_of(result.pooled)});

            EXPECT_EQ(layer->branches(), std::vector<std::string>{sharding});
            EXPECT_EQ(layer->steps(), 1);

            using OfTypes =
                sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Optimizer<sw::Adagrad>, sw::Pooling<sw::Mean>>;
            const sw::LayerBlueprint of_types = OfTypes::blueprint(comm.topology(), tables);
            EXPECT_EQ(sw::describe(layer->program()) == sw::describe(of_types.traits().program), sharding == "row");
        });
    }
}

TEST(Fragments, NamesOnOneRankAndTypesOnTheOther) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        std::unique_ptr<sw::LayerBase> layer;
        if (comm.rank() == 0) {
            layer = std::make_unique<sw::EmbeddingLayer<>>(comm, tables);
        } else {
            layer = sw::make_layer(comm, tables, {});
        }
        sw::LayerFlight flight = layer->start(ones(3).view());
        const sw::LayerVectors result = layer->forward(flight);
        layer->backward(std::move(flight), result);
        EXPECT_EQ(layer->steps(), 1);
    });
}

TEST(Fragments, EqualLayersInAnotherOrder) {
    sw::ThreadWorld world{
        sw::ThreadWorldOptions{.topology = {.hosts = 1, .ranks_per_host = 2}, .deadline = std::chrono::seconds{20}}};
    const auto mixed_up = [&] {
        world.run([](sw::ThreadCommunicator& comm) {
            sw::EmbeddingLayer<> one{comm, tables};
            sw::EmbeddingLayer<> other{comm, tables};
            static_cast<void>((comm.rank() == 0 ? one : other).forward(ones(3).view()));
        });
    };
    EXPECT_THROW(mixed_up(), sw::Mismatch);
}

TEST(Fragments, MemoryAndTrace) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        const auto batch = ones(3);
        const std::vector batches(2, batch.view());

        sw::MemoryAccount memory;
        sw::Tracer tracer;
        tracer.record(true);
        sw::EmbeddingLayer<> layer{comm, tables, {.memory = &memory, .tracer = &tracer}};

        sw::MemoryTally tally;
        const sw::LayerCost cost = layer.predict_cost(batches, &tally);
        const double exchange = sw::seconds(cost.segments, sw::Cluster{});

        layer.backward(layer.forward(batch.view()));
        EXPECT_EQ(memory.static_bytes(), layer.predict_static_bytes(comm.rank()));
        EXPECT_EQ(memory.dynamic_bytes(), tally.bytes());
        EXPECT_GT(exchange, 0.0);
        EXPECT_EQ(tracer.spans().front().name, "Split<row>");
    });
}

TEST(Fragments, RowsOrColumns) {
    const std::vector<sw::JaggedBatch<int>> all(128, ones(4));
    std::vector<sw::JaggedView<int>> batches;
    for (const auto& batch : all)
        batches.push_back(batch.view());

    using Rows = sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Collective<sw::Hierarchical>>;
    using Columns = sw::EmbeddingLayer<sw::Sharding<sw::Col<>>, sw::Collective<sw::Hierarchical>>;
    const sw::Topology cluster{.hosts = 16, .ranks_per_host = 8};
    const auto rows = Rows::blueprint(cluster, tables).predict_cost(batches);
    const auto columns = Columns::blueprint(cluster, tables).predict_cost(batches);
    const bool by_row = sw::seconds(rows.segments, sw::Cluster{}) < sw::seconds(columns.segments, sw::Cluster{});

    EXPECT_GT(columns.forward.total().cross_host.payload, 0);
    static_cast<void>(by_row);
}

TEST(Fragments, PredictedAndMoved) {
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        const auto batch = ones(3);
        const std::vector batches(4, batch.view());  // one a rank

        sw::CountingCommunicator counted{comm};
        sw::EmbeddingLayer<> layer{counted, tables};
        layer.backward(layer.forward(batch.view()));
        const sw::LayerCost cost = layer.predict_cost(batches);
        sw::TrafficMatrix predicted = cost.forward;
        predicted += cost.backward;
        EXPECT_EQ(counted.sent().sent_by(comm.rank()), predicted.sent_by(comm.rank()));
    });
}

TEST(Fragments, OrderSample) {
    using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Table>, sw::Order<sw::Sample>>;
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) { EXPECT_EQ(Layer(comm, tables).width(), 4); });
}

TEST(Fragments, RuleAndLearningRate) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        using Layer = sw::EmbeddingLayer<sw::Optimizer<sw::Adam>>;
        Layer layer{comm,
                    tables,
                    {.learning_rate = {.base = 0.01F,
                                       .warmup = 100,
                                       .decay = sw::LearningRate::Decay::polynomial,
                                       .decay_start = 1000,
                                       .decay_steps = 9000}},
                    {.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8F}};
        EXPECT_EQ(layer.width(), 4);
    });
}

TEST(Fragments, SettingsByTable) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::LayerOptions options{.learning_rate = {.base = 0.01F}};
        options.by_table["*"] = {.weight_decay = 0.01F};
        options.by_table["item"] = {.learning_rate = sw::LearningRate{.base = 0.05F},
                                    .rule = sw::make_row_rule(sw::Adam{.beta2 = 0.99}),
                                    .initial = sw::InitialValues::normal(0.05F),
                                    .l2 = 1e-5F,
                                    .clip_value = 1.0F};
        sw::EmbeddingLayer<sw::Optimizer<sw::Adam>> layer{comm, tables, options};
        EXPECT_EQ(layer.width(), 4);
    });
}

TEST(Fragments, MixedTables) {
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Mixed<sw::DP, sw::Table, sw::Row>>>;
        Layer layer{comm,
                    {{.name = "country", .rows = 200, .dim = 16, .sharding = "dp"},
                     {.name = "category", .rows = 5000, .dim = 16, .sharding = "table"},
                     {.name = "item", .rows = 100'000, .dim = 16, .features = {"seen", "bought"}, .sharding = "row"}}};

        std::int64_t elements = 0;
        layer.for_each_shard([&](const sw::ShardView& shard, const auto& row_of) {
            elements += shard.rows * shard.dim;
            EXPECT_LT(row_of(shard.rows - 1), layer.tables()[static_cast<std::size_t>(shard.table)].rows);
        });
        EXPECT_GT(elements, 0);
        EXPECT_EQ(layer.features().size(), 4U);
    });
}

TEST(Fragments, TieredTables) {
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Tiered<sw::DP, sw::Flex, sw::Row>>>;
        const sw::RowPlan plan{
            .tiers = {"dp", "flex", "row"},
            .tables = {
                {.table = "item", .rows = 100'000, .tiers = {2, 3, 99'995}, .replicated = {7, 421, 5, 99'000, 12}}}};
        Layer layer{comm, {{.name = "item", .rows = 100'000, .dim = 16}}, {.rows = &plan}};
        const sw::JaggedBatch<int> batch{.samples = 2, .features = 1, .values = {7, 421, 5, 6}, .lengths = {1, 3}};
        layer.forward(batch.view());
        const sw::RowCounts& counts = layer.row_counts();  // 2 look-ups of rows 7 and 421, 1 of row 5, 1 of the others
        EXPECT_EQ(counts.lookups, (std::vector<std::int64_t>{2, 1, 1}));
        EXPECT_EQ(counts.unseen, 0);

        const auto named = sw::make_layer(comm, {{.name = "item", .rows = 100'000, .dim = 16}},
                                          {.shardings = {"dp", "row"}, .tiered = true});
        EXPECT_EQ(named->branches(), (std::vector<std::string>{"dp", "row"}));
    });
}

TEST(Fragments, ARoundByHand) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::Communicator auto& comm) {
        const int peer = 1 - comm.rank();
        const double mine = 1.5 + comm.rank();
        sw::Buffer<std::byte> arrived;
        const sw::OutMessage out{.to = peer, .bytes = std::as_bytes(std::span{&mine, 1}), .payload = sizeof(mine)};
        const sw::InMessage in{.from = peer, .into = &arrived, .expected = sizeof(double)};
        const sw::Ticket ticket = comm.post({.step = "swap"}, {&out, 1}, {&in, 1});
        comm.wait(ticket);
        const double theirs = sw::ByteReader{arrived.span()}.get<double>();
        EXPECT_EQ(theirs, 1.5 + peer);
    });
}

TEST(Fragments, Collectives) {
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        std::vector<float> gradients(1000, 1.0F);
        sw::TreeAllReduce all_reduce{comm};
        all_reduce.start(gradients);
        // ... work that needs no gradients ...
        all_reduce.finish();
        EXPECT_EQ(gradients[999], 4.0F);
    });
}

TEST(Fragments, Decorators) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::CheckingCommunicator checking{comm};     // every round: do all ranks mean the same one?
        sw::CountingCommunicator counted{checking};  // every message: whereto, how many bytes?
        sw::EmbeddingLayer<> layer{counted, tables};
        const auto batch = ones(2);
        EXPECT_EQ(layer.forward(batch.view()).rows(), 2);
    });
}

template <sw::Communicator C>
void body(C& comm) {
    sw::barrier(comm);
    if (comm.rank() == 1) throw sw::BadInput{"file 'clicks': 7 columns instead of 40"};
    sw::barrier(comm);
}

int run_on_threads() {
    try {
        sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = sw::Topology::of(4, 2),
                                                     .deadline = std::chrono::seconds{30},
                                                     .grace = std::chrono::seconds{2}}};
        world.run([](sw::ThreadCommunicator& comm) { body(comm); });
        return 0;
    } catch (const sw::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return error.exit_status();
    }
}

TEST(Fragments, ExitStatus) {
    EXPECT_EQ(run_on_threads(), 2);
}

}  // namespace
}  // namespace docs
