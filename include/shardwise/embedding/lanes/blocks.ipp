// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <numeric>

#include "shardwise/embedding/lanes/blocks.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

SHARDWISE_INLINE void VectorBlock::write(float* to, std::int64_t to_stride) const {
    LookupArguments a = lookup;
    a.out = to;
    switch (are) {
        case VectorsAre::in_memory:
            if (is_dense() && to_stride == width()) {
                std::copy_n(data, head.n * stride, to);
                break;
            }
            for (std::int64_t i = 0, ahead = rows_ahead(width()); i < head.n; ++i) {
                if (i + ahead < head.n) prefetch(row(i + ahead), width());
                std::copy_n(row(i), width(), to + i * to_stride);
            }
            break;
        case VectorsAre::bag_sums:
            pooled_lookup(a, to_stride);
            break;
        case VectorsAre::table_rows:
            gather_rows(a, to_stride);
            break;
    }
}

SHARDWISE_INLINE void write_sums(const VectorBlock& block, const MatrixView<float>& out) {
    SHARDWISE_ASSERT(block.head.n == out.rows());
    if (block.are != VectorsAre::in_memory) return block.write(out.data(), out.stride());
    const int columns = block.head.dim;
    const std::int64_t ahead = rows_ahead(columns) / 2;  // half, as of sums of one id (lookup_ahead)
    for (std::int64_t i = 0; i < out.rows(); ++i) {
        if (i + ahead < out.rows()) prefetch(out.row(i + ahead), columns);  // a stride apart: a core does not see ahead
        const float* __restrict from = block.row(i);
        float* __restrict to = out.row(i);
        for (std::int64_t d = 0; d < out.columns(); ++d)
            to[d] = 0.0F + from[d];
    }
}

SHARDWISE_INLINE void detail::RowReader::next(std::int64_t count, float* tile) {
    first_ = next_;
    next_ += count;
    if (block_.are == VectorsAre::in_memory) return;
    LookupArguments& a = block_.lookup;
    a.bags = count;
    a.out = tile;
    pooled_lookup(a);
    const std::int64_t ids = a.lengths != nullptr ? std::accumulate(a.lengths, a.lengths + count, std::int64_t{0})
                                                  : std::min(count, a.ids);  // one a bag, or none at all
    if (a.lengths != nullptr) a.lengths += count;
    if (a.weights != nullptr) a.weights += ids;
    if (ids != 0) a.rows += ids;
    a.ids -= ids;
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
