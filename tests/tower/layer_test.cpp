// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/embedding/layer.hpp"

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/all_reduce.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"
#include "shardwise/tower/cross.hpp"
#include "shardwise/tower/dot.hpp"

/// \file
/// A layer whose towers have modules, held against one without and the modules applied at home.

namespace {
namespace sw = shardwise;

template <class S, class M>
using TowerLayer =
    sw::EmbeddingLayer<sw::Sharding<S>, sw::Optimizer<sw::Sgd>, sw::Collective<sw::Hierarchical>, sw::Tower<M>>;

const std::vector<sw::TableConfig> layer_tables{{.name = "a", .rows = 11, .dim = 4, .features = {"a", "b"}},
                                                {.name = "c", .rows = 5, .dim = 8},
                                                {.name = "d", .rows = 30, .dim = 4},
                                                {.name = "e", .rows = 7, .dim = 6},
                                                {.name = "f", .rows = 3, .dim = 4}};

struct Bags {
    std::int64_t samples = 0;
    std::vector<std::int64_t> ids;
    std::vector<std::int32_t> lengths;

    /// (6 features): up to 3 ids a bag.
    Bags(int rank, int step) : samples{rank == 1 && step == 0 ? 0 : 2 + (rank + step) % 3} {
        std::mt19937 dice{static_cast<std::uint32_t>(rank * 100 + step)};
        for (const std::int64_t rows : {11, 11, 5, 30, 7, 3})
            for (std::int64_t i = 0; i < samples; ++i) {
                lengths.push_back(static_cast<std::int32_t>(dice() % 4));
                for (std::int32_t k = 0; k < lengths.back(); ++k)
                    ids.push_back(static_cast<std::int64_t>(dice()) % rows);
            }
    }
    [[nodiscard]] sw::JaggedView<std::int64_t> view() const {
        return {.samples = samples,
                .features = 6,
                .values = ids,
                .lengths = lengths,
                .offsets = {},
                .weights = {},
                .keys = {}};
    }
};

void expect_near(float a, float b, const std::string& what) {
    if (!(std::abs(a - b) <= 2e-5F * std::max(1.0F, std::abs(b))))
        throw std::runtime_error{what + ": " + std::to_string(a) + " instead of " + std::to_string(b)};
}

/// Three steps of both on one rank.
template <class S, class M>
void compare(sw::ThreadCommunicator& comm, const sw::Towers& towers, const typename M::Config& config) {
    const sw::LayerOptions options{
        .learning_rate = {.base = 0.1F}, .seed = 9, .towers = towers, .memory = nullptr, .tracer = nullptr};
    TowerLayer<S, M> layer{comm, layer_tables, options, {}, config};
    TowerLayer<S, sw::PassThrough> plain{comm, layer_tables, options};
    ASSERT_EQ(plain.width(), 30);

    // every module, here, and where its features lie in the plain layer's result
    sw::MemoryAccount memory;
    std::vector<std::unique_ptr<M>> modules;
    std::vector<std::vector<int>> columns;
    for (const sw::TowerShape& shape : layer.towers().shapes) {
        modules.push_back(std::make_unique<M>(config, shape, 9, memory));
        columns.emplace_back();
        int column = 0;
        for (const sw::TableConfig& table : layer_tables)
            for (const std::string& feature : sw::features_of(table)) {
                const auto& names = towers[static_cast<std::size_t>(shape.tower)];
                const bool here = std::find(names.begin(), names.end(), feature) != names.end();
                for (int d = 0; d < table.dim; ++d, ++column)
                    if (here) columns.back().push_back(column);
            }
    }
    const std::size_t mine = static_cast<std::size_t>(comm.rank() / layer.topology().ranks_per_tower());
    sw::BasicTreeAllReduce<float, sw::OneTower> over_tower{comm, layer.topology()};
    sw::TreeAllReduce over_all{comm};

    for (int step = 0; step < 3; ++step) {
        const Bags bags{comm.rank(), step};
        const auto result = layer.forward(bags.view());
        const auto features = plain.forward(bags.view());
        ASSERT_EQ(result.rows(), bags.samples);
        ASSERT_EQ(result.columns(), layer.width());
        std::vector<float> gradient;
        for (std::int64_t i = 0; i < result.rows() * result.columns(); ++i)
            gradient.push_back(static_cast<float>((i * 5 + comm.rank()) % 7 - 3) / 4.0F);
        std::vector<float> plain_gradient(static_cast<std::size_t>(bags.samples * plain.width()));
        int first = 0;
        for (std::size_t t = 0; t < modules.size(); ++t) {
            const auto width = static_cast<std::int64_t>(columns[t].size());
            const std::int64_t outputs = layer.widths()[t];
            std::vector<float> in;
            std::vector<float> out_gradient;
            for (std::int64_t i = 0; i < bags.samples; ++i) {
                for (const int column : columns[t])
                    in.push_back(features(i, column));
                for (std::int64_t j = 0; j < outputs; ++j)
                    out_gradient.push_back(gradient[static_cast<std::size_t>(i * layer.width() + first + j)]);
            }
            std::vector<float> out(out_gradient.size());
            std::vector<float> through(in.size());
            typename M::Work work;
            modules[t]->forward({in.data(), bags.samples, width}, work, {out.data(), bags.samples, outputs},
                                memory.work());
            for (std::int64_t i = 0; i < bags.samples; ++i)
                for (std::int64_t j = 0; j < outputs; ++j)
                    expect_near(result(i, first + j), out[static_cast<std::size_t>(i * outputs + j)], "result");
            modules[t]->backward(work, {out_gradient.data(), bags.samples, outputs},
                                 {through.data(), bags.samples, width}, memory.work());
            for (std::int64_t i = 0; i < bags.samples; ++i)
                for (std::size_t k = 0; k < columns[t].size(); ++k)
                    plain_gradient[static_cast<std::size_t>(i * plain.width() + columns[t][k])] =
                        through[static_cast<std::size_t>(i * width) + k];
            over_all(modules[t]->parameters().gradients());
            first += static_cast<int>(outputs);
        }
        layer.backward({gradient.data(), bags.samples, layer.width()});
        plain.backward({plain_gradient.data(), bags.samples, plain.width()});

        sw::ParameterSet& parameters = layer.module().parameters();
        over_tower(parameters.gradients());
        for (std::size_t i = 0; i < parameters.gradients().size(); ++i)
            expect_near(parameters.gradients()[i], modules[mine]->parameters().gradients()[i], "gradient of a module");
        for (std::size_t i = 0; i < parameters.values().size(); ++i)
            parameters.values()[i] -= 0.05F * parameters.gradients()[i];
        for (const auto& module : modules)
            for (std::size_t i = 0; i < module->parameters().values().size(); ++i)
                module->parameters().values()[i] -= 0.05F * module->parameters().gradients()[i];
    }
    std::vector<float> weights;
    plain.for_each_shard([&](const sw::ShardView& shard, const auto&) {
        weights.insert(weights.end(), shard.weights, shard.weights + shard.rows * shard.dim);
    });
    std::size_t at = 0;
    layer.for_each_shard([&](const sw::ShardView& shard, const auto&) {
        for (std::int64_t i = 0; i < shard.rows * shard.dim; ++i)
            expect_near(shard.weights[i], weights.at(at++), "row");
    });
}

template <class M>
void compare_everywhere(const typename M::Config& config) {
    const sw::Towers two{{"a", "b", "e"}, {"c", "d", "f"}};
    for (const sw::Topology& topology :
         {sw::Topology{2, 1}, sw::Topology{2, 2}, sw::Topology{4, 1}, sw::Topology{2, 3}}) {
        sw::ThreadWorld world{topology};
        world.run([&](sw::ThreadCommunicator& comm) {
            compare<sw::Row, M>(comm, two, config);
            compare<sw::Col<>, M>(comm, two, config);
            compare<sw::Table, M>(comm, two, config);
        });
    }
    sw::ThreadWorld world{sw::Topology{4, 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        compare<sw::Table, M>(comm, {{"a", "b"}, {"c"}, {"e", "f"}, {"d"}}, config);
        compare<sw::Row, M>(comm, {{"a", "b", "c", "d", "e", "f"}}, config);
    });
}

TEST(layer, with_dot_is_one_without_and_the_maps_at_home) {
    compare_everywhere<sw::Dot>({.per_feature = 1, .per_tower = 1, .dimension = 3});
}
TEST(layer, with_cross_is_one_without_and_the_crossing_at_home) {
    compare_everywhere<sw::Cross>({.layers = 2, .rank = 2, .per_tower = 1, .dimension = 4});
}

/// Payload of the vectors, and of the ids, between hosts.
template <class L>
std::pair<std::int64_t, std::int64_t> off_host(const L& layer,
                                               const std::vector<sw::JaggedView<std::int64_t>>& batches) {
    std::int64_t vectors = 0;
    std::int64_t ids = 0;
    const sw::LayerCost cost = layer.predict_cost(batches);
    for (const sw::SegmentCost& segment : cost.segments)
        for (std::size_t post = 0; post < segment.steps.size(); ++post) {
            const std::string& name = layer.program().segments[segment.segment].posts[post].name;
            const std::int64_t bytes = segment.steps[post].total().cross_host.payload;
            (name.find("Ids") != std::string::npos ? ids : vectors) += bytes;
        }
    return {vectors, ids};
}

TEST(layer, between_hosts_vectors_shrink_by_the_compression_and_ids_stay) {
    std::vector<sw::TableConfig> even;
    for (int f = 0; f < 8; ++f)
        even.push_back({.name = "f" + std::to_string(f), .rows = 20 + f, .dim = 16});
    std::vector<std::vector<std::int64_t>> ids(8);
    std::vector<sw::JaggedView<std::int64_t>> batches;
    for (std::size_t rank = 0; rank < 8; ++rank) {
        for (std::int64_t i = 0; i < 8 * (3 + static_cast<std::int64_t>(rank)); ++i)
            ids[rank].push_back(i % 20);
        batches.push_back({.samples = 3 + static_cast<std::int64_t>(rank),
                           .features = 8,
                           .values = ids[rank],
                           .lengths = {},
                           .offsets = {},
                           .weights = {},
                           .keys = {}});
    }
    sw::ThreadWorld world{sw::Topology{4, 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const TowerLayer<sw::Table, sw::PassThrough> plain{comm, even};
        const auto [vectors, of_ids] = off_host(plain, batches);
        for (const int dimension : {8, 4, 2, 16}) {
            const TowerLayer<sw::Table, sw::Dot> layer{
                comm, even, {}, {}, {.per_feature = 1, .per_tower = 0, .dimension = dimension}};
            const auto [shrunk, same] = off_host(layer, batches);
            EXPECT_EQ(shrunk * 16, vectors * dimension);
            EXPECT_EQ(same, of_ids);
            EXPECT_DOUBLE_EQ(sw::compression(layer.towers()), 16.0 / dimension);
        }
        const TowerLayer<sw::Row, sw::PassThrough> rows{comm, even};
        const TowerLayer<sw::Row, sw::Cross> crossed{
            comm, even, {}, {}, {.layers = 1, .rank = 0, .per_tower = 1, .dimension = 8}};
        EXPECT_EQ(off_host(crossed, batches).first * 4, off_host(rows, batches).first);
        EXPECT_EQ(off_host(crossed, batches).second, off_host(rows, batches).second);
    });
}

TEST(layer, refuses_numbers_and_towers_that_do_not_fit_on_every_rank) {
    sw::ThreadWorld world{sw::Topology{2, 1}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto message = [&](const sw::Towers& towers, const sw::Dot::Config& config) {
            try {
                const TowerLayer<sw::Row, sw::Dot> layer{comm, layer_tables, {.towers = towers}, {}, config};
            } catch (const sw::BadInput& error) {
                return std::string{error.what()};
            }
            return std::string{};
        };
        EXPECT_EQ(message({{"a", "b", "e"}, {"c", "d", "f"}}, {.per_feature = 0, .per_tower = 0, .dimension = 4}),
                  "Tower<Dot> with c = 0, p = 0 and D = 4: neither c nor p is negative, and one of them is at least 1");
        EXPECT_EQ(message({{"a", "b", "e", "c", "d", "f"}, {}}, {.per_feature = 1, .per_tower = 0, .dimension = 4}),
                  "tower 1 of 2 has no feature, and a module has nothing to work on there: give every tower one");
        EXPECT_NE(message({{"a", "b", "e", "c", "d", "g"}, {"f"}}, {.per_feature = 1, .per_tower = 0, .dimension = 4}),
                  "");
    });
}

TEST(layer, with_another_module_config_on_a_rank_is_a_mismatch) {
    sw::ThreadWorld world{sw::Topology{2, 1}};
    try {
        world.run([&](sw::ThreadCommunicator& comm) {  // results of one shape, sums of another precision
            const auto precision = comm.rank() == 0 ? sw::DensePrecision::single : sw::DensePrecision::wide;
            TowerLayer<sw::Row, sw::Dot> layer{
                comm, layer_tables, {}, {}, {.per_feature = 1, .per_tower = 0, .dimension = 4, .precision = precision}};
            const Bags bags{comm.rank(), 1};
            static_cast<void>(layer.forward(bags.view()));
        });
        FAIL();
    } catch (const sw::Error& error) {
        EXPECT_NE(std::string{error.what()}.find("runs another layer"), std::string::npos) << error.what();
    }
}

/// The second of two batches that were looked up before either was learnt from: results and its modules' gradients are
/// those of a layer that has seen nothing else.
template <class M>
void check_two_flights(const typename M::Config& config) {
    sw::ThreadWorld world{sw::Topology{2, 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        TowerLayer<sw::Row, M> both{comm, layer_tables, {}, {}, config};
        TowerLayer<sw::Row, M> one{comm, layer_tables, {}, {}, config};
        const Bags first{comm.rank(), 1};
        const Bags second{comm.rank(), 2};
        const auto learn = [](sw::LayerBase& layer, sw::LayerFlight flight, std::int64_t samples) {
            const std::vector<float> gradient(static_cast<std::size_t>(samples * layer.width()), 0.5F);
            layer.backward(std::move(flight), {.pooled = {gradient.data(), samples, layer.width()}, .sequences = {}});
        };
        auto a = both.start(first.view());
        auto b = both.start(second.view());
        static_cast<void>(both.forward(a));
        const auto result = both.forward(b);
        auto alone = one.start(second.view());
        const auto expected = one.forward(alone);
        for (std::int64_t i = 0; i < result.rows(); ++i)
            for (std::int64_t j = 0; j < result.columns(); ++j)
                EXPECT_EQ(result(i, j), expected(i, j));
        learn(both, std::move(a), first.samples);
        learn(both, std::move(b), second.samples);
        learn(one, std::move(alone), second.samples);
        const auto gradients = both.module().parameters().gradients();
        for (std::size_t i = 0; i < gradients.size(); ++i)
            EXPECT_EQ(gradients[i], one.module().parameters().gradients()[i]) << i;
    });
}

TEST(layer, keeps_the_batches_of_two_flights_apart) {
    check_two_flights<sw::Dot>({.per_feature = 1, .per_tower = 1, .dimension = 3});
    check_two_flights<sw::Cross>({.layers = 2, .rank = 2, .per_tower = 1, .dimension = 4});
}

}  // namespace
