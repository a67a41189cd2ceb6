// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/sharding/tier_map.hpp"
#include "shardwise/topology/groups.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE std::vector<std::string> features_of(const TableConfig& table) {
    return table.features.empty() ? std::vector<std::string>{table.name} : table.features;
}

SHARDWISE_INLINE void require_tables(const RowPlan& plan, std::span<const TableConfig> tables) {
    for (const TableRowPlan& rows : plan.tables)
        if (std::none_of(tables.begin(), tables.end(), [&](const auto& table) { return table.name == rows.table; }))
            throw BadInput{concat({"the row plan has a table '", rows.table, "', and the layer has none of that name: ",
                                   "give a plan of the layer's tables, under their names"})};
    for (const TableConfig& table : tables)
        if (const TableRowPlan& rows = plan.of(table.name); rows.rows != table.rows)
            throw BadInput{concat({"the row plan says that table '", table.name, "' has ", rows.rows,
                                   " rows, and the layer's has ", table.rows, ": give a plan of the layer's tables"})};
}

namespace detail {

/// \throws BadInput for a table that makes no sense
SHARDWISE_INLINE void check_table(const TableConfig& table) {
    if (table.rows < 1)
        throw BadInput{concat({"table '", table.name, "' has ", table.rows, " rows: give it at least one"})};
    if (table.dim < 1)
        throw BadInput{concat({"table '", table.name, "' has dimension ", table.dim, ": give it at least 1"})};
    if (!(table.load > 0) || !std::isfinite(table.load))
        throw BadInput{concat({"table '", table.name, "' has load ", table.load, ": give a number above 0"})};
}

/// One table, given its map, on ranks [first_rank, first_rank + ranks) of the home. \throws BadInput as place_tables
class TablePlacer {
  public:
    /// \param rows  of the table, or of its tier
    TablePlacer(const ShardingTraits& policy, const TableConfig& table, std::int64_t rows, int first_rank, int ranks)
        : policy_{policy}, table_{table}, rows_{rows}, first_rank_{first_rank}, ranks_{ranks} {}

    [[nodiscard]] TablePlacement place(int number, std::shared_ptr<const ShardMap> map) const {
        TablePlacement table{.table = number,
                             .dim = table_.dim,
                             .rows = table_.rows,
                             .name = table_.name,
                             .map = std::move(map),
                             .shards = {}};
        int columns_so_far = 0;
        for (int s = 0; s < table.map->shards(); ++s) {
            const int inside = table.map->owner(s);
            const ShardPlacement shard{
                .rows = table.map->rows(s), .columns = table.map->columns(s), .owner = first_rank_ + inside};
            check_shard(table, s, shard, inside, policy_.splits == Splits::columns ? columns_so_far : 0);
            columns_so_far += shard.columns.count;
            table.shards.push_back(shard);
        }
        check_whole(table);
        return table;
    }

  private:
    [[nodiscard]] std::string where() const {
        return concat({"sharding '", policy_.name, "', table '", table_.name, "': "});
    }
    void check_shard(const TablePlacement& table, int s, const ShardPlacement& shard, int inside, int first) const {
        const std::string number = std::to_string(s);
        if (shard.rows > std::numeric_limits<LocalRow>::max())
            throw BadInput{concat({"table '", table_.name, "': shard ", number, " has ", shard.rows,
                                   " rows, and a shard holds at most 4294967295: split it by row over more ranks"})};
        if (inside < 0 || inside >= ranks_)
            throw BadInput{concat({where(), "shard ", number, " is on rank ", inside, " of a home of ", ranks_,
                                   ": they are numbered from 0 inside it"})};
        const bool by_rows = policy_.splits == Splits::rows;
        for (const ShardPlacement& other : table.shards)
            if (by_rows ? other.owner >= shard.owner : other.owner == shard.owner)
                throw BadInput{
                    concat({where(), "shard ", number, " is on rank ", shard.owner,
                            (by_rows ? ": number the shards of rows in the order of their owners, one a rank at most"
                                     : ", which has a shard of this table already: give it one at most")})};
        if (shard.rows < 0 || shard.columns.count < 0 || shard.columns.first != first)
            throw BadInput{concat({where(), "shard ", number, " has ", shard.rows, " rows and columns [",
                                   shard.columns.first, ", ", shard.columns.first, " + ", shard.columns.count,
                                   "): its first column is ", first, ", and neither number is negative"})};
    }
    void check_whole(const TablePlacement& table) const {
        std::int64_t rows = 0;
        std::int64_t columns = 0;
        for (const ShardPlacement& shard : table.shards) {
            rows += shard.rows;
            columns += shard.columns.count;
        }
        const auto shards = static_cast<std::int64_t>(table.shards.size());
        const bool fits = shards >= 1 && rows == rows_ * (policy_.splits == Splits::rows ? 1 : shards) &&
                          columns == std::int64_t{table_.dim} * (policy_.splits == Splits::columns ? 1 : shards) &&
                          (policy_.splits != Splits::nothing || shards == 1);
        if (!fits)
            throw BadInput{concat({where(), "its ", shards, " shards have ", rows, " rows and ", columns,
                                   " columns together, which is not the table of ", rows_, " x ", table_.dim})};
    }

    const ShardingTraits& policy_;
    const TableConfig& table_;
    std::int64_t rows_;
    int first_rank_;
    int ranks_;
};

/// (table of `loads`): its map; those of one tower are placed together.
SHARDWISE_INLINE std::vector<std::shared_ptr<const ShardMap>> map_tables(const ShardingTraits& policy,
                                                                         const Topology& where,
                                                                         std::vector<TableLoad> loads,
                                                                         const std::vector<int>& tower_of) {
    std::vector<std::shared_ptr<const ShardMap>> maps(loads.size());
    for (std::size_t first = 0; first < loads.size(); ++first) {
        if (maps[first] != nullptr) continue;
        std::vector<std::size_t> numbers;
        std::vector<TableLoad> together;
        for (std::size_t t = first; t < loads.size(); ++t) {
            if (tower_of[t] != tower_of[first]) continue;
            loads[t].shape.index = static_cast<int>(numbers.size());
            numbers.push_back(t);
            together.push_back(loads[t]);
        }
        const auto some = policy.map(where, together);
        if (some.size() != numbers.size())
            throw BadInput{concat({"sharding '", policy.name, "': its maps are of ", some.size(),
                                   " tables, and it was given ", numbers.size()})};
        for (std::size_t i = 0; i < numbers.size(); ++i)
            maps[numbers[i]] = some[i];
    }
    return maps;
}

}  // namespace detail

SHARDWISE_INLINE Placement place_tables(const ShardingTraits& policy, const Topology& topology,
                                        const std::vector<TableConfig>& tables, const std::vector<int>& chosen,
                                        const std::vector<int>& towers, const TierOfTables& tier,
                                        const PlacementRoom& room) {
    Placement placement;
    placement.topology = topology;
    placement.home = policy.home(topology);
    placement.splits = policy.splits;
    placement.owned.resize(static_cast<std::size_t>(placement.home.size));
    const bool in_towers = !towers.empty() && policy.in_world;
    const Topology where = inside(topology, in_towers ? OneTower::of(topology) : placement.home);
    std::vector<TableLoad> loads;
    std::vector<int> tower_of;  // (table of `chosen`)
    for (const int t : chosen) {
        const TableConfig& table = at(tables, t);
        detail::check_table(table);
        tower_of.push_back(in_towers ? at(towers, t) : 0);
        loads.push_back({.shape = {.rows = tier.rows == nullptr ? table.rows : at(*tier.rows, t)->rows(tier.tier),
                                   .dim = table.dim},
                         .features = static_cast<int>(features_of(table).size()),
                         .load = table.load,
                         .name = table.name,
                         .element_bytes = room.element_bytes,
                         .row_bytes = room.row_bytes,
                         .room = room.bytes});
    }
    auto maps = detail::map_tables(policy, where, loads, tower_of);
    for (std::size_t i = 0; tier.rows != nullptr && i < maps.size(); ++i)
        maps[i] = std::make_shared<TierMap>(at(*tier.rows, chosen[i]), tier.tier, maps[i]);
    std::vector<int> first_feature;  // (table of the layer)
    int features = 0;
    for (const TableConfig& table : tables) {
        first_feature.push_back(features);
        features += static_cast<int>(features_of(table).size());
    }
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        const TableConfig& table = at(tables, chosen[i]);
        placement.tables.push_back(
            detail::TablePlacer{policy, table, loads[i].shape.rows, tower_of[i] * where.ranks(), where.ranks()}.place(
                chosen[i], maps[i]));
        int feature = at(first_feature, chosen[i]);
        const std::vector<std::string> names = features_of(table);
        for (const std::string& name : names) {
            placement.features.push_back({.feature = feature++,
                                          .table = static_cast<int>(i),
                                          .name = name,
                                          .first_block = placement.blocks,
                                          .alone = names.size() == 1});
            placement.blocks += static_cast<int>(placement.tables.back().shards.size());
        }
    }
    for (int f = 0; f < static_cast<int>(placement.features.size()); ++f)
        for (int s = 0; s < static_cast<int>(placement.table_of(f).shards.size()); ++s)
            at(placement.owned, placement.shard({.feature = f, .shard = s}).owner)
                .push_back({.feature = f, .shard = s});
    return placement;
}

}  // namespace shardwise::inline SHARDWISE_ABI
