// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shardwise/core/config.hpp"
#include "shardwise/core/prefetch.hpp"
#include "shardwise/embedding/kernels/columns.hpp"
#include "shardwise/embedding/kernels/row_set.hpp"

/// \file
/// Gradients that rows will read again and again, copied to one place.

namespace shardwise::inline SHARDWISE_ABI {

/// A copy pays off where rows with several keys read a gradient as often as this.
inline constexpr std::int64_t reads_worth_a_copy = 4;

inline constexpr std::int64_t most_block_sums_ever = 1024;  ///< rows of a set, see most_block_sums()
/// Of so many rows at most a set of `count` gradients of `dim` columns has sums in its room (BlockSums): twice as many
/// as skewed ids need (about 230 of 512, for 8192 bags of 100 Zipf ids and 128 columns), in three sixteenths of what
/// the copies take. None of narrow rows, whose gradients are read as fast out of the second cache as a sum goes on with
/// another block.
[[nodiscard]] constexpr std::int64_t most_block_sums(std::int64_t count, int dim) noexcept {
    return dim < 64 ? 0 : std::min(count / 16, most_block_sums_ever);
}

/// Elements of the room for copies of `count` gradients of `dim` columns that `keys` read, and for three sums of each
/// of most_block_sums() rows. How many of the keys are of rows with several is not foreseen: there is room for all
/// gradients from four keys each on, none up to two, and a part between, though nothing is copied there, so that what
/// is expected of batches that differ has no jump.
[[nodiscard]] constexpr std::int64_t room_to_pack(std::int64_t count, std::int64_t keys, int dim) noexcept {
    constexpr std::int64_t none = reads_worth_a_copy / 2;
    const std::int64_t copies = std::clamp<std::int64_t>((keys - none * count) / (reads_worth_a_copy - none), 0, count);
    return dim * (copies + 3 * most_block_sums(copies, dim));
}
/// The same of a set; 0 where its gradients are doubles.
[[nodiscard]] inline std::int64_t room_to_pack(const RowSet& set) noexcept {
    return set.wide ? 0 : room_to_pack(set.contributions.count, set.singles + set.several_keys(), set.dim);
}

/// Whether a set has room for copies of its gradients (a set of doubles has none), and rows with several keys read them
/// often enough.
[[nodiscard]] inline bool worth_copies(const RowSet& set) noexcept {
    return set.room != nullptr && set.several_keys() >= reads_worth_a_copy * set.contributions.count;
}

namespace detail {

/// Copies gradients [first, end) to the set's room. \returns whether all have the weight 1; else the rest are not
/// copied
[[nodiscard]] inline bool copy_gradients(const RowSet& set, std::int64_t first, std::int64_t end) {
    const Contributions from = set.contributions;
    const std::int64_t ahead = rows_ahead(set.dim);
    float* to = set.room + first * set.dim;
    for (std::int64_t number = first; number < end; ++number) {
        if (number + ahead < from.count) from.prefetch(static_cast<std::uint64_t>(number + ahead), set.dim);
        const Contribution c = from[static_cast<std::uint64_t>(number)];
        if (c.weight != 1.0F) return false;
        const auto* const gradient = c.terms<float>();
        for_columns(set.dim, [=](int column, auto columns) {
            std::memcpy(to + column, gradient + column, static_cast<std::size_t>(columns) * sizeof(float));
        });
        to += set.dim;
    }
    return true;
}

}  // namespace detail

/// The set, with its gradients in its room one after the other where that is worth it: they lie a row of the whole
/// gradient matrix apart, or in messages of several ranks. Reads and writes each gradient once, count * dim * 8 bytes.
/// Not where they stand so already, or one has a weight other than 1; changes no bit of a sum.
/// \param block  how many are copied together \param use  use(packed, end) is called behind each block, which ends
/// before the number `end`, while it is in the nearest caches; also where all stand so already. Where the set is
/// returned as it was, it may have been called for some blocks or none
template <class Use>
[[nodiscard]] RowSet pack_gradients(const RowSet& set, std::int64_t block, Use use) {
    if (!worth_copies(set)) return set;
    const std::int64_t count = set.contributions.count;
    const bool stand = set.contributions.even != nullptr && set.contributions.stride == set.dim;
    RowSet packed = set;
    if (!stand) packed.contributions.even = set.room;
    packed.contributions.stride = set.dim;
    for (std::int64_t first = 0; first < count;) {
        const std::int64_t end = std::min(first + block, count);
        if (!stand && !detail::copy_gradients(set, first, end)) return set;
        use(packed, end);
        first = end;
    }
    return packed;
}

}  // namespace shardwise::inline SHARDWISE_ABI
