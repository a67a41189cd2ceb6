// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/kernels/contributions.hpp"
#include "shardwise/sharding/policy.hpp"

/// \file
/// The rows that a batch touched, and what contributes to each.

namespace shardwise::inline SHARDWISE_ABI {

/// The gradient of one touched row: keys [first, end), of `single` or of `keys`.
struct RowTerms {
    LocalRow row = 0;
    std::int64_t first = 0;
    std::int64_t end = 0;
    bool several = false;  ///< they are among `keys`
};

/// The touched rows of one shard, each once, and what contributes to them. Contributions are numbered in the order of
/// source, sample, feature and id; one that is the same for several ids of a bag has one number. A key is
/// row << 32 | number. Rows with one key come first, in the order of their numbers; the others ascend.
struct RowSet {
    int slot = 0;                 ///< number of the shard in the store
    int dim = 0;                  ///< columns of the shard
    Contributions contributions;  ///< by number
    std::int64_t singles = 0;
    const std::uint64_t* single = nullptr;  ///< (singles): keys, ascending by number
    std::int64_t several = 0;
    const std::uint32_t* first = nullptr;     ///< (several + 1): where the keys of each of these rows begin
    const std::uint64_t* keys = nullptr;      ///< (first[several]), ascending
    const double* sums_of_squares = nullptr;  ///< (touched rows), of whole rows; null: each shard's own
    bool wide = false;                        ///< contributions are doubles
    bool changed = false;                     ///< as the table's settings say, by a step before the update
    float* room = nullptr;                    ///< room_to_pack elements: copies of all gradients, sums; or null

    [[nodiscard]] static LocalRow row(std::uint64_t key) noexcept { return static_cast<LocalRow>(key >> 32U); }
    [[nodiscard]] static std::uint64_t number(std::uint64_t key) noexcept { return key & 0xffffffffU; }
    /// What the k-th of `keys` stands for.
    [[nodiscard]] Contribution sorted(std::int64_t k) const noexcept { return contributions[number(keys[k])]; }
    [[nodiscard]] std::int64_t touched() const noexcept { return singles + several; }
    /// Keys of rows with several.
    [[nodiscard]] std::int64_t several_keys() const noexcept { return several == 0 ? 0 : first[several]; }
    /// Asks for what a number stands for, of so many columns, which will be read soon.
    [[gnu::always_inline]] inline void prefetch_terms(std::uint64_t number, int columns) const {
        contributions.prefetch(number, wide ? 2 * columns : columns);
    }
    /// The i-th touched row.
    [[nodiscard]] RowTerms terms(std::int64_t i) const noexcept {
        if (i < singles) return {.row = row(single[i]), .first = i, .end = i + 1, .several = false};
        const std::uint32_t* at = first + (i - singles);
        return {.row = row(keys[at[0]]), .first = at[0], .end = at[1], .several = true};
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
