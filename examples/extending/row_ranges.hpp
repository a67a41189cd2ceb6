// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "shardwise/sharding/policy.hpp"

/// \file
/// A sharding policy of the user's own: a few pure functions, outside of the library.

namespace extending {

/// Neighbouring rows stay together: shard s of S has the rows from n * s / S on, of n. Good where ids that are looked
/// up together are neighbours; bad where the first rows are the hot ones.
struct RowRanges : shardwise::WholeColumns {
    using TableShape = shardwise::TableShape;
    static constexpr const char* name = "row_ranges";
    static constexpr shardwise::Splits splits = shardwise::Splits::rows;

    static constexpr int shards(const shardwise::Topology& t, int) noexcept { return t.ranks(); }
    static constexpr int owner(const shardwise::Topology&, int, int shard) noexcept { return shard; }
    static constexpr shardwise::RowPlace place(std::int64_t row, const TableShape& table) noexcept {
        const int shard = static_cast<int>(((row + 1) * table.shards - 1) / table.rows);
        return {.shard = shard, .local = row - first(shard, table)};
    }
    static constexpr std::int64_t row(const shardwise::RowPlace& place, const TableShape& table) noexcept {
        return first(place.shard, table) + place.local;
    }
    static constexpr std::int64_t rows(int shard, const TableShape& table) noexcept {
        return first(shard + 1, table) - first(shard, table);
    }

  private:
    static constexpr std::int64_t first(int shard, const TableShape& table) noexcept {
        return table.rows * shard / table.shards;
    }
};
static_assert(shardwise::ShardingPolicy<RowRanges>);

}  // namespace extending
