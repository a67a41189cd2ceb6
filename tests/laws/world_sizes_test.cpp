// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <map>
#include <mutex>
#include <string>

#include <gtest/gtest.h>

#include "laws/laws.hpp"
#include "shardwise/comm/thread_world.hpp"

/// \file
/// What holds between topologies: under Order<Sample> the same bits at every world size; under Order<WideTree> too, on
/// all data but what lies within 1e-16 of the middle between two floats; along the tree within rounding. And the same
/// bits for every sharding at one topology.

namespace laws {
namespace {

/// The samples of a global batch, dealt out in order to the ranks of any world.
std::vector<RankBatch> deal(const RankBatch& global, const Scenario& s, int ranks) {
    std::vector<RankBatch> parts(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
        RankBatch& part = parts[static_cast<std::size_t>(rank)];
        const std::int64_t first = global.samples * rank / ranks;
        const std::int64_t end = global.samples * (rank + 1) / ranks;
        part.samples = end - first;
        for (std::int64_t f = 0; f < s.features(); ++f)
            for (std::int64_t i = first; i < end; ++i) {
                const auto bag = static_cast<std::size_t>(f * global.samples + i);
                part.lengths.push_back(global.lengths[bag]);
                for (std::int64_t k = global.offsets[bag]; k < global.offsets[bag + 1]; ++k)
                    part.ids.push_back(global.ids[static_cast<std::size_t>(k)]);
            }
        const auto width = static_cast<std::size_t>(s.width);
        part.gradient.assign(
            global.gradient.begin() + static_cast<std::ptrdiff_t>(width * static_cast<std::size_t>(first)),
            global.gradient.begin() + static_cast<std::ptrdiff_t>(width * static_cast<std::size_t>(end)));
    }
    return parts;
}

using Result = std::map<std::pair<int, std::int64_t>, std::vector<float>>;  // (table, row): weights

/// Trains on the global batches at one topology; outputs of all samples are appended to `outputs` in order.
Result train(const Composition& composition, const Scenario& s, const sw::Topology& topology,
             std::vector<std::vector<float>>& outputs) {
    sw::ThreadWorld world{topology};
    Result result;
    std::mutex mutex;
    outputs.assign(s.steps.size(), {});
    for (std::size_t step = 0; step < s.steps.size(); ++step)
        outputs[step].resize(static_cast<std::size_t>(s.steps[step][0].samples * s.width));
    world.run([&](sw::ThreadCommunicator& comm) {
        std::vector<sw::TableConfig> tables = s.tables;
        for (std::size_t t = 0; t < tables.size(); ++t)
            tables[t].sharding = composition.shardings[t % composition.shardings.size()];
        auto layer = composition.make(comm, tables, 0.05F, 3);
        const Case c{.topology = topology};
        for (std::size_t step = 0; step < s.steps.size(); ++step) {
            const RankBatch& global = s.steps[step][0];
            const auto parts = deal(global, s, topology.ranks());
            const RankBatch& mine = parts[static_cast<std::size_t>(comm.rank())];
            std::vector<Batch> views;
            for (const RankBatch& part : parts)
                views.push_back(part.view(c, s.features()));
            layer.start(views, comm.rank());
            const auto output = layer.forward();
            const std::int64_t first = global.samples * comm.rank() / topology.ranks();
            for (std::int64_t i = 0; i < mine.samples; ++i)
                std::copy_n(output[0].row(i), s.width,
                            outputs[step].begin() + static_cast<std::ptrdiff_t>((first + i) * s.width));
            layer.backward({{mine.gradient.data(), mine.samples, output[0].columns(), s.width}});
        }
        const std::lock_guard lock{mutex};
        layer->for_each_shard([&](const sw::ShardView& shard, const auto& row_of) {
            for (std::int64_t local = 0; local < shard.rows; ++local) {
                auto& row = result[{shard.table, row_of(local)}];
                row.resize(static_cast<std::size_t>(s.tables[static_cast<std::size_t>(shard.table)].dim));
                std::copy_n(shard.weights + local * shard.dim, shard.dim, row.begin() + shard.first_column);
            }
        });
    });
    return result;
}

/// A scenario of one rank's batches, large enough to deal out; `ones` gives every bag one id.
Scenario global_scenario(bool ones) {
    const Case c{.topology = {1, 1}, .seed = 77, .form = ones ? BagForm::single : BagForm::lengths, .steps = 1};
    Scenario s = make_scenario(c, {"row"}, true);
    Dice dice{123};
    s.tables.clear();
    s.table_of.clear();
    s.width = 0;
    for (int t = 0; t < 3; ++t) {
        s.tables.push_back(
            {.name = "t" + std::to_string(t), .rows = 40, .dim = 5 + 4 * t, .features = {}, .sharding = ""});
        s.tables.back().features = {s.tables.back().name};
        s.table_of.push_back(t);
        s.width += 5 + 4 * t;
    }
    s.steps.clear();
    for (int step = 0; step < 6; ++step) {
        RankBatch b;
        b.samples = 29;
        b.offsets.push_back(0);
        for (int bag = 0; bag < 3 * 29; ++bag) {
            b.lengths.push_back(ones ? 1 : static_cast<std::int32_t>(dice.below(4)));
            for (int k = 0; k < b.lengths.back(); ++k)
                b.ids.push_back(dice.one_in(2) ? dice.below(3) : dice.below(40));
            b.offsets.push_back(static_cast<std::int64_t>(b.ids.size()));
        }
        for (int i = 0; i < 29 * s.width; ++i)
            b.gradient.push_back(dice.number());
        s.steps.push_back({b});
    }
    return s;
}

const std::vector<sw::Topology> topologies{{1, 1}, {1, 2}, {2, 1}, {3, 1}, {2, 2}, {4, 1}, {1, 7}};

/// Trains every composition of an order that takes sums of exact wires, and holds each world against one rank.
/// \returns how many were compared
int compare_worlds(const std::string& order, bool columns) {
    const Scenario s = global_scenario(false);
    int compared = 0;
    for (const Composition& composition : all_compositions()) {
        if (composition.order != order || composition.pooling != "sum" || composition.forward_wire != "fp32" ||
            composition.backward_wire != "fp32" || (composition.sharding.starts_with("col") && !columns))
            continue;
        std::vector<std::vector<float>> outputs;
        const Result alone = train(composition, s, {1, 1}, outputs);
        for (const sw::Topology& t : topologies) {
            EXPECT_TRUE(train(composition, s, t, outputs) == alone) << composition.name() << " on " << t.ranks();
            ++compared;
        }
    }
    return compared;
}

TEST(WorldSizes, OrderSampleGivesTheSameBitsEverywhere) {
    EXPECT_GE(compare_worlds("sample", true), 3 * static_cast<int>(topologies.size()));
}

TEST(WorldSizes, SumsInDoubleHideTheTree) {
    // without columns, whose norms of rows are sums of other chunks
    EXPECT_EQ(compare_worlds("wide_tree", false), (10 + 9) * static_cast<int>(topologies.size()));
}

TEST(WorldSizes, TheTreeDiffersByRoundingAlone) {
    const Scenario s = global_scenario(false);
    double worst = 0.0;
    for (const Composition& composition : all_compositions()) {
        if (composition.order != "tree" || composition.pooling != "sum" || composition.backward_wire != "fp32" ||
            composition.optimizer != "adagrad")
            continue;
        std::vector<std::vector<float>> outputs;
        const Result alone = train(composition, s, {1, 1}, outputs);
        for (const sw::Topology& t : topologies)
            for (const auto& [row, weights] : train(composition, s, t, outputs))
                for (std::size_t d = 0; d < weights.size(); ++d)
                    worst = std::max(worst, std::abs(static_cast<double>(weights[d]) - alone.at(row)[d]));
    }
    EXPECT_LT(worst, 1e-5);
    EXPECT_GT(worst, 0.0) << "nothing was summed in another order: the test is vacuous";
}

/// Trains the compositions of an order and an optimizer that take sums and have exact wires, and holds each against the
/// first. \param coalesced  those alone, on bags of any length; otherwise all, on bags of one id
void compare_shardings(bool coalesced) {
    const Scenario s = global_scenario(!coalesced);
    const auto check = [&](const sw::Topology& t, const std::string& order, const std::string& optimizer) {
        std::vector<std::vector<float>> expected_outputs;
        Result expected;
        for (const Composition& composition : all_compositions()) {
            if (composition.order != order || composition.pooling != "sum" || composition.forward_wire != "fp32" ||
                composition.backward_wire != "fp32" || composition.optimizer != optimizer || composition.has_modules())
                continue;
            if (composition.sharding.starts_with("col") && optimizer == "rowwise_adagrad") continue;
            if (coalesced && !composition.is_coalesced()) continue;
            std::vector<std::vector<float>> outputs;
            const Result result = train(composition, s, t, outputs);
            if (expected.empty()) {
                expected = result;
                expected_outputs = outputs;
            }
            EXPECT_TRUE(result == expected) << composition.name() << " at " << t.hosts << "x" << t.ranks_per_host;
            EXPECT_TRUE(outputs == expected_outputs) << composition.name();
        }
        EXPECT_FALSE(expected.empty());
    };
    for (const sw::Topology& t : topologies) {
        for (const char* optimizer : {"sgd", "adagrad", "adam", "rowwise_adagrad"})
            check(t, "tree", optimizer);
        check(t, "wide_tree", "rowwise_adagrad");
    }
}
TEST(Shardings, OneIdABagGivesTheSameBitsForAll) {
    compare_shardings(false);
}
TEST(Shardings, CoalescedGiveTheSameBitsForBagsOfAnyLength) {
    compare_shardings(true);
}

}  // namespace
}  // namespace laws
