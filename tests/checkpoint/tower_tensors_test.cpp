// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/checkpoint/tower_tensors.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/support.hpp"
#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/dense/any_optimizer.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/sharding/table.hpp"
#include "shardwise/tower/any_module.hpp"

namespace {

namespace sw = shardwise;

using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Table>, sw::Collective<sw::Hierarchical>, sw::Tower<sw::AnyModule>>;
using Training = sw::DataParallel<sw::AnyDenseOptimizer, sw::OneTower>;
using Tensors = sw::TowerTensors<sw::AnyModule, sw::AnyDenseOptimizer>;

const std::vector<sw::TableConfig> tables{
    {.name = "a", .rows = 11, .dim = 4}, {.name = "b", .rows = 5, .dim = 6}, {.name = "c", .rows = 7, .dim = 3}};

/// A layer of modules with what trains and saves them.
struct TowerModel {
    sw::MemoryAccount memory;
    Layer layer;
    Training training;
    Tensors tensors;

    /// \param towers  "a" alone has no parameters where its vector has the module's dimension
    TowerModel(sw::CommunicatorRef comm, const sw::Towers& towers, const sw::GroupOptions& groups,
               const std::string& optimizer, std::uint64_t seed)
        : layer{comm,
                tables,
                {.seed = seed, .towers = towers, .groups = groups},
                {},
                {sw::Dot::Config{.dimension = 4}}},
          training{layer.module().parameters(),
                   {optimizer, layer.module().parameters().values().size(), memory.tables()},
                   comm,
                   layer.topology(),
                   layer.groups(),
                   memory.work()},
          tensors{layer, training, comm} {}

    /// As if a batch had been learnt from: gradients that tell rank, step and element.
    void learn(int rank, int step) {
        for (const sw::Parameter& parameter : training.parameters())
            for (std::size_t i = 0; i < parameter.size(); ++i)
                parameter.gradients()[i] =
                    static_cast<float>((i * 5 + static_cast<std::size_t>(3 * rank + step)) % 11) - 4.0F;
        training.sum();
        training.step(0.1);
    }
};

struct Case {
    sw::Topology topology;
    sw::Towers towers;
    sw::GroupOptions groups = {};
};
const Case cases[] = {{{2, 1}, {{"a", "b"}, {"c"}}},
                      {{2, 2}, {{"a"}, {"b", "c"}}},
                      {{4, 1}, {{"b", "c"}, {"a"}}},
                      {{3, 2}, {{"a"}, {"b"}, {"c"}}},
                      {{4, 1}, {{"a"}, {"b", "c"}}, {.count = 2}},
                      {{2, 4}, {{"a", "b"}, {"c"}}, {.count = 2, .placement = sw::GroupPlacement::inside_hosts}}};

TEST(tower_tensors, training_goes_on_from_a_file_on_every_tower) {
    for (const Case& one : cases)
        for (const std::string optimizer : {"sgd", "adagrad", "adam"}) {
            SCOPED_TRACE(testing::Message() << optimizer << ", " << one.topology.hosts << " hosts");
            const checkpoint_test::TemporaryFile file{"tower_tensors"};
            std::vector<std::vector<float>> expected(static_cast<std::size_t>(one.topology.ranks()));
            sw::ThreadWorld world{one.topology};
            world.run([&](sw::ThreadCommunicator& comm) {
                TowerModel model{comm, one.towers, one.groups, optimizer, 1};
                model.learn(comm.rank(), 0);
                model.learn(comm.rank(), 1);
                sw::Checkpoint all;
                model.tensors.append_to(all);
                model.tensors.gather();
                sw::save_checkpoint(comm, file.path(), all);
                model.learn(comm.rank(), 2);
                const auto values = model.training.parameters().values();
                expected[static_cast<std::size_t>(comm.rank())].assign(values.begin(), values.end());
            });
            sw::ThreadWorld again{one.topology};
            again.run([&](sw::ThreadCommunicator& comm) {
                TowerModel model{comm, one.towers, one.groups, optimizer, 2};  // other weights at first
                sw::Checkpoint all;
                model.tensors.append_to(all);
                sw::load_checkpoint(comm, file.path(), all);
                model.tensors.scatter();
                model.training.optimizer().set_steps(2);
                model.learn(comm.rank(), 2);
                EXPECT_TRUE(std::ranges::equal(model.training.parameters().values(),
                                               expected[static_cast<std::size_t>(comm.rank())]));
            });
        }
}

TEST(tower_tensors, gathered_are_the_same_on_all_ranks_and_named_after_towers) {
    for (const Case& one : cases) {
        SCOPED_TRACE(testing::Message() << one.topology.hosts << " hosts");
        sw::ThreadWorld world{one.topology};
        world.run([&](sw::ThreadCommunicator& below) {
            sw::CountingCommunicator comm{below};
            TowerModel model{comm, one.towers, one.groups, "adam", 1};
            model.learn(comm.rank(), 0);
            comm.reset();
            model.tensors.gather();

            const sw::Topology topology = model.layer.topology();
            const sw::ReplicaGroups& groups = model.layer.groups();
            const int tower = topology.tower_of(groups.index_of(comm.rank()));
            sw::Traffic sent;
            if (comm.rank() == groups.rank_of(0, tower * topology.ranks_per_tower()))
                for (int to = 0; to < comm.size(); ++to)
                    if (to != comm.rank())
                        sent.of(one.topology.tier(comm.rank(), to)) +=
                            {.payload = 4 * 3 * static_cast<std::int64_t>(model.training.parameters().values().size()),
                             .control = 0,
                             .messages = 2};
            EXPECT_EQ(comm.sent().sent_by(comm.rank()), sent);

            sw::Checkpoint all;
            model.tensors.append_to(all);
            std::set<std::string> names;
            std::vector<float> together;
            for (const sw::DenseTensor& tensor : all.dense) {
                names.insert(tensor.name);
                together.insert(together.end(), tensor.values.begin(), tensor.values.end());
            }
            EXPECT_EQ(names.size(), all.dense.size());
            for (const sw::Parameter& parameter : model.training.parameters())
                EXPECT_TRUE(names.contains("dense_state/" + parameter.name + "/1")) << parameter.name;
            for (const auto& theirs : sw::all_gather_v<float>(comm, together))
                EXPECT_EQ(theirs, together);
            std::int64_t elements = 0;
            for (const sw::TowerShape& shape : model.layer.towers().shapes)
                elements += sw::AnyModule::parameter_count({sw::Dot::Config{.dimension = 4}}, shape);
            EXPECT_EQ(static_cast<std::int64_t>(together.size()), 3 * elements);
        });
    }
}

}  // namespace
