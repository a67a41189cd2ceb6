// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"

namespace shardwise_test {
namespace {

using shardwise::Col;
using shardwise::DP;
using shardwise::Row;
using shardwise::RowPlace;
using shardwise::Splits;
using shardwise::Table;
using shardwise::Topology;

Topology any_topology() {
    return {.hosts = *rc::gen::inRange(1, 6), .ranks_per_host = *rc::gen::inRange(1, 9)};
}

/// Rows and places are the same thing, shards have the rows that they say, and columns are cut without gap or overlap.
template <class S>
void check_bijection() {
    static_assert(shardwise::ShardingPolicy<S>);
    const Topology world = any_topology();
    const Topology t = shardwise::inside(world, shardwise::HomeOf<S>::of(world));
    const auto rows = *rc::gen::inRange<std::int64_t>(1, 300);
    const int dim = *rc::gen::inRange(1, 70);
    const int table = *rc::gen::inRange(0, 100);
    const int shards = S::shards(t, dim);
    RC_ASSERT(shards >= 1);
    const shardwise::TableShape shape{.rows = rows, .dim = dim, .shards = shards, .index = table};

    std::vector<std::int64_t> count(static_cast<std::size_t>(shards));
    for (std::int64_t row = 0; row < rows; ++row) {
        const RowPlace place = S::place(row, shape);
        RC_ASSERT(place.shard >= 0);
        RC_ASSERT(place.shard < shards);
        RC_ASSERT(place.local >= 0);
        RC_ASSERT(place.local < S::rows(place.shard, shape));
        RC_ASSERT(S::row(place, shape) == row);
        ++count[static_cast<std::size_t>(place.shard)];
    }
    for (int shard = 0; shard < shards; ++shard) {
        const std::int64_t here = S::rows(shard, shape);
        if (S::splits == Splits::rows) RC_ASSERT(here == count[static_cast<std::size_t>(shard)]);
        if (S::splits != Splits::rows) RC_ASSERT(here == rows);
        for (std::int64_t local = 0; local < here; ++local) {
            const RowPlace place{.shard = shard, .local = local};
            const std::int64_t row = S::row(place, shape);
            RC_ASSERT(row >= 0);
            RC_ASSERT(row < rows);
            if (S::splits != Splits::columns) RC_ASSERT(S::place(row, shape) == place);
        }
    }

    int next = 0;
    for (int shard = 0; shard < shards; ++shard) {
        const auto columns = S::columns(shard, shape);
        if (S::splits == Splits::columns) {
            RC_ASSERT(columns.first == next);
            RC_ASSERT(columns.count >= 1);
            next += columns.count;
        } else {
            RC_ASSERT(columns == (shardwise::Columns{.first = 0, .count = dim}));
            next = dim;
        }
    }
    RC_ASSERT(next == dim);

    std::set<int> owners;
    for (int shard = 0; shard < shards; ++shard) {
        const int owner = S::owner(t, table, shard);
        RC_ASSERT(owner >= 0);
        RC_ASSERT(owner < t.ranks());
        owners.insert(owner);
    }
    RC_ASSERT(static_cast<int>(owners.size()) == shards);  // no rank has two shards of one table
}

RC_GTEST_PROP(RowSharding, IsABijection, ()) {
    check_bijection<Row>();
}
RC_GTEST_PROP(ColSharding, IsABijection, ()) {
    check_bijection<Col<>>();
}
RC_GTEST_PROP(TableSharding, IsABijection, ()) {
    check_bijection<Table>();
}
RC_GTEST_PROP(DpSharding, IsABijection, ()) {
    check_bijection<DP>();
}

RC_GTEST_PROP(RowSharding, DealsRowsInTurn, ()) {
    const Topology t = any_topology();
    const int shards = Row::shards(t, 1);
    const int table = *rc::gen::inRange(0, 1000);
    const auto digits = *rc::gen::inRange(0, 63);  // as many rows below 2^32 as above
    const auto row = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << digits);
    const shardwise::TableShape shape{.rows = row + 1, .dim = 1, .shards = shards, .index = table};
    const RowPlace place = Row::place(row, shape);
    RC_ASSERT(place.shard == (row + table) % shards);
    RC_ASSERT(place.local == row / shards);
    RC_ASSERT(Row::row(place, shape) == row);
    RC_ASSERT(place.local < Row::rows(place.shard, shape));
}

TEST(RowSharding, DealsRowsInTurnWhereNumbersGrowLong) {
    for (const int shards : {1, 2, 3, 49, 100'000})
        for (const int table : {0, 1, std::numeric_limits<int>::max()})
            for (const int bits : {0, 31, 32, 33, 62})
                for (const std::int64_t beside : {-1, 0, 1}) {
                    const std::int64_t row = (std::int64_t{1} << bits) + beside;
                    const shardwise::TableShape shape{.rows = row + 1, .dim = 1, .shards = shards, .index = table};
                    const RowPlace place = Row::place(row, shape);
                    EXPECT_EQ(place.shard, (row + table) % shards) << row << " of table " << table;
                    EXPECT_EQ(place.local, row / shards) << row << " on " << shards;
                }
}

RC_GTEST_PROP(RowSharding, ShardsDifferByOneRowAtMost, ()) {
    const Topology t = any_topology();
    const auto rows = *rc::gen::inRange<std::int64_t>(1, 1000);
    const int table = *rc::gen::inRange(0, 50);
    const shardwise::TableShape shape{.rows = rows, .dim = 1, .shards = t.ranks(), .index = table};
    std::int64_t least = rows;
    std::int64_t most = 0;
    for (int shard = 0; shard < t.ranks(); ++shard) {
        least = std::min(least, Row::rows(shard, shape));
        most = std::max(most, Row::rows(shard, shape));
    }
    RC_ASSERT(most - least <= 1);
}

RC_GTEST_PROP(RowSharding, NeitherFirstRowsNorFirstTablesShareARank, ()) {
    const Topology t = any_topology();
    const int ranks = t.ranks();
    const int table = *rc::gen::inRange(0, 50);
    std::set<int> of_rows;
    std::set<int> of_tables;
    const auto shape = [&](int index) {
        return shardwise::TableShape{.rows = ranks, .dim = 1, .shards = ranks, .index = index};
    };
    for (int i = 0; i < ranks; ++i) {
        of_rows.insert(Row::owner(t, table, Row::place(i, shape(table)).shard));
        of_tables.insert(Row::owner(t, table + i, Row::place(0, shape(table + i)).shard));
    }
    RC_ASSERT(static_cast<int>(of_rows.size()) == ranks);
    RC_ASSERT(static_cast<int>(of_tables.size()) == ranks);
}

RC_GTEST_PROP(ColSharding, WidthsDifferByOneColumnAtMost, ()) {
    const Topology t = any_topology();
    const int dim = *rc::gen::inRange(1, 200);
    const int shards = Col<>::shards(t, dim);
    RC_ASSERT(shards == std::min(dim, t.ranks()));
    const shardwise::TableShape shape{.rows = 1, .dim = dim, .shards = shards, .index = 0};
    int least = dim;
    int most = 0;
    for (int shard = 0; shard < shards; ++shard) {
        least = std::min(least, Col<>::columns(shard, shape).count);
        most = std::max(most, Col<>::columns(shard, shape).count);
    }
    RC_ASSERT(most - least <= 1);
}

TEST(ColSharding, SmallTablesStartAtAnotherRankEach) {
    const Topology t{.hosts = 2, .ranks_per_host = 2};
    EXPECT_EQ(Col<>::shards(t, 1), 1);
    std::set<int> owners;
    for (int table = 0; table < 4; ++table)
        owners.insert(Col<>::owner(t, table, 0));
    EXPECT_EQ(owners.size(), 4U);
}

shardwise::TableLoad load_of(int dim, std::int64_t rows = 1, float load = 1.0F, int features = 1) {
    return {.shape = {.rows = rows, .dim = dim}, .features = features, .load = load};
}

// By hand: the largest block first, to whom has the least to look up, then to whom holds the least, then in order.
TEST(ColByLoad, PutsBlocksWhereTheLeastIsLookedUp) {
    const Topology t{.hosts = 2, .ranks_per_host = 2};
    const auto owners = [&](const std::vector<shardwise::TableLoad>& tables) {
        std::vector<std::vector<int>> all;
        for (const auto& map : Col<2>::map(t, tables))
            all.push_back(map.owners);
        return all;
    };
    using Owners = std::vector<std::vector<int>>;
    EXPECT_EQ(owners({load_of(8), load_of(8)}), (Owners{{0, 1}, {2, 3}}));
    EXPECT_EQ(owners({load_of(2), load_of(8)}), (Owners{{2, 3}, {0, 1}}));
    EXPECT_EQ(owners({load_of(2, 1, 5.0F), load_of(8)}), (Owners{{0, 1}, {2, 3}}));
    EXPECT_EQ(owners({load_of(2, 1, 1.0F, 5), load_of(8)}), (Owners{{0, 1}, {2, 3}}));
    EXPECT_EQ(owners({load_of(4, 9), load_of(4, 5), load_of(4, 2)}), (Owners{{0, 1}, {2, 3}, {2, 3}}));
    EXPECT_EQ(owners({load_of(1), load_of(1)}), (Owners{{0}, {1}}));
    EXPECT_EQ(owners({}), Owners{});
}

// Blocks are placed as the greedy rule says, told from the end: taken away again, the smallest first, each was on a
// rank that has no more to do without it than any other rank without a block of its table.
RC_GTEST_PROP(ColByLoad, IsGreedyAndGivesARankOneBlockATable, ()) {
    const Topology t = any_topology();
    std::vector<shardwise::TableLoad> tables(*rc::gen::inRange<std::size_t>(1, 12));
    for (auto& table : tables) {
        const int dim = *rc::gen::inRange(1, 70);
        table = {.shape = {.rows = *rc::gen::inRange(1, 5), .dim = dim},
                 .features = *rc::gen::inRange(1, 4),
                 .load = static_cast<float>(*rc::gen::inRange(1, 9))};
    }
    const auto maps = Col<5>::map(t, tables);
    RC_ASSERT(maps.size() == tables.size());
    std::vector<std::vector<int>> owners;
    for (std::size_t i = 0; i < maps.size(); ++i) {
        tables[i].shape.shards = maps[i].shards();
        RC_ASSERT(maps[i].shards() == std::min({5, tables[i].shape.dim, t.ranks()}));
        owners.push_back(maps[i].owners);
    }
    using Load = std::pair<double, double>;                  // looked up, held
    std::vector<std::tuple<Load, std::size_t, int>> blocks;  // of a table, on a rank
    std::vector<Load> ranks(static_cast<std::size_t>(t.ranks()));
    for (std::size_t i = 0; i < tables.size(); ++i) {
        RC_ASSERT(static_cast<int>(owners[i].size()) == tables[i].shape.shards);
        RC_ASSERT(std::set<int>(owners[i].begin(), owners[i].end()).size() == owners[i].size());
        for (int s = 0; s < tables[i].shape.shards; ++s) {
            const double width = maps[i].columns(s).count;
            const Load load{width * tables[i].features * static_cast<double>(tables[i].load),
                            width * static_cast<double>(tables[i].shape.rows)};
            const int owner = owners[i][static_cast<std::size_t>(s)];
            blocks.emplace_back(load, i, owner);
            ranks.at(static_cast<std::size_t>(owner)).first += load.first;
            ranks.at(static_cast<std::size_t>(owner)).second += load.second;
        }
    }
    std::stable_sort(blocks.begin(), blocks.end(),
                     [](const auto& a, const auto& b) { return std::get<0>(a) > std::get<0>(b); });
    while (!blocks.empty()) {
        const auto [load, table, owner] = blocks.back();
        blocks.pop_back();
        Load& mine = ranks[static_cast<std::size_t>(owner)];
        mine.first -= load.first;
        mine.second -= load.second;
        for (int r = 0; r < t.ranks(); ++r) {
            const bool has_one = std::any_of(blocks.begin(), blocks.end(), [&, of = table](const auto& block) {
                return std::get<1>(block) == of && std::get<2>(block) == r;
            });
            RC_ASSERT(has_one || mine <= ranks[static_cast<std::size_t>(r)]);
        }
    }
}

TEST(TableSharding, DealsTablesOverRanks) {
    const Topology t{.hosts = 3, .ranks_per_host = 1};
    for (int table = 0; table < 9; ++table)
        EXPECT_EQ(Table::owner(t, table, 0), table % 3);
}

}  // namespace
}  // namespace shardwise_test
