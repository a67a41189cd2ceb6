// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/sharding/placement.hpp"

#include <cmath>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"

namespace shardwise_test {
namespace {

using shardwise::BadInput;
using shardwise::Placement;
using shardwise::TableConfig;
using shardwise::Topology;

constexpr Topology two_by_two{.hosts = 2, .ranks_per_host = 2};

std::vector<TableConfig> tables() {
    return {{.name = "a", .rows = 10, .dim = 3, .features = {}, .sharding = ""},
            {.name = "b", .rows = 7, .dim = 8, .features = {"x", "y"}, .sharding = ""},
            {.name = "c", .rows = 2, .dim = 1, .features = {}, .sharding = ""}};
}

/// Every (feature, shard) pair has one number and one owner (or all of them).
template <class S>
void check_blocks(const std::vector<int>& chosen) {
    const Placement placement = shardwise::place_tables<S>(two_by_two, tables(), chosen);
    EXPECT_EQ(placement.tables.size(), chosen.size());
    std::set<int> numbers;
    std::multiset<std::pair<int, int>> seen;
    for (int rank = 0; rank < two_by_two.ranks(); ++rank) {
        int before = -1;
        for (const auto& block : placement.owned_by(rank)) {
            const int number = placement.block_index(block.feature, block.shard);
            EXPECT_GT(number, before);  // by feature, then shard
            before = number;
            numbers.insert(number);
            seen.emplace(block.feature, block.shard);
            EXPECT_EQ(placement.owner(rank, block), rank);
            EXPECT_TRUE(placement.holds(rank, placement.shard(block)));
        }
    }
    EXPECT_EQ(static_cast<int>(numbers.size()), placement.blocks);
    EXPECT_EQ(*numbers.begin(), 0);
    EXPECT_EQ(*numbers.rbegin(), placement.blocks - 1);
    EXPECT_EQ(static_cast<int>(seen.size()), placement.blocks * placement.copies());
    for (const auto& feature : placement.features) {
        const auto& table = placement.tables[static_cast<std::size_t>(feature.table)];
        std::int64_t rows = 0;
        int columns = 0;
        for (const auto& shard : table.shards) {
            rows += shard.rows;
            columns += shard.columns.count;
        }
        const auto shards = static_cast<std::int64_t>(table.shards.size());
        EXPECT_EQ(rows, table.rows * (S::splits == shardwise::Splits::columns ? shards : 1));
        EXPECT_EQ(columns, table.dim * (S::splits == shardwise::Splits::rows ? two_by_two.ranks() : 1));
    }
}

/// Says where blocks are by lists of its own.
template <int Wrong>
struct ByList {
    static constexpr const char* name = "by_list";
    static constexpr shardwise::Splits splits = shardwise::Splits::columns;
    using mapping = shardwise::Col<2>::mapping;
    static std::vector<mapping> map(const Topology& t, std::span<const shardwise::TableLoad> loads) {
        auto maps = shardwise::Col<2>::map(t, loads);
        if (Wrong == 1) maps.pop_back();
        if (Wrong == 2) maps[1].table.shards = 1;
        if (Wrong == 4) maps[1].owners[0] = t.ranks();
        if (Wrong == 5) maps[1].owners[0] = maps[1].owners[1];
        return maps;
    }
};
template <int Wrong>
std::string error_of_list() {
    try {
        static_cast<void>(shardwise::place_tables<ByList<Wrong>>(two_by_two, tables(), {0, 1, 2}));
    } catch (const BadInput& error) {
        return error.what();
    }
    return {};
}

TEST(Placement, RefusesMapsThatDoNotFit) {
    const std::string by = "sharding 'by_list'";
    EXPECT_EQ(error_of_list<0>(), "");
    EXPECT_EQ(error_of_list<1>(), by + ": its maps are of 2 tables, and it was given 3");
    EXPECT_EQ(error_of_list<2>(), "");  // one block of all columns
    EXPECT_EQ(error_of_list<4>(),
              by + ", table 'b': shard 0 is on rank 4 of a home of 4: they are numbered from 0 inside it");
    EXPECT_NE(error_of_list<5>().find("which has a shard of this table already"), std::string::npos);
}

/// Rows split inside each host, and copied across them.
struct PerHost : shardwise::Row {
    static constexpr const char* name = "per_host";
    using home = shardwise::OneHost;
};

TEST(Placement, ACopyLiesInEachHome) {
    const Topology t{.hosts = 3, .ranks_per_host = 2};
    const Placement placement = shardwise::place_tables<PerHost>(t, tables(), {0, 1, 2});
    EXPECT_EQ(placement.home, (shardwise::Members{.size = 2, .stride = 1}));
    EXPECT_EQ(placement.copies(), 3);
    for (int rank = 0; rank < t.ranks(); ++rank) {
        EXPECT_EQ(placement.copy_of(rank), rank / 2);
        for (const auto& block : placement.owned_by(rank)) {
            EXPECT_EQ(placement.shard(block).owner, rank % 2);
            for (int other = 0; other < t.ranks(); ++other)
                EXPECT_EQ(placement.owner(other, block), other / 2 * 2 + rank % 2);
        }
    }
    EXPECT_EQ(shardwise::place_tables<shardwise::DP>(t, tables(), {0}).copies(), 6);
    EXPECT_EQ(shardwise::place_tables<shardwise::Row>(t, tables(), {0}).copies(), 1);
}

TEST(PlaceTables, NumbersEveryBlockOnce) {
    for (const std::vector<int>& chosen : std::vector<std::vector<int>>{{0, 1, 2}, {1}, {2, 0}}) {
        check_blocks<shardwise::Row>(chosen);
        check_blocks<shardwise::Col<>>(chosen);
        check_blocks<shardwise::Col<2>>(chosen);
        check_blocks<shardwise::Table>(chosen);
        check_blocks<shardwise::DP>(chosen);
    }
}

TEST(PlaceTables, FeaturesKeepTheirNumbersInTheLayer) {
    const Placement placement = shardwise::place_tables<shardwise::Table>(two_by_two, tables(), {1, 2});
    ASSERT_EQ(placement.features.size(), 3U);
    EXPECT_EQ(placement.features[0].name, "x");
    EXPECT_EQ(placement.features[0].feature, 1);
    EXPECT_EQ(placement.features[1].name, "y");
    EXPECT_EQ(placement.features[1].table, 0);
    EXPECT_EQ(placement.features[2].name, "c");
    EXPECT_EQ(placement.features[2].feature, 3);
    EXPECT_EQ(placement.tables[1].table, 2);
}

std::string complaint(const TableConfig& table, const Topology& on = two_by_two) {
    try {
        static_cast<void>(shardwise::place_tables<shardwise::Row>(on, {table}, {0}));
    } catch (const BadInput& error) {
        return error.what();
    }
    return "";
}

TEST(PlaceTables, NamesWhatMakesNoSense) {
    EXPECT_EQ(complaint({.name = "t", .rows = 0, .dim = 1, .features = {}, .sharding = ""}),
              "table 't' has 0 rows: give it at least one");
    EXPECT_EQ(complaint({.name = "t", .rows = 1, .dim = 0, .features = {}, .sharding = ""}),
              "table 't' has dimension 0: give it at least 1");
    for (const auto& [load, text] : std::vector<std::pair<float, std::string>>{
             {0.0F, "0.000000"}, {-1.0F, "-1.000000"}, {std::nanf(""), "nan"}, {HUGE_VALF, "inf"}})
        EXPECT_EQ(complaint({.name = "t", .rows = 1, .dim = 1, .load = load}),
                  "table 't' has load " + text + ": give a number above 0");
    EXPECT_EQ(complaint({.name = "t", .rows = 1, .dim = 1, .load = 1e-30F}), "");
    const std::int64_t limit = 4294967295;
    EXPECT_EQ(complaint({.name = "t", .rows = limit + 1, .dim = 1, .features = {}, .sharding = ""}, Topology{}),
              "table 't': shard 0 has 4294967296 rows, and a shard holds at most 4294967295: split it by row over more "
              "ranks");
    EXPECT_EQ(complaint({.name = "t", .rows = limit, .dim = 1, .features = {}, .sharding = ""}, Topology{}), "");
    EXPECT_EQ(complaint({.name = "t", .rows = 4 * limit, .dim = 1, .features = {}, .sharding = ""}), "");
}

}  // namespace
}  // namespace shardwise_test
