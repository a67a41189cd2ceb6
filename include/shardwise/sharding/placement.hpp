// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/sharding/policy.hpp"
#include "shardwise/topology/groups.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Where the tables of one layer live, worked out once from a sharding policy and the topology; the same on all ranks.

namespace shardwise::inline SHARDWISE_ABI {

/// A row's number inside its shard.
using LocalRow = std::uint32_t;

/// An embedding table, as the user declares it.
struct TableConfig {
    std::string name;
    std::int64_t rows = 0;
    int dim = 0;
    std::vector<std::string> features = {};  ///< the features that look up in it; empty: one, with the table's name
    std::string sharding = {};  ///< with Mixed: the name of the policy that this table uses; otherwise empty
    float load = 1.0F;          ///< ids a bag, against those of other tables: policies that place by load go by it
};

/// One shard of a table.
struct ShardPlacement {
    std::int64_t rows = 0;
    Columns columns;
    int owner = 0;  ///< meaningless where the placement is replicated
};

/// One table under a policy.
struct TablePlacement {
    int table = 0;  ///< its number in the layer
    int dim = 0;
    std::int64_t rows = 0;
    std::string name;
    TableShape shape;  ///< what the policy's maps are given
    std::vector<ShardPlacement> shards;
};

/// One feature under a policy.
struct FeaturePlacement {
    int feature = 0;  ///< its number in the layer
    int table = 0;    ///< its table's number in the placement
    std::string name;
    int first_block = 0;  ///< number of its shard 0 among all (feature, shard) pairs of the placement
};

/// A feature's shard: the unit in which ids and vectors travel.
struct BlockPlace {
    int feature = 0;  ///< number in the placement
    int shard = 0;
};

/// The tables that one policy places.
struct Placement {
    Topology topology;
    bool replicated = false;
    Splits splits = Splits::nothing;
    std::vector<TablePlacement> tables;
    std::vector<FeaturePlacement> features;
    std::vector<std::vector<BlockPlace>> owned;  ///< (rank): its blocks by feature, then shard
    int blocks = 0;                              ///< number of (feature, shard) pairs

    [[nodiscard]] const TablePlacement& table_of(int feature) const {
        return tables[static_cast<std::size_t>(features[static_cast<std::size_t>(feature)].table)];
    }
    [[nodiscard]] const ShardPlacement& shard(const BlockPlace& block) const {
        return table_of(block.feature).shards[static_cast<std::size_t>(block.shard)];
    }
    [[nodiscard]] int block_index(int feature, int shard) const {
        return features[static_cast<std::size_t>(feature)].first_block + shard;
    }
};

/// The features of a table in their order; one with the table's name when none is given.
[[nodiscard]] inline std::vector<std::string> features_of(const TableConfig& table) {
    return table.features.empty() ? std::vector<std::string>{table.name} : table.features;
}

namespace detail {

/// (table of `chosen`, shard): the rank in its tower, or of all ranks where there are none.
template <ShardingPolicy S>
std::vector<std::vector<int>> owners_of(const Topology& where, const std::vector<TableLoad>& loads,
                                        const std::vector<int>& tower_of) {
    std::vector<std::vector<int>> owners(loads.size());
    std::vector<bool> placed(loads.size());
    if constexpr (PlacesByLoad<S>) {
        for (std::size_t first = 0; first < loads.size(); ++first) {
            if (placed[first]) continue;
            std::vector<std::size_t> numbers;
            std::vector<TableLoad> together;
            for (std::size_t t = first; t < loads.size(); ++t) {
                if (tower_of[t] != tower_of[first]) continue;
                numbers.push_back(t);
                together.push_back(loads[t]);
            }
            const std::vector<std::vector<int>> all = S::owners(where, together);
            if (all.size() != together.size())
                throw BadInput{"sharding '" + std::string{S::name} + "': its owners are of " +
                               std::to_string(all.size()) + " tables, and it was given " +
                               std::to_string(together.size())};
            for (std::size_t i = 0; i < numbers.size(); ++i) {
                if (all[i].size() != static_cast<std::size_t>(together[i].shape.shards))
                    throw BadInput{"sharding '" + std::string{S::name} + "': it gives a table " +
                                   std::to_string(all[i].size()) + " owners, and cuts it into " +
                                   std::to_string(together[i].shape.shards) + " shards"};
                owners[numbers[i]] = all[i];
                placed[numbers[i]] = true;
            }
        }
    } else {
        for (std::size_t t = 0; t < loads.size(); ++t)
            for (int s = 0; s < loads[t].shape.shards; ++s)
                owners[t].push_back(S::owner(where, 0, loads[t].shape.index, s));
    }
    return owners;
}

}  // namespace detail

/// Places the tables numbered `chosen` by policy S. Pure; the same on all ranks.
/// \param towers  (table of the layer): the tower that the table is placed in, as the policy would on a topology of
/// that
///                tower's ranks alone; empty: all tables are placed on all ranks
/// \throws BadInput for a table without rows or columns, a shard of more than 2^32 - 1 rows, or a policy that gives a
/// rank two shards of a table or numbers shards of rows in another order than their owners
template <ShardingPolicy S>
[[nodiscard]] Placement place_tables(const Topology& topology, const std::vector<TableConfig>& tables,
                                     const std::vector<int>& chosen, const std::vector<int>& towers = {}) {
    const bool in_towers = !towers.empty() && !S::replicated;
    const Topology where = in_towers ? OneTower::inside(topology) : topology;
    std::vector<int> placed(static_cast<std::size_t>(in_towers ? topology.towers() : 1), 0);  // (tower): tables so far
    Placement placement;
    placement.topology = topology;
    placement.replicated = S::replicated;
    placement.splits = S::splits;
    placement.owned.resize(static_cast<std::size_t>(topology.ranks()));
    std::vector<int> first_feature;
    int features = 0;
    for (const TableConfig& table : tables) {
        first_feature.push_back(features);
        features += static_cast<int>(features_of(table).size());
    }
    std::vector<TableLoad> loads;
    std::vector<int> tower_of;  // (table of `chosen`)
    for (const int t : chosen) {
        const TableConfig& config = tables[static_cast<std::size_t>(t)];
        if (config.rows < 1)
            throw BadInput{"table '" + config.name + "' has " + std::to_string(config.rows) +
                           " rows: give it at least one"};
        if (config.dim < 1)
            throw BadInput{"table '" + config.name + "' has dimension " + std::to_string(config.dim) +
                           ": give it at least 1"};
        if (!(config.load > 0) || !std::isfinite(config.load))
            throw BadInput{"table '" + config.name + "' has load " + std::to_string(config.load) +
                           ": give a number above 0"};
        tower_of.push_back(in_towers ? towers[static_cast<std::size_t>(t)] : 0);
        loads.push_back({.shape = {.rows = config.rows,
                                   .dim = config.dim,
                                   .shards = S::shards(where, config.dim),
                                   .index = placed[static_cast<std::size_t>(tower_of.back())]++},
                         .features = static_cast<int>(features_of(config).size()),
                         .load = config.load});
    }
    const std::vector<std::vector<int>> owners = detail::owners_of<S>(where, loads, tower_of);
    for (const int t : chosen) {
        const TableConfig& config = tables[static_cast<std::size_t>(t)];
        const std::size_t at = placement.tables.size();
        const int index = static_cast<int>(at);
        TablePlacement table{.table = t,
                             .dim = config.dim,
                             .rows = config.rows,
                             .name = config.name,
                             .shape = loads[at].shape,
                             .shards = {}};
        const int shards = table.shape.shards;
        const int tower = tower_of[at];
        int columns_so_far = 0;
        for (int s = 0; s < shards; ++s) {
            const ShardPlacement shard{.rows = S::rows(s, table.shape),
                                       .columns = S::columns(s, table.shape),
                                       .owner = tower * where.ranks() + owners[at][static_cast<std::size_t>(s)]};
            if (shard.rows > std::numeric_limits<LocalRow>::max())
                throw BadInput{"table '" + config.name + "': shard " + std::to_string(s) + " has " +
                               std::to_string(shard.rows) +
                               " rows, and a shard holds at most 4294967295: split it by row over more ranks"};
            const int inside = shard.owner - tower * where.ranks();
            if (!S::replicated && (inside < 0 || inside >= where.ranks()))
                throw BadInput{"sharding '" + std::string{S::name} + "', table '" + config.name + "': shard " +
                               std::to_string(s) + " is on rank " + std::to_string(inside) + " of " +
                               std::to_string(where.ranks())};
            for (const ShardPlacement& other : table.shards)
                if (!S::replicated &&
                    (S::splits == Splits::rows ? other.owner >= shard.owner : other.owner == shard.owner))
                    throw BadInput{"sharding '" + std::string{S::name} + "', table '" + config.name + "': shard " +
                                   std::to_string(s) + " is on rank " + std::to_string(shard.owner) +
                                   (S::splits == Splits::rows
                                        ? ": number the shards of rows in the order of their owners, one a rank at most"
                                        : ", which has a shard of this table already: give it one at most")};
            const int first = S::splits == Splits::columns ? columns_so_far : 0;
            if (shard.rows < 0 || shard.columns.count < 0 || shard.columns.first != first)
                throw BadInput{"sharding '" + std::string{S::name} + "', table '" + config.name + "': shard " +
                               std::to_string(s) + " has " + std::to_string(shard.rows) + " rows and columns [" +
                               std::to_string(shard.columns.first) + ", " + std::to_string(shard.columns.first) +
                               " + " + std::to_string(shard.columns.count) + "): its first column is " +
                               std::to_string(first) + ", and neither number is negative"};
            columns_so_far += shard.columns.count;
            table.shards.push_back(shard);
        }
        std::int64_t rows = 0;
        std::int64_t columns = 0;
        for (const ShardPlacement& shard : table.shards) {
            rows += shard.rows;
            columns += shard.columns.count;
        }
        const bool fits = shards >= 1 && rows == config.rows * (S::splits == Splits::rows ? 1 : shards) &&
                          columns == std::int64_t{config.dim} * (S::splits == Splits::columns ? 1 : shards) &&
                          (S::splits != Splits::nothing || shards == 1);
        if (!fits)
            throw BadInput{"sharding '" + std::string{S::name} + "', table '" + config.name + "': its " +
                           std::to_string(shards) + " shards have " + std::to_string(rows) + " rows and " +
                           std::to_string(columns) + " columns together, which is not the table of " +
                           std::to_string(config.rows) + " x " + std::to_string(config.dim)};
        int feature = first_feature[static_cast<std::size_t>(t)];
        for (const std::string& name : features_of(config)) {
            placement.features.push_back(
                {.feature = feature++, .table = index, .name = name, .first_block = placement.blocks});
            placement.blocks += shards;
        }
        placement.tables.push_back(std::move(table));
    }
    for (int f = 0; f < static_cast<int>(placement.features.size()); ++f) {
        const int shards = static_cast<int>(placement.table_of(f).shards.size());
        for (int s = 0; s < shards; ++s) {
            const BlockPlace block{.feature = f, .shard = s};
            if (placement.replicated) {
                for (auto& mine : placement.owned)
                    mine.push_back(block);
            } else {
                placement.owned[static_cast<std::size_t>(placement.shard(block).owner)].push_back(block);
            }
        }
    }
    return placement;
}

}  // namespace shardwise::inline SHARDWISE_ABI
