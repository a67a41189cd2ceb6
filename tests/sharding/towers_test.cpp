// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/sharding/towers.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/embedding/layer.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"

namespace shardwise_test {
namespace {

namespace sw = shardwise;

std::vector<sw::TableConfig> four_tables() {
    return {{.name = "a", .rows = 10, .dim = 4},
            {.name = "b", .rows = 7, .dim = 8, .features = {"b1", "b2"}},
            {.name = "c", .rows = 3, .dim = 2},
            {.name = "d", .rows = 9, .dim = 5}};
}

std::string error_of(const sw::Towers& towers) {
    try {
        static_cast<void>(sw::tower_of_tables(four_tables(), towers));
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return {};
}

TEST(Towers, NumbersTheTowersOfTables) {
    EXPECT_EQ(sw::tower_of_tables(four_tables(), {{"c", "a"}, {}, {"b2", "d", "b1"}}), (std::vector<int>{0, 2, 0, 2}));
    EXPECT_EQ(sw::deal_tables(four_tables(), 3), (sw::Towers{{"a", "d"}, {"b1", "b2"}, {"c"}}));
}

TEST(Towers, AreDealtForEachPolicyByItself) {
    std::vector<sw::TableConfig> mixed;
    for (int t = 0; t < 6; ++t)
        mixed.push_back(
            {.name = "t" + std::to_string(t), .rows = 1, .dim = 1, .sharding = t % 2 == 0 ? "dp" : "table"});
    EXPECT_EQ(sw::deal_tables(mixed, 2), (sw::Towers{{"t0", "t1", "t4", "t5"}, {"t2", "t3"}}));
    EXPECT_THROW(static_cast<void>(sw::deal_tables(mixed, 0)), sw::BadInput);
}

TEST(Towers, OfALayerThatIsNotMixedDoNotGoByTheNameOfItsPolicy) {
    std::vector<sw::TableConfig> all{{.name = "a", .rows = 4, .dim = 2},
                                     {.name = "b", .rows = 4, .dim = 2, .sharding = "table"}};
    EXPECT_EQ(sw::deal_tables(all, 2, false), (sw::Towers{{"a"}, {"b"}}));
    const auto drawn = sw::EmbeddingLayer<sw::Sharding<sw::Table>, sw::Collective<sw::Hierarchical>>::blueprint(
        {.hosts = 2, .ranks_per_host = 1}, all);
    EXPECT_EQ(drawn.static_bytes(0), drawn.static_bytes(1));
}

TEST(Towers, SaysWhatIsWrong) {
    EXPECT_EQ(error_of({{"a", "b1", "b2", "c"}}), "feature 'd' is in no tower: name every feature once");
    EXPECT_EQ(error_of({{"a", "b1", "b2", "c"}, {"d", "e"}}), "tower 1 names feature 'e', which no table has");
    EXPECT_EQ(error_of({{"a", "b1", "b2", "c"}, {"d", "a"}}),
              "feature 'a' is in tower 0 and again in tower 1: name it once");
    EXPECT_EQ(error_of({{"a", "a", "b1", "b2", "c", "d"}}),
              "feature 'a' is in tower 0 and again in tower 0: name it once");
    EXPECT_EQ(error_of({{"a", "b1"}, {"b2", "c", "d"}}),
              "features 'b1' and 'b2' look up in table 'b' and are in towers 0 and 1: put the features of a table into "
              "one tower");
}

TEST(Towers, DivideTheHosts) {
    const sw::Topology six{.hosts = 6, .ranks_per_host = 2};
    EXPECT_EQ(sw::with_towers(six, 3).hosts_per_tower, 2);
    EXPECT_EQ(sw::with_towers(six, 3).towers(), 3);
    EXPECT_THROW(static_cast<void>(sw::with_towers(six, 4)), sw::BadInput);
    EXPECT_THROW(static_cast<void>(sw::with_towers(six, 12)), sw::BadInput);
    EXPECT_THROW(static_cast<void>(sw::with_towers(six, 0)), sw::BadInput);
}

/// A table's shards are on the ranks of its tower, and lie there as on a world of that tower alone.
template <class S>
void stays_in_its_tower(int hosts_per_tower, int towers, int ranks_per_host) {
    sw::Topology topology{.hosts = hosts_per_tower * towers, .ranks_per_host = ranks_per_host};
    topology.hosts_per_tower = hosts_per_tower;
    std::vector<int> tower_of;
    for (int t = 0; t < 4; ++t)
        tower_of.push_back((t * 5 + 3) / 2 % towers);
    const sw::Placement placement = sw::place_tables<S>(topology, four_tables(), {0, 1, 2, 3}, tower_of);
    const int ranks = hosts_per_tower * ranks_per_host;
    for (int tower = 0; tower < towers; ++tower) {
        std::vector<int> inside;
        for (int t = 0; t < 4; ++t)
            if (tower_of[static_cast<std::size_t>(t)] == tower) inside.push_back(t);
        const sw::Placement alone =
            sw::place_tables<S>({.hosts = hosts_per_tower, .ranks_per_host = ranks_per_host}, four_tables(), inside);
        for (std::size_t i = 0; i < inside.size(); ++i) {
            const sw::TablePlacement& table = placement.tables[static_cast<std::size_t>(inside[i])];
            for (std::int64_t row = 0; row < table.rows; ++row)
                RC_ASSERT(table.map->place(row) == alone.tables[i].map->place(row));
            RC_ASSERT(table.shards.size() == alone.tables[i].shards.size());
            for (std::size_t s = 0; s < table.shards.size(); ++s) {
                RC_ASSERT(table.shards[s].owner == tower * ranks + alone.tables[i].shards[s].owner);
                RC_ASSERT(table.shards[s].rows == alone.tables[i].shards[s].rows);
                RC_ASSERT(table.shards[s].columns == alone.tables[i].shards[s].columns);
            }
        }
    }
}

RC_GTEST_PROP(Towers, HoldWholeTables, ()) {
    const int hosts = *rc::gen::inRange(1, 4);
    const int towers = *rc::gen::inRange(1, 4);
    const int ranks = *rc::gen::inRange(1, 4);
    stays_in_its_tower<sw::Row>(hosts, towers, ranks);
    stays_in_its_tower<sw::Col<>>(hosts, towers, ranks);
    stays_in_its_tower<sw::Col<2>>(hosts, towers, ranks);
    stays_in_its_tower<sw::Table>(hosts, towers, ranks);
}

}  // namespace
}  // namespace shardwise_test
