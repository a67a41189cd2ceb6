// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/embedding/layer.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/support.hpp"
#include "shardwise/checkpoint/checkpoint_folder.hpp"
#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/optimizer/adagrad.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/frozen.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/flex.hpp"
#include "shardwise/sharding/table.hpp"

namespace {

namespace sw = shardwise;
using checkpoint_test::TemporaryFile;
using checkpoint_test::TemporaryFolder;

const std::vector<sw::TableConfig> tables = {{.name = "a", .rows = 37, .dim = 6, .features = {}, .sharding = "dp"},
                                             {.name = "b", .rows = 2, .dim = 3, .features = {}, .sharding = "row"},
                                             {.name = "c", .rows = 50, .dim = 1, .features = {}, .sharding = "table"}};

/// What the test puts into a place of a tensor: a value of its own.
float value_of(const std::string& tensor, std::int64_t row, int column) {
    const std::size_t hash = std::hash<std::string>{}(tensor) % 1000;
    return static_cast<float>(hash) + 1000.0F * static_cast<float>(row) + 0.125F * static_cast<float>(column);
}

void fill(const sw::LayerShards& layer) {
    for (const sw::TableShard& shard : layer.shards) {
        const std::string name = layer.tables[static_cast<std::size_t>(shard.view.table)].name;
        for (std::int64_t local = 0; local < shard.view.rows; ++local) {
            const std::int64_t row = shard.row(local);
            const auto fill_columns = [&](float* to, const std::string& tensor) {
                for (int d = 0; d < shard.view.dim; ++d)
                    to[d] = value_of(name + tensor, row, shard.view.first_column + d);
            };
            fill_columns(shard.view.weights + local * shard.view.dim, "weight");
            for (int i = 0; i < layer.element_slots; ++i)
                fill_columns(shard.view.element_state + (local * layer.element_slots + i) * shard.view.dim,
                             "element" + std::to_string(i));
            for (int i = 0; i < layer.row_slots; ++i)
                shard.view.row_state[local * layer.row_slots + i] = value_of(name + "row" + std::to_string(i), row, 0);
        }
    }
}

/// The same tables for a layer of one sharding policy.
std::vector<sw::TableConfig> unassigned(std::vector<sw::TableConfig> all) {
    for (sw::TableConfig& table : all)
        table.sharding.clear();
    return all;
}

using Use = std::function<void(sw::CommunicatorRef, const sw::LayerShards&)>;

template <class... Policies>
void with_layer(int ranks, const Use& use) {
    sw::ThreadWorld world{sw::Topology{.hosts = ranks == 4 ? 2 : 1, .ranks_per_host = ranks == 4 ? 2 : ranks}};
    world.run([&](sw::ThreadCommunicator& comm) {
        using Layer = sw::EmbeddingLayer<Policies...>;
        Layer layer{comm, Layer::policies::mixed ? tables : unassigned(tables)};
        use(comm, sw::shards_of(layer));
    });
}

/// Some rows in other tiers: the first of a table, any of them, or none.
template <class Layer>
sw::RowPlan plan_of(int number) {
    sw::RowPlan plan{.tiers = Layer::blueprint({1, 1}, unassigned(tables)).branches(), .tables = {}};
    for (const sw::TableConfig& table : tables) {
        sw::TableRowPlan& one =
            plan.tables.emplace_back(sw::all_in_last_tier(table.name, table.rows, plan.tiers.size()));
        for (std::size_t tier = 0; tier + 1 < plan.tiers.size(); ++tier) {
            one.tiers[tier] = table.rows / 3;
            one.tiers.back() -= table.rows / 3;
        }
        for (std::int64_t i = 0; number == 1 && i < table.rows - one.tiers.back(); ++i)
            one.replicated.push_back((i * 11 + 5) % table.rows);
    }
    return plan;
}
/// A tiered layer with the plan of that number; 2: none.
template <int Plan, class... Policies>
void with_tiers(int ranks, const Use& use) {
    sw::ThreadWorld world{sw::Topology{.hosts = ranks == 4 ? 2 : 1, .ranks_per_host = ranks == 4 ? 2 : ranks}};
    world.run([&](sw::ThreadCommunicator& comm) {
        using Layer = sw::EmbeddingLayer<Policies...>;
        const sw::RowPlan plan = plan_of<Layer>(Plan);
        Layer layer{comm, unassigned(tables), {.rows = Plan == 2 ? nullptr : &plan}};
        use(comm, sw::shards_of(layer));
    });
}

template <class Rule>
void every_pair() {
    using O = sw::Optimizer<Rule>;
    using Run = void (*)(int, const Use&);
    const std::vector<Run> shardings = {&with_layer<sw::Sharding<sw::Row>, O>,
                                        &with_layer<sw::Sharding<sw::Col<>>, O>,
                                        &with_layer<sw::Sharding<sw::Col<2>>, O>,
                                        &with_layer<sw::Sharding<sw::Table>, O>,
                                        &with_layer<sw::Sharding<sw::DP>, O>,
                                        &with_layer<sw::Sharding<sw::Mixed<sw::DP, sw::Table, sw::Row>>, O>,
                                        &with_layer<sw::Sharding<sw::Flex>, O>,
                                        &with_tiers<0, sw::Sharding<sw::Tiered<sw::DP, sw::Flex, sw::Row>>, O>,
                                        &with_tiers<1, sw::Sharding<sw::Tiered<sw::DP, sw::Flex, sw::Row>>, O>,
                                        &with_tiers<1, sw::Sharding<sw::Tiered<sw::DP, sw::Row>>, O>,
                                        &with_tiers<2, sw::Sharding<sw::Tiered<sw::Flex, sw::Row>>, O>};
    const TemporaryFile first{"first"};
    const TemporaryFile second{"second"};
    std::string expected;
    for (const Run from : shardings) {
        for (int from_ranks = 1; from_ranks <= 4; ++from_ranks) {
            from(from_ranks, [&](sw::CommunicatorRef comm, const sw::LayerShards& layer) {
                fill(layer);
                sw::save_checkpoint(comm, first.path(),
                                    {.layer = layer, .dense = {}, .numbers = {{"n", 3}}, .chunk_bytes = 100});
            });
            if (expected.empty()) expected = first.read();
            ASSERT_EQ(first.read(), expected);  // the same file from all
        }
    }
    ASSERT_FALSE(expected.empty());
    const TemporaryFolder parts{"parts"};
    std::size_t other = 0;
    for (const Run from : shardings) {
        for (int from_ranks = 1; from_ranks <= 4; ++from_ranks) {
            from(from_ranks, [&](sw::CommunicatorRef comm, const sw::LayerShards& layer) {
                fill(layer);
                sw::CheckpointFolder folder{comm, parts.path()};
                const sw::Checkpoint all{.layer = layer, .dense = {}, .numbers = {{"n", 3}}, .chunk_bytes = 100};
                if (from_ranks % 2 == 0) return folder.save(all);
                ASSERT_TRUE(folder.start(all));
                folder.finish();
            });
            other += 5;  // each sharding and number of ranks into another one
            const auto to_ranks = static_cast<int>(1 + other % 4);
            shardings[other % shardings.size()](to_ranks, [&](sw::CommunicatorRef comm, const sw::LayerShards& layer) {
                sw::Checkpoint checkpoint{.layer = layer, .dense = {}, .numbers = {{"n", 0}}, .chunk_bytes = 77};
                sw::load_checkpoint(comm, parts.path(), checkpoint);
                if (checkpoint.numbers.at("n") != 3) throw sw::BadInput{"the number was lost"};
                sw::save_checkpoint(comm, second.path(), checkpoint);
            });
            ASSERT_EQ(second.read(), expected);
        }
    }
    for (const Run to : shardings) {
        for (int to_ranks = 1; to_ranks <= 4; ++to_ranks) {
            to(to_ranks, [&](sw::CommunicatorRef comm, const sw::LayerShards& layer) {
                sw::Checkpoint checkpoint{.layer = layer, .dense = {}, .numbers = {{"n", 0}}, .chunk_bytes = 77};
                sw::load_checkpoint(comm, first.path(), checkpoint);
                if (checkpoint.numbers.at("n") != 3) throw sw::BadInput{"the number was lost"};
                sw::save_checkpoint(comm, second.path(), checkpoint);
            });
            ASSERT_EQ(second.read(), expected);  // and into all
        }
    }
}

TEST(LayerCheckpoint, EveryPairOfShardingsAndWorldSizesWithAMomentAnElement) {
    every_pair<sw::Adam>();
}
TEST(LayerCheckpoint, EveryPairOfShardingsAndWorldSizesWithAMomentARow) {
    every_pair<sw::RowwiseAdagrad<>>();
}

TEST(LayerCheckpoint, HoldsWhatWasPutIn) {
    const TemporaryFile file{"values"};
    with_layer<sw::Sharding<sw::Col<>>, sw::Optimizer<sw::Adagrad>>(
        3, [&](sw::CommunicatorRef comm, const auto& layer) {
            fill(layer);
            sw::save_checkpoint(comm, file.path(), {.layer = layer, .dense = {}, .numbers = {}});
        });
    sw::SafetensorsReader reader{file.path()};
    std::vector<float> values(37 * 6);
    reader.read(reader.require("tables/a/element_state.0", sw::TensorType::f32, {37, 6}), 0, std::span{values});
    for (int row = 0; row < 37; ++row)
        for (int column = 0; column < 6; ++column)
            EXPECT_EQ(values[static_cast<std::size_t>(row * 6 + column)], value_of("aelement0", row, column));
    EXPECT_EQ(reader.metadata().at("optimizer"), "adagrad");
}

/// A frozen layer takes the weights of any optimizer's file and leaves its moments; what it saves has none.
template <class Rule, class From, class To>
void into_frozen() {
    const TemporaryFile file{"trained"};
    const TemporaryFile again{"frozen"};
    with_layer<sw::Sharding<From>, sw::Optimizer<Rule>>(3, [&](sw::CommunicatorRef comm, const auto& layer) {
        fill(layer);
        layer.layer->set_steps(7);
        sw::save_checkpoint(comm, file.path(), {.layer = layer, .dense = {}, .numbers = {}});
    });
    with_layer<sw::Sharding<To>, sw::Optimizer<sw::Frozen>>(4, [&](sw::CommunicatorRef comm, const auto& layer) {
        sw::Checkpoint checkpoint{.layer = layer, .dense = {}, .numbers = {}};
        sw::load_checkpoint(comm, file.path(), checkpoint);
        EXPECT_EQ(layer.layer->steps(), 7);
        sw::save_checkpoint(comm, again.path(), checkpoint);
    });
    sw::SafetensorsReader trained{file.path()};
    sw::SafetensorsReader frozen{again.path()};
    EXPECT_EQ(frozen.metadata().at("optimizer"), "frozen");
    EXPECT_EQ(frozen.tensors().size(), tables.size() + 1);  // with the number of steps
    for (const sw::TableConfig& table : tables) {
        const std::string name = "tables/" + table.name + "/weight";
        std::vector<float> expected(static_cast<std::size_t>(table.rows * table.dim));
        std::vector<float> actual = expected;
        trained.read(trained.require(name, sw::TensorType::f32, {table.rows, table.dim}), 0, std::span{expected});
        frozen.read(frozen.require(name, sw::TensorType::f32, {table.rows, table.dim}), 0, std::span{actual});
        EXPECT_EQ(actual, expected);
    }
}
TEST(LayerCheckpoint, AFrozenLayerReadsTheFileOfAnyOptimizer) {
    into_frozen<sw::Adam, sw::Row, sw::Col<>>();
    into_frozen<sw::RowwiseAdagrad<>, sw::Table, sw::Flex>();
    into_frozen<sw::Sgd, sw::DP, sw::Row>();
    into_frozen<sw::Frozen, sw::Col<2>, sw::DP>();
}

TEST(LayerCheckpoint, TrainingGoesOn) {
    using Layer = sw::EmbeddingLayer<sw::Optimizer<sw::Adam>>;
    const TemporaryFile file{"goes_on"};
    const TemporaryFile straight{"straight"};
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto train = [&](Layer& layer, int first, int last) {
            for (int step = first; step < last; ++step) {
                std::vector<std::int64_t> ids;
                for (const sw::TableConfig& table : tables)
                    for (int i = 0; i < 4; ++i)
                        ids.push_back((step * 7 + i * 3 + comm.rank()) % table.rows);
                const auto out = layer.forward(sw::JaggedView<std::int64_t>{.samples = 4,
                                                                            .features = 3,
                                                                            .values = ids,
                                                                            .lengths = {},
                                                                            .offsets = {},
                                                                            .weights = {},
                                                                            .keys = {}});
                std::vector<float> gradient(static_cast<std::size_t>(out.rows() * out.columns()));
                for (std::size_t i = 0; i < gradient.size(); ++i)
                    gradient[i] = out.data()[i] - 0.01F * static_cast<float>(i % 5);
                layer.backward(sw::MatrixView<const float>{gradient.data(), out.rows(), out.columns()});
            }
        };
        Layer whole{comm, unassigned(tables)};
        train(whole, 0, 5);
        sw::save_layer(comm, straight.path(), whole);
        Layer begins{comm, unassigned(tables)};
        train(begins, 0, 3);
        sw::save_layer(comm, file.path(), begins);
        Layer ends{comm, unassigned(tables)};
        sw::load_layer(comm, file.path(), ends);
        train(ends, 3, 5);
        sw::save_layer(comm, file.path(), ends);
    });
    EXPECT_EQ(file.read(), straight.read());
}

// Whatever number of steps a layer comes to, a checkpoint of it can be read again.
TEST(LayerCheckpoint, TheLastStepIsSavedAndLoaded) {
    constexpr std::int64_t last = std::int64_t{1} << 53;
    using Layer = sw::EmbeddingLayer<sw::Optimizer<sw::Adam>>;
    const TemporaryFile file{"last_step"};
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const sw::JaggedBatch<std::int64_t> batch{
            .samples = 1, .features = 1, .values = {3}, .lengths = {}, .weights = {}};
        const auto learn = [&](Layer& layer) { layer.backward(layer.forward(batch.view())); };
        const std::vector<sw::TableConfig> one{{.name = "t", .rows = 10, .dim = 4}};
        Layer layer{comm, one};
        layer.set_steps(last - 1);
        learn(layer);
        EXPECT_EQ(layer.steps(), last);
        EXPECT_THROW(learn(layer), sw::BadInput);  // on every rank, before anything is sent
        EXPECT_EQ(layer.steps(), last);
        sw::save_layer(comm, file.path(), layer);
        Layer loaded{comm, one};
        sw::load_layer(comm, file.path(), loaded);
        EXPECT_EQ(loaded.steps(), last);
        loaded.set_steps(5);
        learn(loaded);
        EXPECT_EQ(loaded.steps(), 6);
        layer.set_steps(5);
        learn(layer);  // the flight that was refused is over
        EXPECT_EQ(layer.steps(), 6);
    });
}

TEST(LayerCheckpoint, WhatDoesNotFitIsBadInputOnEveryRankAndChangesNothing) {
    const TemporaryFile file{"other"};
    const auto refuse = [&](const std::string& expected, const std::vector<sw::TableConfig>& others) {
        std::atomic<int> refused{0};
        sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 3}};
        world.run([&](sw::ThreadCommunicator& comm) {
            sw::EmbeddingLayer<sw::Optimizer<sw::Adagrad>> layer{comm, unassigned(others)};
            fill(sw::shards_of(layer));
            const float before = layer.steps() == 0 ? value_of("aweight", 0, 0) : 0.0F;
            try {
                sw::load_layer(comm, file.path(), layer);
            } catch (const sw::BadInput& error) {
                EXPECT_NE(std::string{error.what()}.find(expected), std::string::npos) << error.what();
                ++refused;
            }
            for (const sw::TableShard& shard : sw::shards_of(layer).shards)
                if (shard.view.table == 0 && shard.view.rows != 0 && shard.row(0) == 0) {
                    EXPECT_EQ(shard.view.weights[0], before);
                }
        });
        EXPECT_EQ(refused, 3);
    };
    refuse("cannot be read", tables);
    with_layer<sw::Optimizer<sw::Adagrad>>(2, [&](sw::CommunicatorRef comm, const auto& layer) {
        sw::LayerShards without_steps = layer;
        without_steps.layer = nullptr;
        sw::save_checkpoint(comm, file.path(), {.layer = without_steps, .dense = {}, .numbers = {}});
    });
    refuse("has no tensor 'steps'", tables);
    with_layer<sw::Optimizer<sw::Adagrad>>(2, [&](sw::CommunicatorRef comm, const auto& layer) {
        sw::save_checkpoint(comm, file.path(), {.layer = layer, .dense = {}, .numbers = {}});
    });
    auto others = tables;
    others[2].rows = 51;
    refuse("tensor 'tables/c/weight' is F32 of shape (50, 1), expected F32 of shape (51, 1)", others);
    others[2].name = "d";
    refuse("has no tensor 'tables/d/weight'", others);
    with_layer<sw::Optimizer<sw::Adam>>(2, [&](sw::CommunicatorRef comm, const auto& layer) {
        sw::save_checkpoint(comm, file.path(), {.layer = layer, .dense = {}, .numbers = {}});
    });
    refuse("holds the state of optimizer 'adam', and this layer has 'adagrad'", tables);
    with_layer<sw::Optimizer<sw::Frozen>>(2, [&](sw::CommunicatorRef comm, const auto& layer) {
        sw::save_checkpoint(comm, file.path(), {.layer = layer, .dense = {}, .numbers = {}});
    });
    refuse("holds the state of optimizer 'frozen', and this layer has 'adagrad'", tables);
    with_layer<sw::Optimizer<sw::Adagrad>>(2, [&](sw::CommunicatorRef comm, const auto& layer) {
        sw::LayerShards without_steps = layer;
        without_steps.layer = nullptr;
        sw::save_checkpoint(comm, file.path(), {.layer = without_steps, .dense = {}, .numbers = {{"steps", -3}}});
    });
    refuse(file.path() + ": -3 training steps", tables);
    with_layer<sw::Optimizer<sw::Adagrad>>(2, [&](sw::CommunicatorRef comm, const auto& layer) {
        sw::save_checkpoint(comm, file.path(), {.layer = layer, .dense = {}, .numbers = {}});
    });
    const std::string whole = file.read();
    file.write(whole.substr(0, whole.size() - 4));
    refuse("its data is", tables);
}

TEST(LayerCheckpoint, WhereItCannotBeWrittenEveryRankHearsOfIt) {
    std::atomic<int> refused{0};
    with_layer<sw::Optimizer<sw::Adagrad>>(3, [&](sw::CommunicatorRef comm, const auto& layer) {
        try {
            sw::save_checkpoint(comm, "/nonexistent/folder/file", {.layer = layer, .dense = {}, .numbers = {}});
        } catch (const sw::BadInput&) {
            ++refused;
        }
    });
    EXPECT_EQ(refused, 3);
}

/// All columns are in the second shard.
struct SecondShard {
    static constexpr const char* name = "second_shard";
    static constexpr sw::Splits splits = sw::Splits::columns;
    static constexpr int shards(const sw::Topology&, int) { return 2; }
    static constexpr int owner(const sw::Topology&, int, int shard) { return shard; }
    static constexpr sw::RowPlace place(std::int64_t row, const sw::TableShape&) { return {.shard = 0, .local = row}; }
    static constexpr std::int64_t row(const sw::RowPlace& place, const sw::TableShape&) { return place.local; }
    static constexpr std::int64_t rows(int, const sw::TableShape& table) { return table.rows; }
    static constexpr sw::Columns columns(int shard, const sw::TableShape& table) {
        return {.first = 0, .count = shard == 0 ? 0 : table.dim};
    }
};

TEST(LayerCheckpoint, AShardWithoutColumnsSendsNothing) {
    const TemporaryFile file{"second_shard"};
    const std::vector<sw::TableConfig> one{{.name = "a", .rows = 7, .dim = 3}};
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<sw::Sharding<SecondShard>, sw::Optimizer<sw::RowwiseAdagrad<>>> layer{comm, one};
        fill(sw::shards_of(layer));
        sw::save_layer(comm, file.path(), layer);
        sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Optimizer<sw::RowwiseAdagrad<>>> by_rows{comm, one};
        sw::load_layer(comm, file.path(), by_rows);
        by_rows.for_each_shard([&](const sw::ShardView& shard, const sw::ShardRowNumbers& row) {
            for (std::int64_t local = 0; local < shard.rows; ++local)
                EXPECT_EQ(shard.row_state[local], value_of("arow0", row(local), 0));
        });
    });
}

TEST(LayerCheckpoint, RanksThatSendOtherRowsAreAMismatch) {
    const TemporaryFile file{"chunks"};
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    EXPECT_THROW(world.run([&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<> layer{comm, {{.name = "a", .rows = 4000, .dim = 1}}};
        sw::Checkpoint all{.layer = sw::shards_of(layer), .dense = {}, .numbers = {}};
        all.chunk_bytes = comm.rank() == 0 ? 4 : 4096;
        sw::save_checkpoint(comm, file.path(), all);
    }),
                 sw::Mismatch);
}

TEST(LayerCheckpoint, ADenseTensorHasAsManyValuesAsItsShapeSays) {
    const TemporaryFile file{"dense_shapes"};
    std::atomic<int> refused{0};
    with_layer<sw::Optimizer<sw::Adagrad>>(3, [&](sw::CommunicatorRef comm, const auto& layer) {
        std::vector<float> values(5);
        const auto try_both = [&](std::int64_t first, std::size_t split) {
            sw::Checkpoint all{
                .layer = layer,
                .dense = {{.name = "x", .shape = {first}, .values = std::span{values}.first(split)},
                          {.name = "y", .shape = {5 - first}, .values = std::span{values}.subspan(split)}},
                .numbers = {}};
            for (const bool save : {true, false}) {
                try {
                    if (save) {
                        sw::save_checkpoint(comm, file.path(), all);
                    } else {
                        sw::load_checkpoint(comm, file.path(), all);
                    }
                } catch (const sw::BadInput& error) {
                    EXPECT_NE(std::string{error.what()}.find("tensor 'x' has shape (2,) and 3 values"),
                              std::string::npos)
                        << error.what();
                    ++refused;
                }
            }
        };
        try_both(2, 2);
        EXPECT_EQ(refused, 0);
        sw::barrier(comm);
        try_both(2, 3);
    });
    EXPECT_EQ(refused, 6);
}

/// Rows in the opposite order, ten apart.
struct Downwards : sw::Table {
    static constexpr const char* name = "downwards";
    static constexpr std::int64_t row(const sw::RowPlace& place, const sw::TableShape&) {
        return 40 - 10 * place.local;
    }
};

TEST(LayerCheckpoint, RowsInAnyOrder) {
    const auto downwards = sw::sharding_traits<Downwards>().map({}, std::vector<sw::TableLoad>{{.shape = {.rows = 5}}});
    const sw::TableShard shard{.view = {.rows = 5}, .row = {downwards[0], 0}};
    const sw::ShardRows rows{shard};
    std::vector<std::pair<std::int64_t, std::int64_t>> seen;
    rows.visit(10, 31, [&](std::int64_t row, std::int64_t local) { seen.emplace_back(row, local); });
    EXPECT_EQ(seen, (std::vector<std::pair<std::int64_t, std::int64_t>>{{10, 3}, {20, 2}, {30, 1}}));
}

}  // namespace
