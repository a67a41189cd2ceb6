// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/tower/layer_modules.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/all_reduce.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/dense/any_optimizer.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/table.hpp"
#include "shardwise/tower/any_module.hpp"

/// \file
/// Modules of a LayerBase whose type nobody knows, beside those of the layer that they stand for.

namespace {

namespace sw = shardwise;

template <class M>
using ModuleLayer =
    sw::EmbeddingLayer<sw::Sharding<sw::Table>, sw::Optimizer<sw::Sgd>, sw::Collective<sw::Hierarchical>, sw::Tower<M>>;

const std::vector<sw::TableConfig> module_tables{{.name = "a", .rows = 11, .dim = 4},
                                                 {.name = "b", .rows = 5, .dim = 6},
                                                 {.name = "c", .rows = 7, .dim = 3},
                                                 {.name = "d", .rows = 9, .dim = 4}};

/// A layer of AnyModule, trained as a LayerBase by DataParallel, and one of M, trained by hand.
template <class M>
void expect_same_training(const sw::Topology& topology, const sw::Towers& towers, const typename M::Config& config,
                          const sw::GroupOptions& groups = {}) {
    SCOPED_TRACE(testing::Message() << topology.hosts << " hosts of " << topology.ranks_per_host << ", " << groups.count
                                    << " groups");
    sw::ThreadWorld world{topology};
    world.run([&](sw::ThreadCommunicator& below) {
        sw::CountingCommunicator comm{below};
        sw::MemoryAccount memory;
        const sw::LayerOptions options{.learning_rate = {.base = 0.1F}, .seed = 3, .towers = towers, .groups = groups};
        ModuleLayer<sw::AnyModule> any_layer{comm, module_tables, options, {}, {config}};
        ModuleLayer<M> layer{comm, module_tables, options, {}, config};
        sw::LayerBase& any = any_layer;

        sw::ParameterSet& parameters = sw::module_of<sw::AnyModule>(any).parameters();
        EXPECT_EQ(&parameters, &any_layer.module().parameters());
        sw::DataParallel<sw::AnyDenseOptimizer, sw::OneTower> training{
            parameters,   {"adam", parameters.values().size(), memory.tables()}, comm, any.topology(), any.groups(),
            memory.work()};
        sw::ParameterSet& expected = layer.module().parameters();
        sw::DenseAdam optimizer{expected.values().size(), memory.tables()};
        const sw::ReplicaGroups& all = layer.groups();
        sw::BasicTreeAllReduce<float, sw::OneTower> over_tower{comm, layer.topology(), all};
        sw::BasicTreeAllReduce<double, sw::OneTower> wide_over_tower{comm, layer.topology(), all};
        sw::BasicTreeAllReduce<float> over_copies{comm, all.between_copies(), all.of_copies()};
        sw::BasicTreeAllReduce<double> wide_over_copies{comm, all.between_copies(), all.of_copies()};
        const bool wide = config.precision != sw::DensePrecision::single;
        for (int step = 0; step < 3; ++step) {
            const std::int64_t samples = 1 + (comm.rank() + step) % 3;
            std::vector<std::int64_t> ids;
            for (const sw::TableConfig& table : module_tables)
                for (std::int64_t i = 0; i < samples; ++i)
                    ids.push_back((i * 3 + comm.rank() + step) % table.rows);
            const sw::JaggedView<std::int64_t> batch{.samples = samples,
                                                     .features = 4,
                                                     .values = ids,
                                                     .lengths = {},
                                                     .offsets = {},
                                                     .weights = {},
                                                     .keys = {}};
            const std::vector<float> gradient(static_cast<std::size_t>(samples * layer.width()), 0.25F);
            const sw::MatrixView<const float> view{gradient.data(), samples, layer.width()};
            auto flight = any.start(batch);
            static_cast<void>(any.forward(flight));
            any.backward(std::move(flight), {.pooled = view, .sequences = {}});
            static_cast<void>(layer.forward(batch));
            layer.backward(view);

            comm.reset();
            training.sum();
            EXPECT_EQ(comm.sent().sent_by(comm.rank()),
                      sw::predict_module_sum<sw::AnyModule>(any, config.precision).sent_by(comm.rank()));
            training.step(0.1);
            if (wide) {
                wide_over_tower(expected.wide_gradients());
                wide_over_copies(expected.wide_gradients());
                expected.round_gradients();
            } else {
                over_tower(expected.gradients());
                over_copies(expected.gradients());
            }
            optimizer.step(expected.values(), expected.gradients(), 0.1);
            EXPECT_TRUE(std::ranges::equal(parameters.values(), expected.values()));
        }
        sw::ModulesSize size;
        for (const sw::TowerShape& shape : layer.towers().shapes) {
            size.flops += M::flops(config, shape);
            size.parameters += M::parameter_count(config, shape);
        }
        EXPECT_EQ(sw::size_of_modules<sw::AnyModule>(any).flops, size.flops);
        EXPECT_EQ(sw::size_of_modules<sw::AnyModule>(any).parameters, size.parameters);
    });
}

TEST(layer_modules, learn_as_those_of_a_layer_of_known_type) {
    const sw::Towers two{{"a", "b"}, {"c", "d"}};
    for (const auto precision : {sw::DensePrecision::single, sw::DensePrecision::blocks, sw::DensePrecision::wide})
        for (const sw::Topology& topology : {sw::Topology{2, 1}, sw::Topology{2, 2}, sw::Topology{4, 2}}) {
            expect_same_training<sw::Dot>(topology, two,
                                          {.per_feature = 1, .per_tower = 1, .dimension = 3, .precision = precision});
            expect_same_training<sw::Cross>(
                topology, two, {.layers = 2, .rank = 2, .per_tower = 1, .dimension = 4, .precision = precision});
        }
    for (const auto precision : {sw::DensePrecision::single, sw::DensePrecision::blocks, sw::DensePrecision::wide})
        for (const auto& [topology, groups] :
             {std::pair{sw::Topology{4, 1}, sw::GroupOptions{.count = 2}},
              std::pair{sw::Topology{2, 4},
                        sw::GroupOptions{.count = 2, .placement = sw::GroupPlacement::inside_hosts}}})
            expect_same_training<sw::Dot>(
                topology, two, {.per_feature = 1, .per_tower = 1, .dimension = 3, .precision = precision}, groups);
    // the tower of "a" alone has no parameters: what it makes of the feature is as large
    for (const auto precision : {sw::DensePrecision::single, sw::DensePrecision::blocks, sw::DensePrecision::wide})
        expect_same_training<sw::Dot>(sw::Topology{2, 2}, {{"a"}, {"b", "c", "d"}},
                                      {.per_feature = 1, .per_tower = 0, .dimension = 4, .precision = precision});
}

TEST(layer_modules, of_a_layer_without_any_are_an_error) {
    sw::ThreadWorld world{sw::Topology{2, 1}};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<> plain{comm, module_tables};
        const auto message = [](auto use) {
            try {
                use();
            } catch (const sw::BadInput& error) {
                return std::string{error.what()};
            }
            return std::string{};
        };
        const std::string expected = "the layer's towers have no modules: give it a Tower<> policy";
        EXPECT_EQ(message([&] { static_cast<void>(sw::module_of<sw::Dot>(plain)); }), expected);
        EXPECT_EQ(message([&] { static_cast<void>(sw::size_of_modules<sw::Dot>(plain)); }), expected);
        EXPECT_EQ(
            message([&] { static_cast<void>(sw::predict_module_sum<sw::Dot>(plain, sw::DensePrecision::single)); }),
            expected);
    });
}

}  // namespace
