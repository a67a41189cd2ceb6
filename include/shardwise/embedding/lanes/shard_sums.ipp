// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>

#include "shardwise/core/at.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/shard_sums.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

SHARDWISE_INLINE std::size_t parts_of_bags(const VectorBlock* first, const VectorBlock* end) {
    const VectorBlock* behind = first;
    while (behind != end && behind->head.source == first->head.source && behind->head.feature == first->head.feature)
        ++behind;
    return static_cast<std::size_t>(behind - first);
}

SHARDWISE_INLINE void ShardSums::prepare(const std::vector<VectorBlock>& lane, bool summed,
                                         std::pmr::memory_resource& memory) {
    std::int64_t most = 0;
    const VectorBlock* const end = lane.data() + lane.size();
    for (const VectorBlock* first = lane.data(); first != end;) {
        const std::span<const VectorBlock> blocks{first, parts_of_bags(first, end)};
        first += blocks.size();
        for (const VectorBlock& block : blocks)
            if ((summed && blocks.size() > 1) || block.samples != nullptr)
                most = std::max(most, detail::room_for_sums(block.head.dim, block.are != VectorsAre::in_memory));
    }
    scratch_.on(memory).resize(static_cast<std::size_t>(most));
}

SHARDWISE_INLINE void ShardSums::Part::read_until(std::int64_t end, std::int64_t count, float* tile) {
    if (samples != nullptr) count = std::lower_bound(samples + row, samples + n, end) - (samples + row);
    read = row;
    reader.next(count, tile);
}

SHARDWISE_INLINE void ShardSums::operator()(const Topology& topology, std::span<const VectorBlock> blocks,
                                            const MatrixView<float>& out) {
    const auto dim = static_cast<int>(out.columns());
    parts_.clear();
    for (const VectorBlock& block : blocks) {
        SHARDWISE_ASSERT(block.samples != nullptr || block.head.n == out.rows());
        parts_.push_back({.reader = detail::RowReader{block},
                          .host = topology.host_of(block.head.owner),
                          .samples = block.samples,
                          .n = block.head.n});
    }
    // A first term is added to +0.0, too: no sum is -0.0.
    const auto add = [dim](float* __restrict to, const float* __restrict term, bool first) {
        if (first)
            for (int d = 0; d < dim; ++d)
                to[d] = 0.0F + term[d];
        else
            for (int d = 0; d < dim; ++d)
                to[d] += term[d];
    };
    float* const host = scratch_.data();
    const std::int64_t most = detail::tile_rows(dim);
    for (std::int64_t begin = 0; begin < out.rows(); begin += most) {
        const std::int64_t end = std::min(begin + most, out.rows());
        for (Part& part : parts_)  // a rank has one shard of a table, so one needs the tile
            part.read_until(end, end - begin, host + dim);
        for (std::int64_t sample = begin; sample < end; ++sample) {
            float* const to = out.row(sample);
            bool none = true;
            for (std::size_t k = 0; k < parts_.size();) {
                const int here = parts_[k].host;
                bool none_here = true;
                for (; k < parts_.size() && parts_[k].host == here; ++k) {
                    if (!parts_[k].has(sample)) continue;
                    add(host, parts_[k].next(), none_here);
                    none_here = false;
                }
                if (none_here) continue;
                add(to, host, none);
                none = false;
            }
            if (none) std::fill_n(to, dim, 0.0F);
        }
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
