// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/table_balance.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/core/error.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/planning/row_law.hpp"
#include "shardwise/planning/workloads.hpp"
#include "shardwise/sharding/col.hpp"

namespace {

namespace sw = shardwise;

/// The least load of the most loaded rank, by trying all. Infinite where nothing has room.
double brute_force(const sw::PlacedBlocks& placed, double room) {
    const std::size_t blocks = placed.blocks.size();
    std::vector<int> owners(blocks, 0);
    double best = std::numeric_limits<double>::infinity();
    for (;;) {
        std::vector<double> loads(static_cast<std::size_t>(placed.ranks));
        std::vector<double> bytes(loads.size());
        std::map<std::pair<int, int>, int> of_table;
        bool legal = true;
        for (std::size_t i = 0; i < blocks; ++i) {
            const auto rank = static_cast<std::size_t>(owners[i]);
            loads[rank] += placed.blocks[i].load;
            bytes[rank] += placed.blocks[i].bytes;
            legal &= ++of_table[{owners[i], placed.blocks[i].table}] == 1 && (room == 0 || bytes[rank] <= room);
        }
        if (legal) best = std::min(best, *std::max_element(loads.begin(), loads.end()));
        std::size_t i = 0;
        while (i < blocks && ++owners[i] == placed.ranks)
            owners[i++] = 0;
        if (i == blocks) return best;
    }
}

double most_of(const sw::PlacedBlocks& placed) {
    std::vector<double> loads(static_cast<std::size_t>(placed.ranks));
    for (std::size_t i = 0; i < placed.blocks.size(); ++i)
        loads[static_cast<std::size_t>(placed.owners[i])] += placed.blocks[i].load;
    return *std::max_element(loads.begin(), loads.end());
}

RC_GTEST_PROP(TableBalance, TheBestPlacementIsThatOfTryingAll, ()) {
    sw::PlacedBlocks placed;
    placed.ranks = *rc::gen::inRange(1, 4);
    const int blocks = *rc::gen::inRange(1, 8);
    for (int i = 0; i < blocks; ++i) {
        const int before = static_cast<int>(
            std::count_if(placed.blocks.begin(), placed.blocks.end(), [&](const auto& b) { return b.table == i / 2; }));
        placed.blocks.push_back({.load = static_cast<double>(*rc::gen::inRange(1, 12)),
                                 .bytes = static_cast<double>(*rc::gen::inRange(1, 5)),
                                 .table = before < placed.ranks ? i / 2 : 100 + i});
        placed.owners.push_back(0);
    }
    const double room = *rc::gen::element(0.0, 3.0, 6.0, 9.0);
    const double expected = brute_force(placed, room);
    const auto best = sw::best_placement(placed, room);
    RC_ASSERT(best.has_value() == std::isfinite(expected));
    if (!best) return;
    RC_ASSERT(most_of(*best) == expected);
    double sum = 0;
    for (const auto& block : placed.blocks)
        sum += block.load;
    RC_ASSERT(std::abs(sw::imbalance_of(*best) - expected * placed.ranks / sum) < 1e-12);
}

TEST(TableBalance, SaysNothingWhereTriesRunOut) {
    sw::PlacedBlocks placed{.blocks = {}, .owners = {}, .ranks = 5};
    for (int i = 0; i < 40; ++i) {
        placed.blocks.push_back({.load = 1.0 + 0.37 * ((i * 7) % 11), .bytes = 1, .table = i});
        placed.owners.push_back(0);
    }
    EXPECT_FALSE(sw::best_placement(placed, 0, 100));
}

std::vector<sw::TableConfig> some_tables() {
    return {{.name = "a", .rows = 50, .dim = 8, .features = {"a1", "a2"}},
            {.name = "b", .rows = 20, .dim = 4},
            {.name = "c", .rows = 70, .dim = 16}};
}

TEST(TableBalance, LoadsFromLawsAndFromBatches) {
    auto tables = some_tables();
    sw::set_loads(tables, sw::workload_of(std::vector{sw::row_law("zipf:50:1:6"), sw::row_law("zipf:20:1:1"),
                                                      sw::row_law("zipf:70:1:0.5")},
                                          tables, 8));
    EXPECT_FLOAT_EQ(tables[0].load, 3);
    EXPECT_FLOAT_EQ(tables[1].load, 1);
    EXPECT_FLOAT_EQ(tables[2].load, 0.5F);

    const std::vector<std::int32_t> lengths{1, 2, 3, 4, 1, 1, 0, 0};  // (feature, sample)
    const std::vector<std::int64_t> ids(12, 1);
    sw::JaggedView<std::int64_t> batch;
    batch.samples = 2;
    batch.features = 4;
    batch.values = ids;
    batch.lengths = lengths;
    sw::set_loads(tables, std::span<const sw::JaggedView<std::int64_t>>{&batch, 1});
    EXPECT_FLOAT_EQ(tables[0].load, 2.5F);
    EXPECT_FLOAT_EQ(tables[1].load, 1);
    EXPECT_GT(tables[2].load, 0);
    EXPECT_LT(tables[2].load, 1e-30F);
    const std::vector<std::string> keys{"c", "b", "a2", "a1"};
    batch.keys = keys;
    sw::set_loads(tables, std::span<const sw::JaggedView<std::int64_t>>{&batch, 1});
    EXPECT_FLOAT_EQ(tables[2].load, 1.5F);
    EXPECT_FLOAT_EQ(tables[1].load, 3.5F);
    EXPECT_FLOAT_EQ(tables[0].load, 0.5F);
    const std::vector<std::string> unknown{"c", "b", "a2", "x"};
    batch.keys = unknown;
    EXPECT_THROW(sw::set_loads(tables, std::span<const sw::JaggedView<std::int64_t>>{&batch, 1}), sw::BadInput);
    batch.keys = std::span{keys}.first(1);
    EXPECT_THROW(sw::set_loads(tables, std::span<const sw::JaggedView<std::int64_t>>{&batch, 1}), sw::BadInput);
    batch.keys = {};
    batch.features = 3;
    EXPECT_THROW(sw::set_loads(tables, std::span<const sw::JaggedView<std::int64_t>>{&batch, 1}), sw::BadInput);
}

const sw::KnownPolicies by_load = sw::KnownPolicies{}.add_sharding<sw::Col<1>>();

std::string refusal(const std::vector<sw::TableConfig>& tables, const std::string& sharding, std::int64_t room) {
    try {
        static_cast<void>(sw::draw_layer({.hosts = 1, .ranks_per_host = 2}, tables,
                                         {.shardings = {sharding}, .optimizer = "rowwise_adagrad"}, {.room = room},
                                         by_load));
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return "";
}

// Blocks go where there is room, though others have less to do; what has no room anywhere is said.
TEST(TableBalance, RoomDecidesWhereBlocksGo) {
    // busy, large, and one that is neither: without a room it would go where the large one is
    const std::vector<sw::TableConfig> tables{{.name = "busy", .rows = 10, .dim = 4, .load = 10},
                                              {.name = "large", .rows = 1000, .dim = 4, .load = 5},
                                              {.name = "third", .rows = 100, .dim = 4, .load = 1}};
    const auto owners = [&](std::int64_t room) {
        const sw::LayerBlueprint layer =
            sw::draw_layer({.hosts = 1, .ranks_per_host = 2}, tables,
                           {.shardings = {"col1"}, .optimizer = "rowwise_adagrad"}, {.room = room}, by_load);
        return sw::blocks_of(layer.parts()[0].placement, tables).owners;
    };
    constexpr std::int64_t row = 4 * (4 + 1);  // bytes, with its moment
    EXPECT_EQ(owners(0), (std::vector{0, 1, 1}));
    EXPECT_EQ(owners(1100 * row), (std::vector{0, 1, 1}));
    EXPECT_EQ(owners(1100 * row - 1), (std::vector{0, 1, 0}));
    EXPECT_EQ(refusal(tables, "col1", 1000 * row - 1),
              "table 'large': no rank has room for a block of 20000 bytes beside what is there, of 19999 a rank: give "
              "more room, more ranks, or more blocks a table");
    EXPECT_NE(refusal(tables, "table", 100).find("where no table is placed by load"), std::string::npos);
    EXPECT_NE(refusal(tables, "col1", -1).find("a room of -1 bytes"), std::string::npos);
    // and greedy is compared with the best
    const sw::LayerBlueprint layer =
        sw::draw_layer({.hosts = 1, .ranks_per_host = 2}, tables, {.shardings = {"col1"}}, {}, by_load);
    const sw::PlacedBlocks greedy = sw::blocks_of(layer.parts()[0].placement, tables);
    EXPECT_EQ(greedy.blocks.size(), 3U);
    EXPECT_NEAR(sw::imbalance_of(greedy), 10.0 * 2 / 16, 1e-6);
    EXPECT_NEAR(sw::imbalance_of(*sw::best_placement(greedy)), 10.0 * 2 / 16, 1e-6);
}

}  // namespace
