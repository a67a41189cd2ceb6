// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/embedding/kernels/finite.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/make_layer.hpp"

/// \file
/// The look at a gradient's numbers finds each that is not finite, and the sums of squares it makes are those that rows
/// would have been given where they learn.

namespace shardwise_test {
namespace {

namespace sw = shardwise;

int draw(std::mt19937& random, int low, int high) {
    return std::uniform_int_distribution<int>{low, high}(random);
}

TEST(LookAtGradients, FindsEachNumberThatIsNotFiniteAndSquaresTheOthers) {
    std::mt19937 random{11};
    for (int trial = 0; trial < 300; ++trial) {
        const int height = draw(random, 1, 40);
        std::vector<sw::detail::RowPart> parts;
        int columns = 0;
        for (int part = draw(random, 1, 4); part > 0; --part) {
            constexpr int dims[] = {1, 7, 16, 32, 33, 64, 100, 128, 200};
            const int dim = dims[draw(random, 0, 8)];
            parts.push_back({.first = columns, .columns = dim});
            columns += dim;
        }
        std::vector<std::vector<double>> squares(parts.size());
        for (std::size_t p = 0; p < parts.size(); ++p)
            if (draw(random, 0, 2) > 0) {
                squares[p].assign(static_cast<std::size_t>(height), -1.0);
                parts[p].squares = squares[p].data();
            }
        const int stride = columns + draw(random, 0, 1) * draw(random, 1, 30);
        std::vector<float> memory(static_cast<std::size_t>(height) * static_cast<std::size_t>(stride),
                                  std::numeric_limits<float>::quiet_NaN());  // what lies between is not looked at
        const sw::MatrixView<float> all{memory.data(), height, columns, stride};
        std::normal_distribution<float> normal;
        const bool large = trial % 3 == 0;
        for (int i = 0; i < height; ++i)
            for (int d = 0; d < columns; ++d)
                all.row(i)[d] =
                    large ? std::copysign(std::numeric_limits<float>::max(), normal(random)) : normal(random);
        EXPECT_TRUE(sw::detail::all_finite(all, parts));
        for (const sw::detail::RowPart& part : parts)
            for (int i = 0; i < height && part.squares != nullptr; ++i)
                ASSERT_EQ(std::bit_cast<std::uint64_t>(part.squares[i]),
                          std::bit_cast<std::uint64_t>(sw::sum_of_squares(all.row(i) + part.first, part.columns)))
                    << "row " << i << ", column " << part.first;
        for (int wrong = 0; wrong < 20; ++wrong) {
            constexpr float numbers[] = {std::numeric_limits<float>::infinity(),
                                         -std::numeric_limits<float>::infinity(),
                                         std::numeric_limits<float>::quiet_NaN()};
            const int last = wrong % 4 == 0 ? columns - 1 : draw(random, 0, columns - 1);
            float& one = all.row(wrong % 5 == 0 ? height - 1 : draw(random, 0, height - 1))[last];
            const float before = std::exchange(one, numbers[wrong % 3]);
            EXPECT_FALSE(sw::detail::all_finite(all, parts)) << "column " << last << " of " << columns;
            one = before;
        }
    }
}

/// A layer of random tables, and how it learns.
struct RandomLayer {
    std::vector<sw::TableConfig> tables;
    sw::LayerNames names;
    sw::LayerOptions options;
    int groups = 1;
    bool weighted = false;
};
RandomLayer random_layer(std::mt19937& random) {
    RandomLayer of;
    const bool mixed = draw(random, 0, 2) == 0;
    const bool pooled_by_table = draw(random, 0, 1) == 0;
    const auto one_of = [&](std::vector<std::string> words) {
        return words[static_cast<std::size_t>(draw(random, 0, static_cast<int>(words.size()) - 1))];
    };
    for (int t = draw(random, 1, 5); t > 0; --t) {
        constexpr int dims[] = {8, 31, 32, 48, 64, 128, 130};
        const std::string name = "t" + std::to_string(t);
        of.tables.push_back({.name = name,
                             .rows = draw(random, 1, 60),
                             .dim = dims[draw(random, 0, 6)],
                             .features = {name},
                             .sharding = mixed ? one_of({"row", "table", "dp"}) : "",
                             .load = 1.0F,
                             .pooling = pooled_by_table ? one_of({"sum", "sum", "mean", "none"}) : ""});
        if (draw(random, 0, 3) == 0) of.tables.back().features.push_back(name + "too");
    }
    of.names.shardings = mixed ? std::vector<std::string>{"row", "table", "dp"}
                               : std::vector<std::string>{one_of({"row", "table", "col", "dp"})};
    of.names.optimizer = one_of({"rowwise_adagrad", "rowwise_adagrad", "rowwise_adagrad_mean", "sgd"});
    if (pooled_by_table) of.names.pooling = "by_table";
    of.options.seed = 3;
    of.options.learning_rate = {.base = 0.1F};
    switch (draw(random, 0, 5)) {
        case 0:
            of.options.clip_norm = 0.5F;
            break;
        case 1:
            of.options.by_table["*"].clip_value = 0.3F;
            break;
        case 2:
            of.options.by_table["*"].weight_decay = 0.1F;
            break;
        case 3:
            of.groups = 2;  // of one rank each
            break;
        default:
            break;
    }
    of.weighted = !pooled_by_table && draw(random, 0, 3) == 0;
    return of;
}

/// All weights and moments of all ranks behind some steps.
std::vector<float> learnt(RandomLayer of, bool look, unsigned seed) {
    of.options.check_gradients = look;
    if (of.groups > 1) of.options.groups.count = of.groups;
    std::vector<std::vector<float>> ranks(static_cast<std::size_t>(of.groups));
    sw::ThreadWorld world{sw::Topology{1, of.groups}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto layer = sw::make_layer(comm, of.tables, of.names, of.options);
        std::mt19937 random{seed + static_cast<unsigned>(comm.rank())};
        for (int step = 0; step < 4; ++step) {
            const bool single = draw(random, 0, 1) == 0;
            sw::JaggedBatch<std::int64_t> batch{
                .samples = draw(random, 0, 70), .features = 0, .values = {}, .lengths = {}, .weights = {}};
            for (const sw::TableConfig& table : of.tables)
                for (std::size_t f = 0; f < table.features.size(); ++f, ++batch.features)
                    for (std::int64_t sample = 0; sample < batch.samples; ++sample) {
                        const int ids = single ? 1 : draw(random, 0, 4);
                        if (!single) batch.lengths.push_back(ids);
                        for (int i = 0; i < ids; ++i) {
                            batch.values.push_back(draw(random, 0, static_cast<int>(table.rows) - 1));
                            if (of.weighted) batch.weights.push_back(static_cast<float>(draw(random, 1, 3)));
                        }
                    }
            const sw::LayerVectors out = layer->forward(batch.view());
            std::normal_distribution<float> normal;
            const std::int64_t columns = out.pooled.columns();
            const std::int64_t stride = columns + (step % 2 == 0 ? 0 : 5);
            std::vector<float> gradient(static_cast<std::size_t>(batch.samples * stride));
            std::generate(gradient.begin(), gradient.end(), [&] { return normal(random); });
            std::vector<std::vector<float>> numbers;
            std::vector<sw::MatrixView<const float>> sequences;
            for (const sw::MatrixView<const float>& one : out.sequences) {
                numbers.emplace_back(static_cast<std::size_t>(one.rows() * one.columns()));
                std::generate(numbers.back().begin(), numbers.back().end(), [&] { return normal(random); });
                sequences.emplace_back(numbers.back().data(), one.rows(), one.columns());
            }
            layer->backward({.pooled = {gradient.data(), batch.samples, columns, stride}, .sequences = sequences});
        }
        layer->sync();
        std::vector<float>& all = ranks[static_cast<std::size_t>(comm.rank())];
        layer->for_each_shard([&](const sw::ShardView& shard, const auto&) {
            all.insert(all.end(), shard.weights, shard.weights + shard.rows * shard.dim);
            if (shard.row_state != nullptr) all.insert(all.end(), shard.row_state, shard.row_state + shard.rows);
        });
    });
    for (std::size_t rank = 1; rank < ranks.size(); ++rank)
        ranks[0].insert(ranks[0].end(), ranks[rank].begin(), ranks[rank].end());
    return ranks[0];
}

/// For how many results a layer of two tables, of 16 and 32 columns, makes sums of squares.
std::int64_t squared(const sw::LayerNames& names, const sw::LayerOptions& options, int ranks, bool two_features,
                     const char* pooling) {
    const bool mixed = names.shardings.size() > 1;
    const std::vector<sw::TableConfig> tables{
        {.name = "a",
         .rows = 9,
         .dim = 16,
         .features = {"a"},
         .sharding = mixed ? names.shardings.front() : "",
         .load = 1.0F,
         .pooling = names.pooling == "by_table" ? "sum" : ""},
        {.name = "b",
         .rows = 9,
         .dim = 32,
         .features = two_features ? std::vector<std::string>{"f", "g"} : std::vector<std::string>{"f"},
         .sharding = mixed ? names.shardings.back() : "",
         .load = 1.0F,
         .pooling = pooling}};
    return sw::draw_layer(sw::Topology{1, ranks}, tables, names, options).features().squares(1);
}

TEST(LookAtGradients, MakesSumsOfSquaresWhereRowsLearnByThem) {
    const auto of = [](const sw::LayerNames& names, const sw::LayerOptions& options = {}, int ranks = 1,
                       bool two_features = false,
                       const char* pooling = "") { return squared(names, options, ranks, two_features, pooling); };
    const auto by_table = [](auto set) {
        sw::LayerOptions options;
        set(options.by_table["*"]);
        return options;
    };
    EXPECT_EQ(of({}), 1);
    EXPECT_EQ(of({.shardings = {"table"}, .optimizer = "rowwise_adagrad_mean"}), 1);
    EXPECT_EQ(of({.shardings = {"dp", "row"}}), 1);
    EXPECT_EQ(of({.shardings = {"row"}, .collective = "hierarchical"}), 1);
    EXPECT_EQ(of({}, {.groups = {.count = 2}}, 2), 1);
    EXPECT_EQ(of({.pooling = "by_table"}, {}, 1, false, "sum"), 1);
    EXPECT_EQ(of({.forward_wire = "bf16"}), 1);
    EXPECT_EQ(of({}, by_table([](sw::TableSettings& of_all) { of_all.weight_decay = 0.1F; })), 1);

    EXPECT_EQ(of({}, {}, 2), 0);
    EXPECT_EQ(of({.optimizer = "sgd"}), 0);
    EXPECT_EQ(of({}, {.check_gradients = false}), 0);
    EXPECT_EQ(of({}, {}, 1, true), 0);
    EXPECT_EQ(of({.pooling = "mean"}), 0);
    EXPECT_EQ(of({.pooling = "none"}), 0);
    EXPECT_EQ(of({.pooling = "by_table"}, {}, 1, false, "none"), 0);
    EXPECT_EQ(of({.backward_wire = "bf16"}), 0);
    EXPECT_EQ(of({.requests = "coalesced"}), 0);
    for (const char* sharding : {"dp", "col", "flex"})
        EXPECT_EQ(of({.shardings = {sharding}}), 0) << sharding;
    EXPECT_EQ(of({.shardings = {"row", "dp"}}), 0);
    EXPECT_EQ(of({}, by_table([](sw::TableSettings& of_all) { of_all.clip_value = 0.1F; })), 0);
    EXPECT_EQ(of({}, by_table([](sw::TableSettings& of_all) { of_all.l2 = 0.1F; })), 0);
}

TEST(LookAtGradients, LeavesRowsWithTheBitsThatTheyLearnWithoutIt) {
    std::mt19937 random{5};
    for (unsigned trial = 0; trial < 120; ++trial) {
        const RandomLayer of = random_layer(random);
        const std::vector<float> with = learnt(of, true, trial);
        const std::vector<float> without = learnt(of, false, trial);
        ASSERT_EQ(with.size(), without.size());
        for (std::size_t i = 0; i < with.size(); ++i)
            ASSERT_EQ(std::bit_cast<std::uint32_t>(with[i]), std::bit_cast<std::uint32_t>(without[i]))
                << "number " << i << " of trial " << trial << ", " << of.names.optimizer;
    }
}

}  // namespace
}  // namespace shardwise_test
