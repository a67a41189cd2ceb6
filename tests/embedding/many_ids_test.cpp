// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/check_ids.hpp"
#include "shardwise/embedding/make_layer.hpp"

/// \file
/// Features of more ids than are looked at together: ids are asked for and checked 512 bytes at a time and located
/// 4 KiB at a time, rows are updated 64 at a time. The laws' batches are smaller.

namespace many_ids {
namespace {

namespace sw = shardwise;

constexpr std::int64_t rows = 4000;

struct Kind {
    std::string sharding;
    std::string optimizer;
    int dim;
    bool clipped = false;
};

std::vector<Kind> all_kinds() {
    std::vector<Kind> all;
    for (const std::string sharding : {"row", "table", "dp"})
        for (const std::string optimizer : {"rowwise_adagrad", "sgd"})
            for (const int dim : {7, 16, 64})
                for (const bool clipped : {false, true})
                    all.push_back({sharding, optimizer, dim, clipped});
    return all;
}
std::string text(const Kind& kind) {
    return sw::concat({kind.sharding, " ", kind.optimizer, " ", kind.dim, kind.clipped ? " clipped" : ""});
}

using Batch = sw::JaggedBatch<std::int64_t>;

/// The gradients of a batch's samples.
struct Step {
    Batch batch;
    std::vector<float> gradient;  // (samples, dim)
};

/// The weights of all rows after one step on two ranks, by rank.
std::vector<float> learnt(const Kind& kind, const std::vector<Step>& steps) {
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {1, 2}, .deadline = std::chrono::seconds{20}}};
    std::vector<std::vector<float>> all(2);
    world.run([&](sw::ThreadCommunicator& comm) {
        const std::vector<sw::TableConfig> tables{{.name = "t", .rows = rows, .dim = kind.dim}};
        sw::LayerOptions options{.learning_rate = {0.1F}, .seed = 3};
        if (kind.clipped) options.by_table = {{"t", {.clip_value = 0.4F}}};
        const auto layer =
            sw::make_layer(comm, tables, {.shardings = {kind.sharding}, .optimizer = kind.optimizer}, options);
        const Step& step = steps[static_cast<std::size_t>(comm.rank())];
        auto flight = layer->start(step.batch.view());
        layer->forward(flight);
        layer->backward(std::move(flight), {.pooled = {step.gradient.data(), step.batch.samples, kind.dim}});
        layer->for_each_shard([&](const sw::ShardView& shard, const auto&) {
            auto& mine = all[static_cast<std::size_t>(comm.rank())];
            mine.insert(mine.end(), shard.weights, shard.weights + shard.rows * shard.dim);
        });
    });
    all[0].insert(all[0].end(), all[1].begin(), all[1].end());
    return all[0];
}

/// Bags that end before, at and behind the 64th row, with ids of which none is drawn twice.
Step bags(int rank, int dim, bool weighted) {
    std::mt19937 dice{static_cast<unsigned>(rank + 5)};
    std::vector<std::int64_t> ids(rows);
    std::iota(ids.begin(), ids.end(), std::int64_t{0});
    std::shuffle(ids.begin(), ids.end(), std::mt19937{8});  // the same on both ranks
    Step step;
    Batch& batch = step.batch;
    batch.features = 1;
    batch.lengths = {70, 1, 0, 64, 63, 65, 130, 2, 128, 1, 1, 200, 64};
    batch.samples = std::ssize(batch.lengths);
    const std::int64_t count = std::accumulate(batch.lengths.begin(), batch.lengths.end(), std::int64_t{0});
    batch.values.assign(ids.begin() + rank * count, ids.begin() + (rank + 1) * count);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; weighted && i < count; ++i)
        batch.weights.push_back(i % 90 == 0 ? 1.0F : normal(dice));
    for (std::int64_t i = 0; i < batch.samples * dim; ++i)
        step.gradient.push_back(normal(dice));
    return step;
}

/// Each id a sample of its own, with what the bag gave it, from the last on: no row stands where it does in the bags.
Step one_by_one(const Step& bags, int dim) {
    Step step;
    step.batch = {.samples = std::ssize(bags.batch.values), .features = 1, .values = bags.batch.values};
    std::reverse(step.batch.values.begin(), step.batch.values.end());
    std::size_t id = bags.batch.values.size();
    for (std::size_t bag = bags.batch.lengths.size(); bag-- > 0;)
        for (std::int32_t i = 0; i < bags.batch.lengths[bag]; ++i) {
            --id;
            for (std::size_t d = 0; d < static_cast<std::size_t>(dim); ++d)
                step.gradient.push_back((bags.batch.weights.empty() ? 1.0F : bags.batch.weights[id]) *
                                        bags.gradient[bag * static_cast<std::size_t>(dim) + d]);
        }
    return step;
}

TEST(ManyIds, RowsOfABagLearnWhatTheyWouldAlone) {
    for (const Kind& kind : all_kinds())
        for (const bool weighted : {false, true}) {
            SCOPED_TRACE(sw::concat({text(kind), weighted ? " weighted" : ""}));
            const std::vector<Step> steps{bags(0, kind.dim, weighted), bags(1, kind.dim, weighted)};
            const std::vector<float> together = learnt(kind, steps);
            EXPECT_EQ(together, learnt(kind, {one_by_one(steps[0], kind.dim), one_by_one(steps[1], kind.dim)}));
            Step nothing = steps[1];
            nothing.gradient.assign(nothing.gradient.size(), 0.0F);
            EXPECT_NE(together, learnt(kind, {steps[0], nothing}));
        }
}

/// Whether a forward pass refuses these ids.
template <class Id, class Layer>
bool refused(Layer& layer, const std::vector<Id>& ids) {
    try {
        static_cast<void>(layer.forward(
            sw::JaggedBatch<Id>{.samples = std::ssize(ids), .features = 1, .values = ids, .lengths = {}}));
    } catch (const sw::BadInput&) {
        return true;
    }
    return false;
}

/// Whether a wrong id is found in each 512 bytes of so many, and none where all are rows.
template <class Id, class Layer>
void expect_found(Layer& layer, std::int64_t count) {
    std::vector<Id> ids(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
        ids[static_cast<std::size_t>(i)] = static_cast<Id>(i * 7 % rows);
    EXPECT_FALSE(refused(layer, ids)) << count;
    for (std::int64_t at = count - 1; at >= 0; at -= 15)
        for (const Id wrong : {Id{-1}, static_cast<Id>(rows)}) {
            const Id right = std::exchange(ids[static_cast<std::size_t>(at)], wrong);
            EXPECT_TRUE(refused(layer, ids)) << wrong << " at " << at << " of " << count;
            ids[static_cast<std::size_t>(at)] = right;
        }
}

/// Whether `id` is found to be a row or not of tables of all sizes, alone and among rows.
template <class Id>
void expect_checked(Id id) {
    for (const std::int64_t table : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 31, std::int64_t{1} << 32,
                                     std::numeric_limits<std::int64_t>::max()}) {
        const bool good = id >= 0 && static_cast<std::int64_t>(id) < table;
        std::array<Id, 17> ids{};
        ids[11] = id;
        EXPECT_EQ(sw::steps::are_rows(std::span<const Id>{&id, 1}, table), good) << id << " of " << table;
        EXPECT_EQ(sw::steps::are_rows(std::span<const Id, 17>{ids}, table), good) << id << " of " << table;
    }
}

TEST(ManyIds, LargestAndLeastOnesAreCheckedAsTheyAre) {
    for (const std::int32_t id : {0, 1, -1, 5 - (1 << 30), std::numeric_limits<std::int32_t>::max(),
                                  std::numeric_limits<std::int32_t>::min()}) {
        expect_checked(id);
        expect_checked<std::int64_t>(id);
    }
    for (const std::int64_t id : {std::int64_t{1} << 31, (std::int64_t{1} << 32) - 1, (std::int64_t{1} << 32) + 5,
                                  std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()})
        expect_checked(id);
    EXPECT_TRUE(sw::steps::are_rows(std::span<const std::int64_t>{}, 0));
}

TEST(ManyIds, AWrongOneIsFoundWhereverItIs) {
    sw::ThreadWorld world{sw::Topology{1, 1}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto layer = sw::make_layer(comm, {{.name = "t", .rows = rows, .dim = 1}}, {.optimizer = "sgd"});
        for (const std::int64_t count :
             {1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 511, 512, 513, 544, 1023, 1024, 1025, 1088, 2600}) {
            expect_found<std::int64_t>(*layer, count);
            expect_found<std::int32_t>(*layer, count);
        }
    });
}

/// The sums of bags of one id each, looked up so many at a time.
template <class Id, class Layer>
std::vector<float> looked_up(Layer& layer, const std::vector<Id>& ids, std::int64_t together) {
    std::vector<float> sums;
    for (std::int64_t first = 0; first < std::ssize(ids); first += together) {
        const std::int64_t here = std::min(together, std::ssize(ids) - first);
        const sw::JaggedBatch<Id> part{
            .samples = here, .features = 1, .values = {ids.begin() + first, ids.begin() + first + here}, .lengths = {}};
        const auto pooled = layer.forward(part).pooled;
        for (std::int64_t i = 0; i < here; ++i)
            sums.insert(sums.end(), pooled.row(i), pooled.row(i) + pooled.columns());
    }
    return sums;
}

template <class Id, class Layer>
void expect_as_few(Layer& layer, std::int64_t count, int rank) {
    std::vector<Id> ids(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
        ids[static_cast<std::size_t>(i)] = static_cast<Id>((i * 7 + rank) % rows);
    EXPECT_EQ(looked_up(layer, ids, count), looked_up(layer, ids, 100)) << count;
}

TEST(ManyIds, AreLookedUpAsFewAre) {
    for (const std::string sharding : {"row", "col", "table", "dp"}) {
        SCOPED_TRACE(sharding);
        sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {1, 2}, .deadline = std::chrono::seconds{20}}};
        world.run([&](sw::ThreadCommunicator& comm) {
            const std::vector<sw::TableConfig> tables{{.name = "t", .rows = rows, .dim = 4}};
            const auto layer = sw::make_layer(comm, tables, {.shardings = {sharding}});
            for (const std::int64_t count : {1024, 1025, 1088, 2600}) {
                expect_as_few<std::int64_t>(*layer, count, comm.rank());
                expect_as_few<std::int32_t>(*layer, count, comm.rank());
            }
        });
    }
}

TEST(ManyIds, AWrongOneBehindThousandsIsFound) {
    constexpr std::int64_t count = 3000;
    for (const std::string sharding : {"row", "col", "table", "dp"})
        for (const std::int64_t wrong : {0, 1023, 1024, 2047, 2048, 2500, 2999})
            for (const bool weighted : {false, true}) {
                SCOPED_TRACE(sw::concat({sharding, ", id ", wrong, weighted ? ", weighted" : ""}));
                sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {1, 2}, .deadline = std::chrono::seconds{20}}};
                world.run([&](sw::ThreadCommunicator& comm) {
                    const std::vector<sw::TableConfig> tables{{.name = "t", .rows = rows, .dim = 4}};
                    const auto layer = sw::make_layer(comm, tables, {.shardings = {sharding}});
                    Batch batch{.samples = count, .features = 1};
                    batch.values.assign(count, 7);
                    if (weighted) batch.weights.assign(count, 0.5F);
                    if (comm.rank() == 1) batch.values[static_cast<std::size_t>(wrong)] = wrong % 2 == 0 ? rows : -1;
                    std::string said;
                    try {
                        auto flight = layer->start(batch.view());
                        layer->forward(flight);
                    } catch (const sw::BadInput& error) {
                        said = error.what();
                    }
                    const std::string expected =
                        sw::concat({"feature 't', sample ", wrong, ": id ", wrong % 2 == 0 ? rows : -1,
                                    " is not a row of table 't'; its rows are 0 to ", rows - 1});
                    EXPECT_NE(said.find(expected), std::string::npos) << said;
                });
            }
}

}  // namespace
}  // namespace many_ids
