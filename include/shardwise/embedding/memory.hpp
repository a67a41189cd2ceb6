// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// The memory reader: what tables and moments take, from the placement alone.

namespace shardwise::inline SHARDWISE_ABI {

/// The bytes that the shards of a placement take on one rank, with an optimizer of `element_slots` floats an element
/// and `row_slots` a row. A pure function; a layer's MemoryAccount counts as much.
[[nodiscard]] inline std::int64_t static_bytes(const Placement& placement, int rank, int element_slots, int row_slots) {
    std::size_t bytes = 0;
    for (const TablePlacement& table : placement.tables) {
        for (const ShardPlacement& shard : table.shards) {
            if (!placement.replicated && shard.owner != rank) continue;
            const auto rows = static_cast<std::size_t>(shard.rows) * sizeof(float);
            const auto elements = rows * static_cast<std::size_t>(shard.columns.count);
            bytes += buffer_capacity(elements) + buffer_capacity(elements * static_cast<std::size_t>(element_slots)) +
                     buffer_capacity(rows * static_cast<std::size_t>(row_slots));
        }
    }
    return static_cast<std::int64_t>(bytes);
}

}  // namespace shardwise::inline SHARDWISE_ABI
