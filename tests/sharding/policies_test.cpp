// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
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
    const Topology t = any_topology();
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
        const int owner = S::owner(t, 0, table, shard);
        RC_ASSERT(owner >= 0);
        RC_ASSERT(owner < t.ranks());
        owners.insert(owner);
        for (int source = 0; source < t.ranks(); ++source)
            RC_ASSERT(S::owner(t, source, table, shard) == (S::replicated ? source : owner));
    }
    RC_ASSERT(static_cast<int>(owners.size()) == shards);  // no rank has two shards of one table
}

RC_GTEST_PROP(RowSharding, IsABijection, ()) {
    check_bijection<Row>();
}
RC_GTEST_PROP(ColSharding, IsABijection, ()) {
    check_bijection<Col>();
}
RC_GTEST_PROP(TableSharding, IsABijection, ()) {
    check_bijection<Table>();
}
RC_GTEST_PROP(DpSharding, IsABijection, ()) {
    check_bijection<DP>();
}

RC_GTEST_PROP(RowSharding, WorksForRowsBeyond32Bits, ()) {
    const Topology t = any_topology();
    const int shards = Row::shards(t, 1);
    const int table = *rc::gen::inRange(0, 1000);
    const auto row = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 45);
    const shardwise::TableShape shape{.rows = row + 1, .dim = 1, .shards = shards, .index = table};
    const RowPlace place = Row::place(row, shape);
    RC_ASSERT(Row::row(place, shape) == row);
    RC_ASSERT(place.local < Row::rows(place.shard, shape));
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
        of_rows.insert(Row::owner(t, 0, table, Row::place(i, shape(table)).shard));
        of_tables.insert(Row::owner(t, 0, table + i, Row::place(0, shape(table + i)).shard));
    }
    RC_ASSERT(static_cast<int>(of_rows.size()) == ranks);
    RC_ASSERT(static_cast<int>(of_tables.size()) == ranks);
}

RC_GTEST_PROP(ColSharding, WidthsDifferByOneColumnAtMost, ()) {
    const Topology t = any_topology();
    const int dim = *rc::gen::inRange(1, 200);
    const int shards = Col::shards(t, dim);
    RC_ASSERT(shards == std::min(dim, t.ranks()));
    const shardwise::TableShape shape{.rows = 1, .dim = dim, .shards = shards, .index = 0};
    int least = dim;
    int most = 0;
    for (int shard = 0; shard < shards; ++shard) {
        least = std::min(least, Col::columns(shard, shape).count);
        most = std::max(most, Col::columns(shard, shape).count);
    }
    RC_ASSERT(most - least <= 1);
}

TEST(ColSharding, SmallTablesStartAtAnotherRankEach) {
    const Topology t{.hosts = 2, .ranks_per_host = 2};
    EXPECT_EQ(Col::shards(t, 1), 1);
    std::set<int> owners;
    for (int table = 0; table < 4; ++table)
        owners.insert(Col::owner(t, 0, table, 0));
    EXPECT_EQ(owners.size(), 4U);
}

TEST(TableSharding, DealsTablesOverRanks) {
    const Topology t{.hosts = 3, .ranks_per_host = 1};
    for (int table = 0; table < 9; ++table)
        EXPECT_EQ(Table::owner(t, 0, table, 0), table % 3);
}

}  // namespace
}  // namespace shardwise_test
