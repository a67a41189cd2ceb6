// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/sharding/policy.hpp"
#include "shardwise/sharding/row_map.hpp"
#include "shardwise/sharding/row_plan.hpp"
#include "shardwise/sharding/row_reduction.hpp"
#include "shardwise/sharding/shard_map.hpp"
#include "shardwise/topology/members.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Where the tables of one layer live, worked out once from a sharding policy and the topology; the same on all ranks.

namespace shardwise::inline SHARDWISE_ABI {

/// An embedding table, as the user declares it.
struct TableConfig {
    std::string name;                        ///< unique in the layer
    std::int64_t rows = 0;                   ///< at least 1; ids are 0 to rows - 1
    int dim = 0;                             ///< at least 1: floats a row
    std::vector<std::string> features = {};  ///< the features that look up in it; empty: one, with the table's name
    std::string sharding = {};  ///< with Mixed: the name of the policy that this table uses; otherwise empty
    float load = 1.0F;          ///< ids a bag, against those of other tables: policies that place by load go by it
    std::string pooling = {};   ///< with ByTable: sum, mean or none; otherwise empty
};

/// The features of a table in their order; one with the table's name when none is given.
[[nodiscard]] std::vector<std::string> features_of(const TableConfig& table);

/// Checks that a plan is of these tables: each of them, of as many rows, and no other.
/// Not collective. \throws BadInput naming the first table that differs
void require_tables(const RowPlan& plan, std::span<const TableConfig> tables);

/// One shard of a table.
struct ShardPlacement {
    std::int64_t rows = 0;
    Columns columns;
    int owner = 0;  ///< the number of the rank that holds it, in its home
};

/// One table under a policy.
struct TablePlacement {
    int table = 0;  ///< its number in the layer
    int dim = 0;
    std::int64_t rows = 0;
    std::string name;
    std::shared_ptr<const ShardMap> map;
    std::vector<ShardPlacement> shards;
    DenseSums dense = {};  ///< between the copies of its rows
};

/// One feature under a policy.
struct FeaturePlacement {
    int feature = 0;  ///< its number in the layer
    int table = 0;    ///< its table's number in the placement
    std::string name;
    int first_block = 0;  ///< number of its shard 0 among all (feature, shard) pairs of the placement
    bool alone = true;    ///< no other feature looks up in its table
};

/// A feature's shard: the unit in which ids and vectors travel.
struct BlockPlace {
    int feature = 0;  ///< number in the placement
    int shard = 0;
};

/// The tables that one policy places. One copy of them lies in the home, a group of ranks; the peers of that group hold
/// the others. Each rank finds every row in its own home.
struct Placement {
    static constexpr const char* state_name = "Placement";

    Topology topology;
    Members home;
    Splits splits = Splits::nothing;
    std::vector<TablePlacement> tables;
    std::vector<FeaturePlacement> features;
    std::vector<std::vector<BlockPlace>> owned;  ///< (number in the home): its blocks by feature, then shard
    int blocks = 0;                              ///< number of (feature, shard) pairs

    [[nodiscard]] const TablePlacement& table_of(int feature) const { return at(tables, at(features, feature).table); }
    [[nodiscard]] const ShardPlacement& shard(const BlockPlace& block) const {
        return at(table_of(block.feature).shards, block.shard);
    }
    [[nodiscard]] int block_index(int feature, int shard) const { return at(features, feature).first_block + shard; }
    [[nodiscard]] int block_index(const BlockPlace& block) const { return block_index(block.feature, block.shard); }

    /// The rank that answers what `rank` asks of a shard.
    [[nodiscard]] int owner(int rank, const ShardPlacement& shard) const { return home.member(rank, shard.owner); }
    [[nodiscard]] int owner(int rank, const BlockPlace& block) const { return owner(rank, shard(block)); }
    [[nodiscard]] bool holds(int rank, const ShardPlacement& shard) const { return home.index(rank) == shard.owner; }
    /// Whether `rank` holds rows, or parts of rows, that a feature looks up.
    [[nodiscard]] bool has_part(int rank, int feature) const {
        const auto& shards = table_of(feature).shards;
        return std::any_of(shards.begin(), shards.end(),
                           [&](const ShardPlacement& shard) { return holds(rank, shard); });
    }
    /// The blocks whose rows `rank` holds.
    [[nodiscard]] const std::vector<BlockPlace>& owned_by(int rank) const { return at(owned, home.index(rank)); }
    /// How many copies of every row there are, and which of them `rank` holds part of.
    [[nodiscard]] int copies() const { return topology.ranks() / home.size; }
    [[nodiscard]] int copy_of(int rank) const { return home.peers(topology.ranks()).index(rank); }
};

/// One tier of every table.
struct TierOfTables {
    const std::vector<std::shared_ptr<const RowMap>>* rows = nullptr;  ///< (table of the layer)
    int tier = 0;
};

/// What a rank has for tables that are placed by load, and what these take.
struct PlacementRoom {
    double bytes = 0.0;          ///< 0: enough
    double element_bytes = 4.0;  ///< of a weight and its moments
    double row_bytes = 0.0;      ///< of moments that a row has in each block
};

/// Places the tables numbered `chosen` by a policy. Pure; the same on all ranks.
/// \param towers  (table of the layer): the tower that the table is placed in, as the policy would on a topology with
/// the ranks of that tower alone; empty: all tables are placed on the whole home. Only for homes that are the world
/// \param tier  of each table only the rows of this tier; null: all of them
/// \param room  of a rank, for policies that see all tables: each of the tables tells them (TableLoad::room)
/// \throws BadInput for a table without rows or columns, a shard of more than 2^32 - 1 rows, or a policy that gives a
/// rank two shards of a table or numbers shards of rows in another order than their owners
[[nodiscard]] Placement place_tables(const ShardingTraits& policy, const Topology& topology,
                                     const std::vector<TableConfig>& tables, const std::vector<int>& chosen,
                                     const std::vector<int>& towers = {}, const TierOfTables& tier = {},
                                     const PlacementRoom& room = {});
/// The same by policy S.
template <ShardingPolicy S>
[[nodiscard]] Placement place_tables(const Topology& topology, const std::vector<TableConfig>& tables,
                                     const std::vector<int>& chosen, const std::vector<int>& towers = {}) {
    return place_tables(sharding_traits<S>(), topology, tables, chosen, towers);
}

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/sharding/placement.ipp"
#endif
