// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// What a sharding policy is: a few pure functions that say where each row and column of a table lives.

namespace shardwise::inline SHARDWISE_ABI {

/// What a policy cuts a table along.
enum class Splits : std::uint8_t { nothing, rows, columns };

/// A row's shard, and its number there.
struct RowPlace {
    int shard = 0;
    std::int64_t local = 0;
    friend constexpr bool operator==(const RowPlace&, const RowPlace&) = default;
};

/// Columns [first, first + count).
struct Columns {
    int first = 0;
    int count = 0;
    friend constexpr bool operator==(const Columns&, const Columns&) = default;
};

/// What a policy's maps may know of a table.
struct TableShape {
    std::int64_t rows = 0;
    int dim = 0;
    int shards = 1;
    int index = 0;  ///< the table's number among those that the policy places (in its tower, where there are some)
};

/// What a policy that places by load may know of a table.
struct TableLoad {
    TableShape shape;
    int features = 1;   ///< that look up in it
    float load = 1.0F;  ///< TableConfig::load
};

/// A policy that sees all tables before it places one.
template <class S>
concept PlacesByLoad = requires(const Topology& t, std::span<const TableLoad> tables) {
    { S::owners(t, tables) } -> std::same_as<std::vector<std::vector<int>>>;
};

/// A sharding policy. Every function is pure, so that all ranks and all readers agree:
/// - `shards(topology, dim)`: into how many shards a table of `dim` columns is cut; a shard may be empty;
/// - `owner(topology, source, table, shard)`: the rank that answers the requests of rank `source`; independent of
///   `source` unless the policy is `replicated`. A policy that places by load has in its place
///   `owners(topology, tables)`: (table, shard), of all tables that it places together;
/// - `place(row, TableShape)` and `row(place, TableShape)`: a bijection of rows and places;
/// - `rows(shard, TableShape)`: how many rows the shard has;
/// - `columns(shard, TableShape)`: which columns it has.
/// A policy that splits rows gives every shard all columns, and the other way round. A rank has at most one shard of a
/// table, and shards of rows are numbered in the order of their owners (unless the policy is replicated).
template <class S>
concept ShardingPolicy = requires(const Topology& t, std::int64_t row, int n, const RowPlace& place,
                                  const TableShape& table) {
    { S::name } -> std::convertible_to<std::string>;
    { S::splits } -> std::convertible_to<Splits>;
    { S::replicated } -> std::convertible_to<bool>;
    { S::shards(t, n) } -> std::same_as<int>;
    { S::place(row, table) } -> std::same_as<RowPlace>;
    { S::row(place, table) } -> std::same_as<std::int64_t>;
    { S::rows(n, table) } -> std::same_as<std::int64_t>;
    { S::columns(n, table) } -> std::same_as<Columns>;
}
&&(requires(const Topology& t, int n) {
    { S::owner(t, n, n, n) } -> std::same_as<int>;
} ||
   PlacesByLoad<S>);

/// The parts of a policy that does not split rows.
struct WholeRows {
    static constexpr RowPlace place(std::int64_t row, const TableShape&) noexcept { return {.shard = 0, .local = row}; }
    static constexpr std::int64_t row(const RowPlace& place, const TableShape&) noexcept { return place.local; }
    static constexpr std::int64_t rows(int, const TableShape& table) noexcept { return table.rows; }
};

/// The part of a policy that does not split columns.
struct WholeColumns {
    static constexpr Columns columns(int, const TableShape& table) noexcept { return {.first = 0, .count = table.dim}; }
};

}  // namespace shardwise::inline SHARDWISE_ABI
