// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lookup_kernel.hpp"
#include "shardwise/sharding/policy.hpp"

/// \file
/// What the lanes of ids and vectors hold: one block a (source, feature, shard).

namespace shardwise::inline SHARDWISE_ABI {

/// What a block of a lane is about. All but `n` is a function of placement, topology and plan; `n` is data.
struct Head {
    int source = 0;   ///< the rank whose samples these are
    int feature = 0;  ///< number in the placement
    int shard = 0;
    int dim = 0;         ///< columns of the shard
    std::int64_t n = 0;  ///< ids: bags; vectors: rows
};

/// The ids of one (source, feature, shard).
struct IdBlock {
    Head head;
    std::int64_t ids = 0;
    const std::int32_t* lengths = nullptr;  ///< (n), or null: one id a bag, or no ids at all
    const LocalRow* rows = nullptr;         ///< (ids)
    const float* weights = nullptr;         ///< (ids), or null: each counts once

    [[nodiscard]] std::int64_t length(std::int64_t bag) const noexcept {
        return lengths != nullptr ? lengths[bag] : (ids == 0 ? 0 : 1);
    }
};

/// Where the rows of a block of vectors are.
enum class RowsAre : std::uint8_t {
    in_memory,   ///< at `data`
    bag_sums,    ///< sums of rows of a shard, one a bag, that nobody has looked up yet
    table_rows,  ///< rows of a shard, one an id
};

/// The vectors of one (source, feature, shard): n rows of `head.dim` elements, in memory or yet to be looked up. Who
/// reads them looks them up, straight to where it wants them, and within the call that ran the Lookup: behind it, rows
/// may change.
struct VectorBlock {
    Head head;
    const float* data = nullptr;  ///< in memory: rows, `stride` elements apart
    std::int64_t stride = 0;
    RowsAre rows = RowsAre::in_memory;
    LookupArguments lookup;  ///< otherwise: how to look them up; `out` is the reader's

    /// Row i of a block in memory.
    [[nodiscard]] const float* row(std::int64_t i) const noexcept { return data + i * stride; }
    /// Row i of a block in memory or of rows of a shard; asks for one that will be read later.
    [[nodiscard]] const float* row_or_table_row(std::int64_t i) const noexcept {
        if (rows == RowsAre::in_memory) return row(i);
        const auto at = [this](std::int64_t k) {
            return lookup.table + static_cast<std::int64_t>(lookup.rows[k]) * lookup.dim;
        };
        const std::int64_t later = i + rows_ahead(lookup.dim);
        if (later < lookup.ids) prefetch(at(later), lookup.dim);
        return at(i);
    }
    /// Writes all rows, `to_stride` elements apart.
    void write(float* to, std::int64_t to_stride) const {
        LookupArguments a = lookup;
        a.out = to;
        switch (rows) {
            case RowsAre::in_memory:
                for (std::int64_t i = 0; i < head.n; ++i)
                    std::copy_n(row(i), head.dim, to + i * to_stride);
                break;
            case RowsAre::bag_sums:
                pooled_lookup(a, to_stride);
                break;
            case RowsAre::table_rows:
                gather_rows(a, to_stride);
                break;
        }
    }
};

/// A block in memory whose rows follow each other.
[[nodiscard]] inline VectorBlock rows_in_memory(const Head& head, const float* data) noexcept {
    VectorBlock block;
    block.head = head;
    block.data = data;
    block.stride = head.dim;
    return block;
}

namespace detail {

/// Rows that are looked up at a time where they do not stay: 8 KiB, which the first cache keeps.
[[nodiscard]] constexpr std::int64_t tile_rows(int dim) noexcept {
    return std::max(1, 2048 / std::max(dim, 1));
}
[[nodiscard]] constexpr std::int64_t tile_elements(int dim) noexcept {
    return tile_rows(dim) * dim;
}

/// Reads a block from its first row on, some rows at a time.
class RowReader {
  public:
    explicit RowReader(const VectorBlock& block) : block_{block} {}

    /// Goes on to the next `count` rows; those that are not in memory are looked up into `tile` (count, dim).
    void next(std::int64_t count, float* tile) {
        const int dim = block_.head.dim;
        LookupArguments& a = block_.lookup;
        switch (block_.rows) {
            case RowsAre::in_memory:
                at_ = block_.data;
                stride_ = block_.stride;
                if (at_ != nullptr) block_.data += count * stride_;
                return;
            case RowsAre::bag_sums:
                a.bags = count;
                a.out = tile;
                pooled_lookup(a);
                if (a.lengths != nullptr) {
                    pass(std::accumulate(a.lengths, a.lengths + count, std::int64_t{0}));
                    a.lengths += count;
                } else if (a.ids != 0) {
                    pass(count);
                }
                break;
            case RowsAre::table_rows: {
                LookupArguments some = a;
                some.ids = count;
                some.out = tile;
                gather_rows(some);
                pass(count);
                break;
            }
        }
        at_ = tile;
        stride_ = dim;
    }
    /// Row i of those.
    [[nodiscard]] const float* row(std::int64_t i) const noexcept { return at_ + i * stride_; }

  private:
    void pass(std::int64_t ids) {
        LookupArguments& a = block_.lookup;
        if (a.rows != nullptr) a.rows += ids;
        if (a.weights != nullptr) a.weights += ids;
        a.ids -= ids;
    }

    VectorBlock block_;
    const float* at_ = nullptr;
    std::int64_t stride_ = 0;
};

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
