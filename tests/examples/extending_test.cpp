// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "examples/extending/ftrl.hpp"
#include "examples/extending/row_ranges.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/table.hpp"

namespace {

namespace sw = shardwise;
using extending::Ftrl;
using extending::RowRanges;

constexpr int dim = 5;
constexpr std::int64_t rows = 23;

/// (row, column) -> weight after training one table, by all ranks together.
using Weights = std::map<std::pair<std::int64_t, int>, float>;

template <class... Policies>
Weights train(const sw::Topology& topology) {
    std::vector<Weights> parts(static_cast<std::size_t>(topology.ranks()));
    sw::ThreadWorld world{topology};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<Policies...> layer{comm, {{"t", rows, dim, {}, ""}}};
        for (int step = 0; step < 4; ++step) {
            std::vector<std::int64_t> ids;
            for (int i = 0; i < 6; ++i)
                ids.push_back((5 * step + i * i + 3 * comm.rank()) % rows);
            const auto out = layer.forward(sw::JaggedView<std::int64_t>{
                .samples = 6, .features = 1, .values = ids, .lengths = {}, .offsets = {}, .weights = {}, .keys = {}});
            std::vector<float> gradient(6 * dim);
            for (std::size_t i = 0; i < gradient.size(); ++i)
                gradient[i] = 0.3F * out.data()[i] + 0.1F * static_cast<float>(i % 7) - 0.2F;
            layer.backward(sw::MatrixView<const float>{gradient.data(), 6, dim});
        }
        layer.for_each_shard([&](const sw::ShardView& shard, auto row) {
            for (std::int64_t local = 0; local < shard.rows; ++local)
                for (int d = 0; d < shard.dim; ++d)
                    parts[static_cast<std::size_t>(comm.rank())][{row(local), shard.first_column + d}] =
                        shard.weights[local * shard.dim + d];
        });
    });
    Weights all;
    for (const Weights& part : parts)
        all.insert(part.begin(), part.end());
    EXPECT_EQ(all.size(), static_cast<std::size_t>(rows * dim));
    return all;
}

const std::vector<sw::Topology> topologies = {
    {.hosts = 1, .ranks_per_host = 1}, {.hosts = 1, .ranks_per_host = 3}, {.hosts = 2, .ranks_per_host = 2}};

TEST(Extending, AShardingPolicyIsABijection) {
    for (int shards = 1; shards <= 5; ++shards) {
        for (std::int64_t n = 1; n <= 40; ++n) {
            const sw::TableShape table{.rows = n, .dim = dim, .shards = shards, .index = 0};
            std::vector<std::int64_t> counts(static_cast<std::size_t>(shards), 0);
            for (std::int64_t row = 0; row < n; ++row) {
                const sw::RowPlace place = RowRanges::place(row, table);
                EXPECT_EQ(RowRanges::row(place, table), row);
                EXPECT_LT(place.local, RowRanges::rows(place.shard, table));
                ++counts.at(static_cast<std::size_t>(place.shard));
            }
            for (int shard = 0; shard < shards; ++shard)
                EXPECT_EQ(RowRanges::rows(shard, table), counts[static_cast<std::size_t>(shard)]);
        }
    }
}

TEST(Extending, ASecondShardingGivesTheBitsOfTheFirst) {
    using O = sw::Optimizer<sw::RowwiseAdagrad<>>;
    for (const sw::Topology& t : topologies) {
        const Weights expected = train<sw::Sharding<sw::Row>, O>(t);
        EXPECT_EQ((train<sw::Sharding<RowRanges>, O>(t)), expected);
    }
}

TEST(Extending, AnOptimizerGivesTheSameBitsUnderEverySharding) {
    using O = sw::Optimizer<Ftrl>;
    for (const sw::Topology& t : topologies) {
        const Weights expected = train<sw::Sharding<sw::Table>, O>(t);
        EXPECT_EQ((train<sw::Sharding<sw::Row>, O>(t)), expected);
        EXPECT_EQ((train<sw::Sharding<sw::Col<>>, O>(t)), expected);
        EXPECT_EQ((train<sw::Sharding<RowRanges>, O>(t)), expected);
    }
}

TEST(Extending, AnOptimizerFollowsItsFormula) {
    const Ftrl rule{.l1 = 0.5F, .beta = 1.0F};
    const Ftrl::Row shared = rule.row({.learning_rate = 0.1F, .step = 1}, nullptr, 0.0, 1);
    float weight = 0.25F;
    float square = 9.0F;
    float sum = 2.0F;
    rule.element(shared, weight, 4.0F, square, sum);  // the root grows from 3 to 5
    EXPECT_FLOAT_EQ(square, 25.0F);
    EXPECT_FLOAT_EQ(sum, 2.0F + 4.0F - (5.0F - 3.0F) / 0.1F * 0.25F);
    EXPECT_FLOAT_EQ(weight, -(sum - 0.5F) * 0.1F / (1.0F + 5.0F));
    sum = -0.4F;
    rule.element(shared, weight, 0.0F, square, sum);
    EXPECT_EQ(weight, 0.0F);  // too little to say anything
}

}  // namespace
