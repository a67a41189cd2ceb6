// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/kernels/row_set.hpp"
#include "shardwise/embedding/tables/held_shards.hpp"

/// \file
/// Which of a rank's rows were updated.

namespace shardwise::inline SHARDWISE_ABI {

/// A bit for each row of the shards of a placement on one rank: set by updates, until it is cleared. Without memory for
/// it, none is kept.
class TouchedMarks {
  public:
    static constexpr const char* state_name = "TouchedMarks";

    /// Keeps marks from now on.
    void keep(const HeldShards& held, std::pmr::memory_resource& memory) {
        for (const HeldShards::Shard& shard : held.shards)
            words_.emplace_back(memory).assign_zero(words_of(shard.rows));
    }
    void mark(const RowSet& set) {
        if (words_.empty()) return;
        std::uint64_t* const words = at(words_, set.slot).data();
        for (std::int64_t i = 0; i < set.touched(); ++i) {
            const LocalRow row = set.terms(i).row;
            words[row / 64] |= std::uint64_t{1} << row % 64;
        }
    }
    /// Calls use(row) for each marked row of a slot, ascending.
    template <class Use>
    void for_each(int slot, Use use) const {
        const Buffer<std::uint64_t>& words = at(words_, slot);
        for (std::size_t w = 0; w < words.size(); ++w)
            for (std::uint64_t left = words[w]; left != 0; left &= left - 1)
                use(static_cast<LocalRow>(64 * w + static_cast<std::size_t>(std::countr_zero(left))));
    }
    [[nodiscard]] std::int64_t count(int slot) const {
        std::int64_t rows = 0;
        for (const std::uint64_t word : at(words_, slot).span())
            rows += std::popcount(word);
        return rows;
    }
    void clear(int slot) {
        Buffer<std::uint64_t>& words = at(words_, slot);
        words.assign_zero(words.size());
    }

    /// What the marks of a placement's shards take on a rank, in bytes.
    [[nodiscard]] static std::int64_t bytes(const HeldShards& held) {
        std::size_t bytes = 0;
        for (const HeldShards::Shard& shard : held.shards)
            bytes += buffer_capacity(8 * words_of(shard.rows));
        return static_cast<std::int64_t>(bytes);
    }

  private:
    static std::size_t words_of(std::int64_t rows) { return (static_cast<std::size_t>(rows) + 63) / 64; }

    std::vector<Buffer<std::uint64_t>> words_;  // (slot)
};

}  // namespace shardwise::inline SHARDWISE_ABI
