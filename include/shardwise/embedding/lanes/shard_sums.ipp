// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>

#include "shardwise/core/at.hpp"
#include "shardwise/embedding/lanes/shard_sums.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

SHARDWISE_INLINE std::size_t parts_of_bags(const VectorBlock* first, const VectorBlock* end) {
    const VectorBlock* behind = first;
    while (behind != end && behind->head.source == first->head.source && behind->head.feature == first->head.feature)
        ++behind;
    return static_cast<std::size_t>(behind - first);
}

namespace detail {

/// Floats: a host's sum, and a tile.
SHARDWISE_INLINE std::int64_t room_for_sums(int dim, bool tile) {
    return dim + (tile ? tile_elements(dim) : 0);
}

}  // namespace detail

SHARDWISE_INLINE void ShardSums::prepare(const std::vector<VectorBlock>& lane, std::pmr::memory_resource& memory) {
    std::int64_t most = 0;
    const VectorBlock* const end = lane.data() + lane.size();
    for (const VectorBlock* first = lane.data(); first != end;) {
        const std::span<const VectorBlock> blocks{first, parts_of_bags(first, end)};
        first += blocks.size();
        const bool tile = std::any_of(blocks.begin(), blocks.end(),
                                      [](const VectorBlock& b) { return b.are != VectorsAre::in_memory; });
        if (blocks.size() > 1) most = std::max(most, detail::room_for_sums(blocks[0].head.dim, tile));
    }
    scratch_.on(memory).resize(static_cast<std::size_t>(most));
}

SHARDWISE_INLINE std::int64_t ShardSums::bytes(const std::vector<EmbeddingCost::Block>& lane) {
    std::int64_t most = 0;
    for (std::size_t first = 0; first < lane.size();) {
        bool tile = false;
        std::size_t end = first;
        for (; end < lane.size() && lane[end].head.source == lane[first].head.source &&
               lane[end].head.feature == lane[first].head.feature;
             ++end)
            tile |= !lane[end].looked_up;
        if (end - first > 1) most = std::max(most, detail::room_for_sums(lane[first].head.dim, tile));
        first = end;
    }
    return 4 * most;
}

SHARDWISE_INLINE void ShardSums::operator()(const Topology& topology, std::span<const VectorBlock> blocks,
                                            const MatrixView<float>& out) {
    const auto dim = static_cast<int>(out.columns());
    readers_.clear();
    for (const VectorBlock& block : blocks)
        readers_.emplace_back(block);
    const auto host_of = [&](std::size_t k) { return topology.host_of(blocks[k].head.owner); };
    float* const host = scratch_.data();
    const std::int64_t most = detail::tile_rows(dim);
    for (std::int64_t begin = 0; begin < out.rows(); begin += most) {
        const std::int64_t count = std::min(most, out.rows() - begin);
        for (detail::RowReader& reader : readers_)  // a rank has one shard of a table, so one needs the tile
            reader.next(count, host + dim);
        for (std::int64_t i = 0; i < count; ++i) {
            float* __restrict to = out.row(begin + i);
            std::fill_n(to, dim, 0.0F);
            for (std::size_t k = 0; k < blocks.size();) {
                const int here = host_of(k);
                std::fill_n(host, dim, 0.0F);
                for (; k < blocks.size() && host_of(k) == here; ++k) {
                    const float* __restrict part = readers_[k].row(i);
                    for (int d = 0; d < dim; ++d)
                        host[d] += part[d];
                }
                for (int d = 0; d < dim; ++d)
                    to[d] += host[d];
            }
        }
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
