// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/embedding/lanes.hpp"
#include "shardwise/plan/memory.hpp"

/// \file
/// Gradients by row: grouping contributions by row.

namespace shardwise::inline SHARDWISE_ABI {

/// The memory of one RowSet, and the way to it. Most rows of a batch have one contribution: a filter of two bits a row
/// tells them from the others, and only the others are sorted.
struct RowGroups {
    Buffer<LocalRow> rows;               // by number
    Buffer<Contribution> contributions;  // by number
    Buffer<std::uint64_t> filter;        // 2 bits a slot: 0, 1 or more contributions
    Buffer<std::uint32_t> single;
    Buffer<std::uint64_t> keys;  // row << 32 | number
    Buffer<std::uint64_t> spare;

    RowGroups& on(std::pmr::memory_resource& memory) {
        rows.on(memory);
        contributions.on(memory);
        filter.on(memory);
        single.on(memory);
        keys.on(memory);
        spare.on(memory);
        return *this;
    }
    /// Makes room for `count` contributions; `put` each, then group. \throws BadInput for more than
    /// a 32-bit number can count
    void resize(std::int64_t count) {
        if (count > std::numeric_limits<std::uint32_t>::max())
            throw BadInput{"the batch has " + std::to_string(count) +
                           " ids of one shard, and at most 4294967295 fit: give smaller batches"};
        const auto size = static_cast<std::size_t>(count);
        rows.resize(size);
        contributions.resize(size);
        single.resize(size);
        keys.resize(size);
        spare.resize(size);
    }
    /// What the buffers need for `count` contributions to a shard of `rows_in_shard` rows.
    static void tally(std::int64_t count, std::int64_t rows_in_shard, MemoryTally& tally) {
        tally.need(count * static_cast<std::int64_t>(sizeof(LocalRow)));
        tally.need(count * static_cast<std::int64_t>(sizeof(Contribution)));
        tally.need(8 * Filter{count, rows_in_shard}.words());
        tally.need(count * static_cast<std::int64_t>(sizeof(std::uint32_t)));
        for (int i = 0; i < 2; ++i)
            tally.need(count * static_cast<std::int64_t>(sizeof(std::uint64_t)));
    }
    void put(std::int64_t number, LocalRow row, const Contribution& contribution) {
        rows[static_cast<std::size_t>(number)] = row;
        contributions[static_cast<std::size_t>(number)] = contribution;
    }

    /// Tells rows with one contribution from those with several, and sorts those by row, then number. Two passes over
    /// the rows, and a radix sort.
    [[nodiscard]] RowSet group(int slot, int dim, std::int64_t rows_in_shard) {
        const std::size_t size = rows.size();
        const Filter slots{static_cast<std::int64_t>(size), rows_in_shard};
        filter.assign_zero(static_cast<std::size_t>(slots.words()));
        for (const LocalRow row : rows.span()) {
            const std::uint64_t at = slots.of(row);
            std::uint64_t& word = filter[at / 32];
            const unsigned shift = at % 32 * 2;
            const std::uint64_t seen = word >> shift & 3U;
            word += std::uint64_t{seen < 2} << shift;
        }
        std::size_t singles = 0;
        std::size_t several = 0;
        for (std::size_t number = 0; number < size; ++number) {  // both lists are written, one of them goes on
            const LocalRow row = rows[number];
            const std::uint64_t at = slots.of(row);
            const bool alone = (filter[at / 32] >> at % 32 * 2 & 3U) == 1;
            single[singles] = static_cast<std::uint32_t>(number);
            keys[several] = static_cast<std::uint64_t>(row) << 32U | number;
            singles += alone ? 1U : 0U;
            several += alone ? 0U : 1U;
        }
        sort(several, rows_in_shard);
        return {.slot = slot,
                .dim = dim,
                .rows = rows.data(),
                .contributions = contributions.data(),
                .singles = static_cast<std::int64_t>(singles),
                .single = single.data(),
                .count = static_cast<std::int64_t>(several),
                .keys = keys.data()};
    }

  private:
    /// Where a row's two bits are: a slot a row, or, where that were more than 8 slots a contribution, a slot by hash.
    /// Rows that share a slot count as rows with several contributions, which changes no bit.
    class Filter {
      public:
        Filter(std::int64_t contributions, std::int64_t rows)
            : slots_{std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(8 * contributions, 32)))} {
            hashed_ = slots_ < static_cast<std::uint64_t>(rows);
            if (!hashed_) slots_ = static_cast<std::uint64_t>(std::max<std::int64_t>(rows, 1));
            shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots_));
        }
        [[nodiscard]] std::int64_t words() const { return static_cast<std::int64_t>((slots_ + 31) / 32); }
        [[nodiscard]] std::uint64_t of(LocalRow row) const {
            return hashed_ ? (row * 0x9e3779b97f4a7c15U) >> shift_ : row;
        }

      private:
        std::uint64_t slots_;
        unsigned shift_;
        bool hashed_;
    };

    void sort(std::size_t count, std::int64_t rows_in_shard) {
        constexpr std::size_t few = 256;  // below, a radix sort is busy with its counters
        if (count < few) {
            std::sort(keys.data(), keys.data() + count);
        } else {
            radix_sort(count, rows_in_shard);
        }
    }
    /// From the lowest digit of the row on, stable; numbers ascend already. As few digits of at most 11 bits as the
    /// rows need, all counted in one pass.
    void radix_sort(std::size_t count, std::int64_t rows_in_shard) {
        constexpr unsigned most_bits = 11;
        constexpr unsigned most_digits = 3;
        const auto bits = static_cast<unsigned>(
            std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(rows_in_shard, 1) - 1)));
        const unsigned digits = (bits + most_bits - 1) / most_bits;
        if (digits == 0) return;
        const unsigned width = (bits + digits - 1) / digits;
        const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
        std::array<std::array<std::uint32_t, std::size_t{1} << most_bits>, most_digits> offsets;
        for (unsigned digit = 0; digit < digits; ++digit)
            std::fill_n(offsets[digit].data(), mask + 1, 0U);
        for (std::size_t i = 0; i < count; ++i)
            for (unsigned digit = 0; digit < digits; ++digit)
                ++offsets[digit][keys[i] >> (32U + digit * width) & mask];
        for (unsigned digit = 0; digit < digits; ++digit) {
            auto& offset = offsets[digit];
            std::uint32_t sum = 0;
            for (std::size_t bucket = 0; bucket <= mask; ++bucket)
                sum += std::exchange(offset[bucket], sum);
            const std::uint64_t* from = keys.data();
            std::uint64_t* to = spare.data();
            for (const std::uint64_t* const end = from + count; from != end; ++from)
                to[offset[*from >> (32U + digit * width) & mask]++] = *from;
            keys.swap(spare);
        }
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
