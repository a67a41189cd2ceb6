// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <limits>

#include "shardwise/core/config.hpp"
#include "shardwise/sharding/policy.hpp"

/// \file
/// Tables split by row over all ranks.

namespace shardwise::inline SHARDWISE_ABI {

/// Rows are dealt cyclically over the ranks, starting at another rank for each table, so that neither the first rows of
/// a table sorted by frequency nor the first rows of all tables share a rank. Ids travel to the owners of their rows,
/// partial sums travel back.
struct Row : WholeColumns {
    static constexpr const char* name = "row";
    static constexpr Splits splits = Splits::rows;

    static constexpr int shards(const Topology& t, int) noexcept { return t.ranks(); }
    static constexpr int owner(const Topology&, int, int shard) noexcept { return shard; }
    static constexpr RowPlace place(std::int64_t row, const TableShape& table) noexcept {
        const std::int64_t local = quotient(row, table.shards);
        const int dealt = static_cast<int>(row - local * table.shards) + table.index % table.shards;
        return {.shard = dealt < table.shards ? dealt : dealt - table.shards, .local = local};
    }
    static constexpr std::int64_t row(const RowPlace& place, const TableShape& table) noexcept {
        return place.local * table.shards + first_row(place.shard, table);
    }
    static constexpr std::int64_t rows(int shard, const TableShape& table) noexcept {
        return (table.rows - first_row(shard, table) + table.shards - 1) / table.shards;
    }

  private:
    /// row / shards, in 32 bits where it fits: a Cascade Lake takes several times as long in 64.
    static constexpr std::int64_t quotient(std::int64_t row, int shards) noexcept {
        constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
        return row <= most ? static_cast<std::uint32_t>(row) / static_cast<std::uint32_t>(shards) : row / shards;
    }
    static constexpr int first_row(int shard, const TableShape& table) noexcept {
        return (shard - table.index % table.shards + table.shards) % table.shards;
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
