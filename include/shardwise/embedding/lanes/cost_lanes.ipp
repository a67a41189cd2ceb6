// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>

#include "shardwise/embedding/lanes/cost_lanes.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

SHARDWISE_INLINE std::size_t EmbeddingCost::key_of(int table) const {
    for (const FeaturePlacement& feature : placement->features)
        if (feature.table == table) return static_cast<std::size_t>(feature.first_block);
    return 0;
}

SHARDWISE_INLINE int EmbeddingCost::widest(int rank) const {
    int most = 0;
    for_shards(rank,
               [&](std::size_t, int, const ShardPlacement& shard) { most = std::max(most, shard.columns.count); });
    return most;
}

SHARDWISE_INLINE std::int64_t EmbeddingCost::vector_rows(int rank) const {
    std::int64_t rows = 0;
    for (const Block& block : at(vectors, rank))
        rows += block.head.n;
    return rows;
}

SHARDWISE_INLINE std::int64_t EmbeddingCost::elements(const std::vector<Block>& blocks) {
    std::int64_t elements = 0;
    for (const Block& block : blocks)
        elements += block.head.n * block.head.dim;
    return elements;
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
