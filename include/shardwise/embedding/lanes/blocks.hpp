// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>

#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/prefetch.hpp"
#include "shardwise/embedding/kernels/lookup.hpp"

/// \file
/// What the lanes of ids and vectors hold: one block a (source, feature, shard), or behind a tower's module one a
/// (source, tower).

namespace shardwise::inline SHARDWISE_ABI::steps {

/// What a block of a lane is about. All but `n` is a function of placement, topology and plan; `n` is data.
struct Head {
    int source = 0;   ///< the rank whose samples these are
    int owner = 0;    ///< the rank that has their rows; behind a module, one of the tower
    int feature = 0;  ///< number in the placement; behind a module, the tower's
    int shard = 0;
    int dim = 0;         ///< columns of the shard
    std::int64_t n = 0;  ///< ids: bags; vectors: rows
};

/// The ids of one (source, feature, shard): those bags that have some (PlanPooling::every_bag: all of them).
struct IdBlock {
    Head head;
    std::int64_t ids = 0;
    const std::int32_t* lengths = nullptr;  ///< (n), or null: one id a bag, or no ids at all
    const LocalRow* rows = nullptr;         ///< (ids)
    const float* weights = nullptr;         ///< (ids), or null: each counts once
    const std::int32_t* samples = nullptr;  ///< (n): whose bags, ascending; null: one a sample, or nobody asks

    [[nodiscard]] std::int64_t length(std::int64_t bag) const noexcept {
        return lengths != nullptr ? lengths[bag] : (ids == 0 ? 0 : 1);
    }
};

/// What a block of vectors holds.
enum class VectorsAre : std::uint8_t {
    in_memory,   ///< at `data`
    bag_sums,    ///< sums of rows of a shard, one a bag, that nobody has looked up yet
    table_rows,  ///< rows of a shard, one an id
};

/// The vectors of one (source, feature, shard): n rows of `head.dim` elements, in memory or yet to be looked up. Who
/// reads them looks them up, straight to where it wants them, and within the call that ran the Lookup: behind it, rows
/// may change.
struct VectorBlock {
    Head head;
    const float* data = nullptr;  ///< in memory: rows, `stride` floats apart
    std::int64_t stride = 0;
    int words = 1;                          ///< floats a column: 2 where columns are doubles (PlanPooling::words)
    const std::int32_t* gather = nullptr;   ///< (n): in memory, row i is at gather[i] * stride; null: at i * stride
    const double* squares = nullptr;        ///< (n): of a gradient, the sum of squares of each row; null: not made
    const std::int32_t* samples = nullptr;  ///< (n): at home, whose the rows are, ascending; null: one a sample
    VectorsAre are = VectorsAre::in_memory;
    LookupArguments lookup;  ///< otherwise: how to look them up; `out` is the reader's

    /// Floats a row.
    [[nodiscard]] int width() const noexcept { return head.dim * words; }
    /// Row i of a block in memory.
    [[nodiscard]] const float* row(std::int64_t i) const noexcept {
        return data + (gather == nullptr ? i : gather[i]) * stride;
    }
    /// The rows are in memory, one behind the other.
    [[nodiscard]] bool is_dense() const noexcept {
        return are == VectorsAre::in_memory && stride == width() && gather == nullptr;
    }
    /// Row i of a block in memory or of rows of a shard; asks for one that will be read later.
    [[nodiscard]] const float* row_or_table_row(std::int64_t i) const noexcept {
        if (are == VectorsAre::in_memory) return row(i);
        const auto at = [this](std::int64_t k) {
            return lookup.table + static_cast<std::int64_t>(lookup.rows[k]) * lookup.dim;
        };
        const std::int64_t later = i + rows_ahead(lookup.dim);
        if (later < lookup.ids) prefetch(at(later), lookup.dim);
        return at(i);
    }
    /// Writes all rows, `to_stride` floats apart.
    void write(float* to, std::int64_t to_stride) const;
};

/// Writes all rows of a block of sums. A sum that a wire rounded to -0.0 is +0.0, as along every tree of sums.
void write_sums(const VectorBlock& block, const MatrixView<float>& out);

/// A block in memory whose rows follow each other.
[[nodiscard]] inline VectorBlock rows_in_memory(const Head& head, const float* data, int words = 1) noexcept {
    VectorBlock block;
    block.head = head;
    block.data = data;
    block.words = words;
    block.stride = block.width();
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

/// Reads a block of sums, in memory or to be looked up, from its first row on, some rows at a time.
class RowReader {
  public:
    explicit RowReader(const VectorBlock& block) : block_{block} {
        SHARDWISE_ASSERT(block.are != VectorsAre::table_rows);
    }

    /// Goes on to the next `count` rows; those that are not in memory are looked up into `tile` (count, dim).
    void next(std::int64_t count, float* tile);
    /// Row i of those.
    [[nodiscard]] const float* row(std::int64_t i) const noexcept {
        return block_.are == VectorsAre::in_memory ? block_.row(first_ + i) : block_.lookup.out + i * block_.head.dim;
    }

  private:
    VectorBlock block_;
    std::int64_t first_ = 0;
    std::int64_t next_ = 0;
};

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/lanes/blocks.ipp"
#endif
