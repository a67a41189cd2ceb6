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

/// Elements of the room for copies of `count` gradients of `dim` columns that `keys` read. How many of the keys are of
/// rows with several is not foreseen: there is room for all gradients from four keys each on, none up to two, and a
/// part between, though nothing is copied there, so that what is expected of batches that differ has no jump.
[[nodiscard]] constexpr std::int64_t room_to_pack(std::int64_t count, std::int64_t keys, int dim) noexcept {
    constexpr std::int64_t none = reads_worth_a_copy / 2;
    return dim * std::clamp<std::int64_t>((keys - none * count) / (reads_worth_a_copy - none), 0, count);
}
/// The same of a set; 0 where its gradients are doubles.
[[nodiscard]] inline std::int64_t room_to_pack(const RowSet& set) noexcept {
    return set.wide ? 0 : room_to_pack(set.contributions.count, set.singles + set.several_keys(), set.dim);
}

/// The set, with its gradients in its room one after the other, if it has one (a set of doubles has none) and rows with
/// several keys read them often enough: they lie a row of the whole gradient matrix apart, or in messages of several
/// ranks. Reads and writes each gradient once, count * dim * 8 bytes. Not where they stand so already, or one has a
/// weight other than 1; changes no bit of a sum.
[[nodiscard]] inline RowSet pack_gradients(const RowSet& set) {
    const Contributions from = set.contributions;
    const auto count = static_cast<std::uint64_t>(from.count);
    if (set.room == nullptr || set.several_keys() < reads_worth_a_copy * from.count) return set;
    if (from.even != nullptr && from.stride == set.dim) return set;
    const auto ahead = static_cast<std::uint64_t>(rows_ahead(set.dim));
    float* to = set.room;
    for (std::uint64_t number = 0; number < count; ++number) {
        if (number + ahead < count) from.prefetch(number + ahead, set.dim);
        const Contribution c = from[number];
        if (c.weight != 1.0F) return set;
        const auto* const gradient = c.terms<float>();
        detail::for_columns(set.dim, [=](int first, auto columns) {
            std::memcpy(to + first, gradient + first, static_cast<std::size_t>(columns) * sizeof(float));
        });
        to += set.dim;
    }
    RowSet packed = set;
    packed.contributions.even = set.room;
    packed.contributions.stride = set.dim;
    return packed;
}

}  // namespace shardwise::inline SHARDWISE_ABI
