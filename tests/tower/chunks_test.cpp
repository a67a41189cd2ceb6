// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/table.hpp"
#include "shardwise/tower/column_chunks.hpp"

namespace shardwise_test {
namespace {

namespace sw = shardwise;
using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Table>, sw::Optimizer<sw::Sgd>>;

std::string error_of(const auto& call) {
    try {
        call();
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return {};
}

/// (table of the layer): its weights, row by row.
std::vector<std::vector<float>> weights(Layer& layer) {
    std::vector<std::vector<float>> all(layer.tables().size());
    layer.for_each_shard([&](const sw::ShardView& shard, const sw::ShardRowNumbers&) {
        all[static_cast<std::size_t>(shard.table)].assign(shard.weights, shard.weights + shard.rows * shard.dim);
    });
    return all;
}

// A layer of blocks looks up, and learns, what the layer of whole tables does.
RC_GTEST_PROP(ColumnChunks, AreTheTablesInPieces, ()) {
    const int width = *rc::gen::inRange(1, 6);
    std::vector<sw::TableConfig> tables(*rc::gen::inRange<std::size_t>(1, 4));
    for (std::size_t t = 0; t < tables.size(); ++t)
        tables[t] = {
            .name = "t" + std::to_string(t), .rows = *rc::gen::inRange(1, 9), .dim = width * *rc::gen::inRange(1, 5)};
    const sw::ColumnChunks chunks = sw::cut_columns(tables, width);
    sw::JaggedBatch<std::int64_t> batch;
    batch.samples = *rc::gen::inRange(0, 5);
    batch.features = static_cast<std::int64_t>(tables.size());
    const bool single = *rc::gen::arbitrary<bool>();
    const bool weighted = *rc::gen::arbitrary<bool>();
    for (const sw::TableConfig& table : tables)
        for (std::int64_t s = 0; s < batch.samples; ++s) {
            const int ids = single ? 1 : *rc::gen::inRange(0, 4);
            if (!single) batch.lengths.push_back(ids);
            for (int i = 0; i < ids; ++i) {
                batch.values.push_back(*rc::gen::inRange<std::int64_t>(0, table.rows));
                if (weighted) batch.weights.push_back(static_cast<float>(*rc::gen::inRange(-3, 4)));
            }
        }
    const auto repeated = sw::repeat_ids(batch.view(), chunks);
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 1}};
    world.run([&](sw::ThreadCommunicator& comm) {
        Layer whole{comm, tables};
        Layer pieces{comm, chunks.tables};
        RC_ASSERT(pieces.width() == whole.width());
        for (const int dim : pieces.widths())
            RC_ASSERT(dim == width);
        const auto from = weights(whole);
        pieces.for_each_shard([&](const sw::ShardView& shard, const sw::ShardRowNumbers&) {
            const std::string& name = pieces.tables()[static_cast<std::size_t>(shard.table)].name;
            const auto table = static_cast<std::size_t>(std::stoi(name.substr(1)));
            const int column = std::stoi(name.substr(name.find('[') + 1));
            for (std::int64_t row = 0; row < shard.rows; ++row)
                for (int c = 0; c < width; ++c)
                    shard.weights[row * width + c] =
                        from[table][static_cast<std::size_t>(row * tables[table].dim + column + c)];
        });
        const auto expected = whole.forward(batch.view());
        const auto got = pieces.forward(repeated.view());
        RC_ASSERT(got.rows() == expected.rows());
        const auto elements = static_cast<std::size_t>(expected.rows() * expected.columns());
        RC_ASSERT(std::equal(got.data(), got.data() + elements, expected.data()));
        std::vector<float> gradient(elements);
        for (std::size_t i = 0; i < elements; ++i)
            gradient[i] = static_cast<float>(i % 7) - 3.0F;
        const sw::MatrixView<const float> view{gradient.data(), expected.rows(), expected.columns()};
        whole.backward(view);
        pieces.backward(view);
        const auto learnt = weights(whole);
        const auto in_pieces = weights(pieces);
        for (std::size_t k = 0; k < in_pieces.size(); ++k) {
            const std::string& name = chunks.tables[k].name;
            const auto table = static_cast<std::size_t>(std::stoi(name.substr(1)));
            const int column = std::stoi(name.substr(name.find('[') + 1));
            for (std::int64_t row = 0; row < tables[table].rows; ++row)
                for (int c = 0; c < width; ++c)
                    RC_ASSERT(in_pieces[k][static_cast<std::size_t>(row * width + c)] ==
                              learnt[table][static_cast<std::size_t>(row * tables[table].dim + column + c)]);
        }
    });
}

TEST(ColumnChunks, AreAsWideAsFitsAllTables) {
    const std::vector<sw::TableConfig> tables{{.name = "a", .rows = 5, .dim = 12},
                                              {.name = "b", .rows = 5, .dim = 8, .features = {"x", "y"}}};
    const sw::ColumnChunks chunks = sw::cut_columns(tables);
    EXPECT_EQ(chunks.width, 4);
    ASSERT_EQ(chunks.tables.size(), 5U);
    EXPECT_EQ(chunks.tables[2].name, "a[8]");
    EXPECT_EQ(chunks.tables[4].features, (std::vector<std::string>{"x[4]", "y[4]"}));
    EXPECT_EQ(chunks.feature_of, (std::vector<int>{0, 0, 0, 1, 2, 1, 2}));
}

TEST(ColumnChunks, SayWhatIsWrong) {
    const std::vector<sw::TableConfig> tables{{.name = "a", .rows = 5, .dim = 12}};
    const std::string remedy = " columns: give a width that divides all dimensions, or 0";
    EXPECT_EQ(error_of([&] { static_cast<void>(sw::cut_columns(tables, 5)); }),
              "table 'a' of dimension 12 does not cut into blocks of 5" + remedy);
    EXPECT_EQ(error_of([&] { static_cast<void>(sw::cut_columns(tables, -4)); }),
              "table 'a' of dimension 12 does not cut into blocks of -4" + remedy);
    const sw::ColumnChunks chunks = sw::cut_columns(tables);
    sw::JaggedBatch<std::int64_t> batch;
    batch.features = 2;
    EXPECT_EQ(error_of([&] { static_cast<void>(sw::repeat_ids(batch.view(), chunks)); }),
              "a batch of 2 features for tables of 1: give the batch of the tables that were cut");
    batch.features = 1;
    const std::vector<std::string> keys{"a"};
    auto view = batch.view();
    view.keys = keys;
    EXPECT_EQ(error_of([&] { static_cast<void>(sw::repeat_ids(view, chunks)); }),
              "a batch with keys: put its features into the order of the tables, and leave the keys out");
}

}  // namespace
}  // namespace shardwise_test
