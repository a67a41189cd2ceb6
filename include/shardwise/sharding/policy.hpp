// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/topology/groups.hpp"
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

/// A row's number inside its shard, as it travels.
using LocalRow = std::uint32_t;

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

/// What a policy that sees all tables may know of one.
struct TableLoad {
    TableShape shape;   ///< its `shards` are yet to be chosen
    int features = 1;   ///< that look up in it
    float load = 1.0F;  ///< TableConfig::load
    std::string_view name = {};
    double element_bytes = 4.0;  ///< of a weight and its moments
    double row_bytes = 0.0;      ///< of moments that a row has in each of its blocks
    double room = 0.0;           ///< bytes that a rank has for all tables that are placed together; 0: enough

    /// Of a block of so many columns of all rows.
    [[nodiscard]] double bytes(int columns) const noexcept {
        return static_cast<double>(shape.rows) * (element_bytes * columns + row_bytes);
    }
};

namespace detail {

template <class S>
struct HomeIn {
    using type = World;
};
template <class S>
    requires requires {
        typename S::home;
    }
struct HomeIn<S> {
    using type = typename S::home;
};

}  // namespace detail

/// The group in which one copy of a table lies under policy S: `S::home`, or World where S says nothing. Each rank
/// finds all rows inside its own group; the peers of that group hold the same rows.
template <class S>
using HomeOf = typename detail::HomeIn<S>::type;

/// A mapping object: the maps of one table, with data of their own (owners by load, cuts, a remap). As the functions of
/// a policy without, less the arguments that it was made from.
template <class M>
concept TableMapping = requires(const M& map, std::int64_t row, int shard, const RowPlace& place) {
    { map.shards() } -> std::same_as<int>;
    { map.owner(shard) } -> std::same_as<int>;
    { map.place(row) } -> std::same_as<RowPlace>;
    { map.row(place) } -> std::same_as<std::int64_t>;
    { map.rows(shard) } -> std::same_as<std::int64_t>;
    { map.columns(shard) } -> std::same_as<Columns>;
};

/// A policy whose maps carry data: a nested `mapping`, and `map(topology, tables)`, which makes one for each of the
/// tables that are placed together. So it sees all tables before it places one.
template <class S>
concept MapsTogether = requires(const Topology& t, std::span<const TableLoad> tables) {
    requires TableMapping<typename S::mapping>;
    { S::map(t, tables) } -> std::same_as<std::vector<typename S::mapping>>;
};

namespace detail {

/// A policy whose maps follow from a table's shape.
template <class S>
concept MapsByShape = requires(const Topology& t, std::int64_t row, int n, const RowPlace& place,
                               const TableShape& table) {
    { S::shards(t, n) } -> std::same_as<int>;
    { S::owner(t, n, n) } -> std::same_as<int>;
    { S::place(row, table) } -> std::same_as<RowPlace>;
    { S::row(place, table) } -> std::same_as<std::int64_t>;
    { S::rows(n, table) } -> std::same_as<std::int64_t>;
    { S::columns(n, table) } -> std::same_as<Columns>;
};

}  // namespace detail

/// A sharding policy: a `name`, what it `splits`, optionally a `home`, and maps. `topology` is that of one home alone,
/// or of one tower where tables live in towers. Every function is pure, so that all ranks and all readers agree:
/// - `shards(topology, dim)`: into how many shards a table of `dim` columns is cut; a shard may be empty;
/// - `owner(topology, table, shard)`: which rank of the home holds the shard of the `table`-th table;
/// - `place(row, TableShape)` and `row(place, TableShape)`: a bijection of rows, from 0 on, and places;
/// - `rows(shard, TableShape)`: how many rows the shard has;
/// - `columns(shard, TableShape)`: which columns it has.
/// Or, for maps that carry data, a nested `mapping` with these less topology and shape, and
/// - `map(topology, tables)`: (table) a mapping each.
/// A policy that splits rows gives every shard all columns, and the other way round. A rank has at most one shard of a
/// table, and shards of rows are numbered in the order of their owners.
template <class S>
concept ShardingPolicy = requires {
    { S::name } -> std::convertible_to<std::string>;
    { S::splits } -> std::convertible_to<Splits>;
    requires Group<HomeOf<S>>;
}
&&(detail::MapsByShape<S> || MapsTogether<S>);

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
