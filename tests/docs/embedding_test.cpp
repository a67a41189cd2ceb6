// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The fragments of docs/embedding.md, errors.md, readers.md and checkpoints.md, each in a context in which it runs.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/support.hpp"
#include "shardwise/checkpoint/checkpoint_folder.hpp"
#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/shardwise.hpp"

namespace docs {
namespace {

namespace sw = shardwise;

const sw::Topology two_ranks{.hosts = 1, .ranks_per_host = 2};
const std::vector<sw::TableConfig> tables{{.name = "user", .rows = 1000, .dim = 2},
                                          {.name = "item", .rows = 5000, .dim = 4, .features = {"seen", "bought"}}};
const std::vector<std::int32_t> ids{7, 3, 12, 40, 12, 40};
const std::vector<std::int32_t> bags{1, 1, 2, 1, 0, 1};
const sw::JaggedView<std::int32_t> picture{.samples = 2, .features = 3, .values = ids, .lengths = bags};

std::vector<float> copy(const sw::MatrixView<const float>& matrix) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < matrix.rows(); ++i)
        values.insert(values.end(), matrix.row(i), matrix.row(i) + matrix.columns());
    return values;
}

TEST(Embedding, ALayerAndItsTables) {
    sw::ThreadWorld world{two_ranks};
    world.run([](sw::ThreadCommunicator& comm) {
        using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Pooling<sw::Sum>, sw::Optimizer<sw::Adagrad>>;
        Layer layer{comm,
                    {{.name = "user", .rows = 1000, .dim = 2},
                     {.name = "item", .rows = 5000, .dim = 4, .features = {"seen", "bought"}}},
                    {.learning_rate = {.base = 0.05F}, .seed = 7},
                    {.epsilon = 1e-8F}};

        EXPECT_EQ(layer.features(), (std::vector<std::string>{"user", "seen", "bought"}));
        EXPECT_EQ(layer.width(), 2 + 4 + 4);
        EXPECT_EQ(layer.forward(picture).columns(), layer.width());
    });
}

TEST(Embedding, ReadingTables) {
    sw::ThreadWorld world{two_ranks};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<> layer{comm, tables};
        // clang-format off
        std::span<const float> row;
        layer.for_each_shard([&](const sw::ShardView& shard, const sw::ShardRowNumbers& numbers) {
            if (layer.tables()[static_cast<std::size_t>(shard.table)].name != "item") return;
            for (std::int64_t local = 0; local < shard.rows; ++local)
                if (numbers(local) == 40)                      // row 40 of the table, or a part of its columns
                    row = {shard.weights + local * shard.dim,
                           static_cast<std::size_t>(shard.dim)};
        });
        // clang-format on
        const sw::MatrixView<const float> output = layer.forward(picture);
        EXPECT_EQ(row.empty(), comm.rank() == 0);
        EXPECT_TRUE(std::equal(row.begin(), row.end(), output.row(1) + 6));  // feature 'bought' of sample 1
    });
}

TEST(Embedding, OneBatchInThreeForms) {
    sw::ThreadWorld world{two_ranks};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<> layer{comm, tables};

        const std::vector<std::int64_t> values{7, 3, 12, 40, 12, 40};
        const std::vector<std::int32_t> lengths{1, 1, 2, 1, 0, 1};
        const sw::JaggedView<std::int64_t> batch{.samples = 2, .features = 3, .values = values, .lengths = lengths};

        const std::vector<std::int64_t> offsets{0, 1, 2, 4, 5, 5, 6};
        const sw::JaggedView<std::int64_t> the_same{.samples = 2, .features = 3, .values = values, .offsets = offsets};

        const sw::JaggedBatch<int> owning{
            .samples = 2, .features = 3, .values = {7, 3, 12, 40, 12, 40}, .lengths = {1, 1, 2, 1, 0, 1}};

        const std::vector<float> expected = copy(layer.forward(batch));
        EXPECT_EQ(copy(layer.forward(the_same)), expected);
        EXPECT_EQ(copy(layer.forward(owning.view())), expected);
        EXPECT_EQ(expected[6], 0.0F) << "sample 0 bought nothing";
        EXPECT_FLOAT_EQ(expected[2], expected[12] + expected[16]) << "items 12 and 40: in one bag, and each alone";
    });
}

TEST(Embedding, Keys) {
    sw::ThreadWorld world{two_ranks};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<> layer{comm, tables};

        const std::vector<std::string> keys{"bought", "seen", "user"};  // any order; the output keeps the layer's
        const std::vector<int> values{40, 12, 40, 12, 7, 3};
        const std::vector<std::int32_t> lengths{0, 1, 2, 1, 1, 1};
        const sw::JaggedView<int> batch{
            .samples = 2, .features = 3, .values = values, .lengths = lengths, .keys = keys};

        EXPECT_EQ(copy(layer.forward(batch)), copy(layer.forward(picture)));
    });
}

TEST(Embedding, RanksChooseTheFormOfTheirBatches) {
    sw::ThreadWorld world{two_ranks};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<> layer{comm, tables};
        const std::vector<float> expected = copy(layer.forward(picture));
        const std::vector<std::int64_t> wide{ids.begin(), ids.end()};
        const std::vector<std::int64_t> offsets{0, 1, 2, 4, 5, 5, 6};
        const std::vector<float> weights(6, 1.0F);
        const sw::JaggedView<std::int64_t> other{
            .samples = 2, .features = 3, .values = wide, .offsets = offsets, .weights = weights};
        EXPECT_EQ(copy(comm.rank() == 0 ? layer.forward(other) : layer.forward(picture)), expected);
        const sw::JaggedView<std::int64_t> none{.samples = 0, .features = 3};
        EXPECT_EQ((comm.rank() == 0 ? layer.forward(none) : layer.forward(picture)).rows(), 2 * comm.rank());
    });
}

TEST(Embedding, PooledForwardAndBackward) {
    sw::ThreadWorld world{two_ranks};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<> layer{comm, tables};
        const auto& batch = picture;

        const sw::MatrixView<const float> output = layer.forward(batch);  // (2 samples, 2 + 4 + 4 columns)
        const float seen = output(1, 2);                                  // sample 1, first column of feature 'seen'

        const std::vector<float> gradient(2 * 10, 0.5F);
        layer.backward({gradient.data(), 2, 10});

        EXPECT_EQ(output.rows(), 2);
        EXPECT_EQ(output.columns(), 10);
        EXPECT_LT(layer.forward(batch)(1, 2), seen);
        EXPECT_EQ(layer.steps(), 1);
    });
}

TEST(Embedding, Sequences) {
    sw::ThreadWorld world{two_ranks};
    world.run([](sw::ThreadCommunicator& comm) {
        const auto& batch = picture;

        sw::EmbeddingLayer<sw::Pooling<sw::None>> layer{comm, tables};
        const std::span<const sw::MatrixView<const float>> output = layer.forward(batch);
        const float second = output[1](1, 0);  // feature 'seen', its second id (40), first column

        const std::vector<float> user(2 * 2, 0.5F);
        const std::vector<float> seen(3 * 4, 0.5F);
        const std::vector<float> bought(1 * 4, 0.5F);
        const std::vector<sw::MatrixView<const float>> gradient{
            {user.data(), 2, 2}, {seen.data(), 3, 4}, {bought.data(), 1, 4}};
        layer.backward(gradient);

        ASSERT_EQ(output.size(), 3U);
        for (std::size_t f = 0; f < 3; ++f) {
            EXPECT_EQ(output[f].rows(), gradient[f].rows());
            EXPECT_EQ(output[f].columns(), gradient[f].columns());
        }
        EXPECT_LT(layer.forward(batch)[1](1, 0), second);
        EXPECT_EQ(layer.forward(batch)[1](1, 0), layer.forward(batch)[2](0, 0)) << "item 40, seen and bought";
    });
}

TEST(Embedding, PoolingByTable) {
    sw::ThreadWorld world{two_ranks};
    world.run([](sw::ThreadCommunicator& comm) {
        const auto& batch = picture;

        using Layer = sw::EmbeddingLayer<sw::Pooling<sw::ByTable>>;
        Layer layer{comm,
                    {{.name = "user", .rows = 1000, .dim = 2, .pooling = "mean"},
                     {.name = "item", .rows = 5000, .dim = 4, .features = {"seen", "bought"}, .pooling = "none"}}};

        const sw::LayerVectors output = layer.forward(batch);
        const float user = output.pooled(1, 0);          // sample 1, first column: 2 in all
        const float second = output.sequences[0](1, 0);  // feature 'seen', its second id (40), first column
        const int seen = output.lengths[0][0];           // 2 ids in the bag of sample 0

        const std::vector<float> of_user(2 * 2, 0.5F);
        const std::vector<float> of_seen(3 * 4, 0.5F);
        const std::vector<float> of_bought(1 * 4, 0.5F);
        const std::vector<sw::MatrixView<const float>> sequences{{of_seen.data(), 3, 4}, {of_bought.data(), 1, 4}};
        layer.backward({.pooled = {of_user.data(), 2, 2}, .sequences = sequences});

        EXPECT_EQ(layer.width(), 2);
        EXPECT_EQ(seen, 2);
        const sw::LayerVectors after = layer.forward(batch);
        EXPECT_LT(after.pooled(1, 0), user);
        EXPECT_LT(after.sequences[0](1, 0), second);
        EXPECT_EQ(after.sequences[1].rows(), 1);

        // one exchange for both: as many messages as a layer that pools all, and 8 bytes more a message of ids
        const std::vector<std::int32_t> even{7, 4, 12, 41, 40, 13};  // of each feature an id on each rank
        const sw::JaggedView<std::int32_t> evenly{.samples = 2, .features = 3, .values = even};
        const std::vector both{evenly, evenly};
        const sw::LayerCost cost = layer.predict_cost(both);
        const sw::LayerCost sums = sw::EmbeddingLayer<>::blueprint(two_ranks, tables).predict_cost(both);
        EXPECT_EQ(cost.segments.size(), sums.segments.size());
        EXPECT_EQ(cost.forward.total().host.messages, sums.forward.total().host.messages);
        EXPECT_EQ(cost.segments[0].traffic.at(0, 1).payload, sums.segments[0].traffic.at(0, 1).payload);
        EXPECT_EQ(cost.segments[0].traffic.at(0, 1).control, sums.segments[0].traffic.at(0, 1).control + 8);

        const std::vector<float> weights{0.5F, 1, 1, 1, 1, 1};
        sw::JaggedView<std::int32_t> weighted = batch;
        weighted.weights = weights;
        EXPECT_EQ(layer.forward(weighted).pooled.rows(), 2);
        const std::vector<float> wrong{1, 1, 0.5F, 1, 1, 1};
        weighted.weights = wrong;
        EXPECT_THROW(static_cast<void>(layer.forward(weighted)), sw::BadInput);
    });
}

TEST(Embedding, FlightsThatEnd) {
    sw::ThreadWorld world{two_ranks};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<> layer{comm, tables};
        auto flight = layer.start(picture);
        flight.poll();
        EXPECT_EQ(layer.forward(flight).rows(), 2);
        flight.end();  // nothing is learnt
        EXPECT_FALSE(flight);
        EXPECT_THROW(static_cast<void>(layer.forward(flight)), sw::BadInput);
        EXPECT_EQ(layer.steps(), 0);
        EXPECT_EQ(layer.forward(picture).rows(), 2);
    });
}

TEST(Embedding, Validate) {
    sw::ThreadWorld world{two_ranks};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<> layer{comm, tables};
        int skipped = 0;
        std::string said;
        for (const int last : {40, 5000}) {
            std::vector<std::int32_t> values = ids;
            if (comm.rank() == 1) values.back() = last;
            const sw::JaggedView<std::int32_t> batch{.samples = 2, .features = 3, .values = values, .lengths = bags};
            const auto report = [&](const std::string& what) { said = what; };

            try {
                layer.validate(batch);  // on all ranks
            } catch (const sw::BadInput& error) {
                report(error.what());  // on all ranks
                ++skipped;
                continue;
            }

            EXPECT_EQ(layer.forward(batch).rows(), 2);
        }
        EXPECT_EQ(skipped, 1);
        EXPECT_EQ(said,
                  "rank 1: feature 'bought', sample 1: id 5000 is not a row of table 'item'; its rows are 0 to 4999");
    });
}

TEST(Embedding, AWrongGradientChangesNothing) {
    sw::ThreadWorld world{two_ranks};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<> layer{comm, tables};
        const std::vector<float> before = copy(layer.forward(picture));
        const std::vector<float> gradient(2 * 10, 0.5F);
        EXPECT_THROW(layer.backward({gradient.data(), comm.rank() == 0 ? 2 : 1, 10}), sw::BadInput);
        EXPECT_EQ(layer.steps(), 0);
        EXPECT_EQ(copy(layer.forward(picture)), before);
    });
}

TEST(Embedding, PredictedCostAndMemory) {
    sw::ThreadWorld world{two_ranks};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::MemoryAccount memory;
        sw::EmbeddingLayer<> layer{comm, tables, {.memory = &memory}};
        const std::vector<sw::JaggedBatch<int>> all{
            {.samples = 2, .features = 3, .values = {7, 3, 12, 40, 12, 40}, .lengths = {1, 1, 2, 1, 0, 1}},
            {.samples = 1, .features = 3, .values = {8, 13, 41}}};

        std::vector<sw::JaggedView<int>> views;  // (rank)
        for (const sw::JaggedBatch<int>& batch : all)
            views.push_back(batch.view());

        sw::MemoryTally tally;
        const sw::LayerCost cost = layer.predict_cost(views, &tally);
        const std::int64_t sent = cost.forward.at(0, 1).payload + cost.backward.at(0, 1).payload;
        const std::int64_t held = layer.predict_static_bytes(comm.rank()) + tally.bytes();

        const std::vector<float> gradient(2 * 10, 0.5F);
        const std::int64_t samples = comm.rank() == 0 ? 2 : 1;
        EXPECT_EQ(layer.forward(views[static_cast<std::size_t>(comm.rank())]).rows(), samples);
        layer.backward({gradient.data(), samples, 10});
        EXPECT_GT(sent, 0);
        EXPECT_EQ(memory.static_bytes() + memory.dynamic_bytes(), held);
    });
}

TEST(Embedding, Options) {
    sw::ThreadWorld world{two_ranks};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::MemoryAccount memory;
        sw::Tracer tracer;
        using Layer = sw::EmbeddingLayer<sw::Optimizer<sw::Adam>>;
        const sw::LayerOptions options{
            .learning_rate = {.base = 0.001F, .warmup = 100}, .seed = 7, .memory = &memory, .tracer = &tracer};
        Layer layer{comm, tables, options, {.beta2 = 0.99}};
        EXPECT_EQ(memory.static_bytes(), layer.predict_static_bytes(comm.rank()));
    });
}

TEST(Checkpoints, ALayerAlone) {
    const checkpoint_test::TemporaryFile file{"docs_layer.safetensors"};
    const std::string path = file.path();
    std::vector<float> expected;
    sw::ThreadWorld{two_ranks}.run([&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<sw::Sharding<sw::Row>> layer{comm, tables};
        const std::vector<float> gradient(2 * 10, 0.5F);
        static_cast<void>(layer.forward(picture));
        layer.backward({gradient.data(), 2, 10});

        sw::save_layer(comm, path, layer);  // on all ranks

        const std::vector<float> rows = copy(layer.forward(picture));
        if (comm.rank() == 0) expected = rows;
    });
    sw::ThreadWorld{sw::Topology{.hosts = 1, .ranks_per_host = 3}}.run([&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<sw::Sharding<sw::Table>> layer{comm, tables};  // other ranks, another sharding
        sw::load_layer(comm, path, layer);

        EXPECT_EQ(layer.steps(), 1);
        const std::vector<float> rows = copy(layer.forward(picture));
        for (const std::size_t single : {0, 1, 10, 11, 12, 16})  // bags of one id: no sum that could round
            EXPECT_EQ(rows[single], expected[single]);
    });
}

TEST(Checkpoints, OfAFrozenLayer) {
    const checkpoint_test::TemporaryFile file{"docs_frozen.safetensors"};
    const std::string path = file.path();
    const auto& batch = picture;
    sw::ThreadWorld{two_ranks}.run([&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<sw::Optimizer<sw::Adam>> trained{comm, tables};
        const std::vector<float> gradient(2 * 10, 0.5F);
        static_cast<void>(trained.forward(batch));
        trained.backward({gradient.data(), 2, 10});
        sw::save_layer(comm, path, trained);
        const std::vector<float> expected = copy(trained.forward(batch));

        using Layer = sw::EmbeddingLayer<sw::Optimizer<sw::Frozen>>;
        Layer layer{comm, tables};
        sw::load_layer(comm, path, layer);  // the file of a layer with any optimizer
        const auto vectors = layer.forward(batch);

        EXPECT_EQ(copy(vectors), expected);
    });
}

TEST(Checkpoints, AWholeModel) {
    const checkpoint_test::TemporaryFile file{"docs_model.safetensors"};
    const std::string path = file.path();
    sw::ThreadWorld{two_ranks}.run([&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<> layer{comm, tables};
        std::vector<float> weight(30, 0.25F);
        std::int64_t seen = 4096;
        const std::vector<float> gradient(2 * 10, 0.5F);
        static_cast<void>(layer.forward(picture));
        layer.backward({gradient.data(), 2, 10});

        sw::Checkpoint all{.layer = sw::shards_of(layer),
                           .dense = {{.name = "top.weight", .shape = {3, 10}, .values = weight}},
                           .numbers = {{"samples", seen}}};
        sw::save_checkpoint(comm, path, all);

        weight.assign(30, 0.0F);
        all.numbers.at("samples") = 0;
        layer.backward(layer.forward(picture));
        EXPECT_EQ(layer.steps(), 2);

        sw::load_checkpoint(comm, path, all);  // fills the layer, `weight`, and the numbers that stand in `all`
        seen = all.numbers.at("samples");

        EXPECT_EQ(weight, std::vector<float>(30, 0.25F));
        EXPECT_EQ(seen, 4096);
        EXPECT_EQ(layer.steps(), 1);
    });
    const sw::SafetensorsReader reader{path};
    std::vector<std::string> names;
    for (const auto& [name, info] : reader.tensors())
        names.push_back(name + " " + sw::shape_text(info.shape));
    EXPECT_EQ(names, (std::vector<std::string>{"samples ()", "steps ()", "tables/item/row_state.0 (5000,)",
                                               "tables/item/weight (5000, 4)", "tables/user/row_state.0 (1000,)",
                                               "tables/user/weight (1000, 2)", "top.weight (3, 10)"}));
    EXPECT_EQ(reader.metadata().at("optimizer"), "rowwise_adagrad");
}

TEST(Checkpoints, WeightsAlone) {
    const checkpoint_test::TemporaryFile file{"docs_weights"};
    const std::string path = file.path();
    const std::vector<float> values(1000 * 2 + 5000 * 4, 0.5F);
    sw::SafetensorsWriter writer{path};
    writer.declare("tables/user/weight", sw::TensorType::f32, {1000, 2});
    writer.declare("tables/item/weight", sw::TensorType::f32, {5000, 4});
    writer.begin();
    writer.append(std::span{values});
    writer.end();
    sw::ThreadWorld{two_ranks}.run([&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<> layer{comm, tables};
        sw::Checkpoint all{.layer = sw::shards_of(layer)};
        if (sw::load_checkpoint(comm, path, all) == sw::Loaded::weights)
            std::cout << path << " has weights alone: training begins at step 0\n";

        EXPECT_EQ(layer.steps(), 0);
        for (const float value : copy(layer.forward(picture)))
            EXPECT_EQ(value / 0.5F, std::round(value / 0.5F));
    });
}

TEST(Checkpoints, RunsThatSurvive) {
    const checkpoint_test::TemporaryFolder here{"docs_folder"};
    const std::string& folder = here.path();
    sw::ThreadWorld{two_ranks}.run([&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<> layer{comm, tables};
        const std::vector<float> gradient(2 * 10, 0.5F);
        sw::Checkpoint all{.layer = sw::shards_of(layer)};
        const auto train_a_step = [&] {
            static_cast<void>(layer.forward(picture));
            layer.backward({gradient.data(), 2, 10});
        };
        sw::CheckpointFolder checkpoints{comm, folder};  // keeps the newest two
        for (std::int64_t step = layer.steps(); step < 100; ++step) {
            train_a_step();
            if (layer.steps() % 20 == 0) checkpoints.start(all);  // copies, and goes on while it is written
        }
        checkpoints.finish();
        const std::vector<float> expected = copy(layer.forward(picture));
        layer.set_steps(3);
        sw::load_checkpoint(comm, folder, all);  // the newest
        EXPECT_EQ(layer.steps(), 100);
        EXPECT_EQ(copy(layer.forward(picture)), expected);
    });
}

TEST(Checkpoints, AnotherOptimizerIsRefused) {
    const checkpoint_test::TemporaryFile file{"docs_optimizer.safetensors"};
    sw::ThreadWorld{two_ranks}.run([&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<> layer{comm, tables};
        sw::save_layer(comm, file.path(), layer);
        sw::EmbeddingLayer<sw::Optimizer<sw::Adam>> other{comm, tables};
        EXPECT_THROW(sw::load_layer(comm, file.path(), other), sw::BadInput);
    });
}

}  // namespace
}  // namespace docs
