// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/config.hpp"
#include "shardwise/sharding/policy.hpp"

/// \file
/// Tables split by column over all ranks.

namespace shardwise::inline SHARDWISE_ABI {

/// Every rank holds an equally wide block of columns of every row (widths differ by at most one; with fewer columns
/// than ranks there is one column a shard). Every rank gets all ids, and sends its columns back.
struct Col : WholeRows {
    static constexpr const char* name = "col";
    static constexpr Splits splits = Splits::columns;
    static constexpr bool replicated = false;

    static constexpr int shards(const Topology& t, int dim) noexcept { return dim < t.ranks() ? dim : t.ranks(); }
    static constexpr int owner(const Topology& t, int, int table, int shard) noexcept {
        return (shard + table) % t.ranks();
    }
    static constexpr Columns columns(int shard, const TableShape& table) noexcept {
        const int first = static_cast<int>(static_cast<std::int64_t>(table.dim) * shard / table.shards);
        const int end = static_cast<int>(static_cast<std::int64_t>(table.dim) * (shard + 1) / table.shards);
        return {.first = first, .count = end - first};
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
