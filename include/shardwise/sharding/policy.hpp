// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

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

/// A sharding policy. Every function is pure, so that all ranks and all readers agree:
/// - `shards(topology, dim)`: into how many shards a table of `dim` columns is cut; a shard may be empty;
/// - `owner(topology, source, table, shard)`: the rank that answers the requests of rank `source`; independent of
///   `source` unless the policy is `replicated`;
/// - `place(row, shards, table)` and `row(place, shards, table)`: a bijection of rows and places;
/// - `rows(rows, shard, shards, table)`: how many rows of a table of `rows` rows the shard has;
/// - `columns(dim, shard, shards)`: which columns it has.
/// A policy that splits rows gives every shard all columns, and the other way round.
template <class S>
concept ShardingPolicy = requires(const Topology& t, std::int64_t rows, int n, const RowPlace& place) {
    { S::name } -> std::convertible_to<std::string>;
    { S::splits } -> std::convertible_to<Splits>;
    { S::replicated } -> std::convertible_to<bool>;
    { S::shards(t, n) } -> std::same_as<int>;
    { S::owner(t, n, n, n) } -> std::same_as<int>;
    { S::place(rows, n, n) } -> std::same_as<RowPlace>;
    { S::row(place, n, n) } -> std::same_as<std::int64_t>;
    { S::rows(rows, n, n, n) } -> std::same_as<std::int64_t>;
    { S::columns(n, n, n) } -> std::same_as<Columns>;
};

/// The parts of a policy that does not split rows.
struct WholeRows {
    static constexpr RowPlace place(std::int64_t row, int, int) noexcept { return {.shard = 0, .local = row}; }
    static constexpr std::int64_t row(const RowPlace& place, int, int) noexcept { return place.local; }
    static constexpr std::int64_t rows(std::int64_t rows, int, int, int) noexcept { return rows; }
};

/// The part of a policy that does not split columns.
struct WholeColumns {
    static constexpr Columns columns(int dim, int, int) noexcept { return {.first = 0, .count = dim}; }
};

}  // namespace shardwise::inline SHARDWISE_ABI
