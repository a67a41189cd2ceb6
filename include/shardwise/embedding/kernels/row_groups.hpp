// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/kernels/row_set.hpp"
#include "shardwise/plan/memory.hpp"

/// \file
/// Gradients by row: grouping contributions by row.

namespace shardwise::inline SHARDWISE_ABI {

/// The memory of one RowSet, and the way to it. Most rows of a batch have one key: a filter of two bits a row
/// tells them from the others, and only the others are sorted.
struct RowGroups {
    Buffer<Contribution> contributions;  // by number
    Buffer<std::uint64_t> filter;        // 2 bits a slot: 0, 1 or more keys
    Buffer<std::uint64_t> keys;          // row << 32 | number: of rows with one key from the front, others behind
    Buffer<std::uint64_t> spare;
    Buffer<std::uint32_t> first;  // of rows with several keys

    RowGroups& on(std::pmr::memory_resource& memory) {
        contributions.on(memory);
        filter.on(memory);
        keys.on(memory);
        spare.on(memory);
        first.on(memory);
        return *this;
    }
    /// Makes room for `count` contributions, to be filled before `group`. \throws BadInput for more than a 32-bit
    /// number can count
    Buffer<Contribution>& resize(std::int64_t count) {
        check(count);
        contributions.resize(static_cast<std::size_t>(count));
        return contributions;
    }
    /// What the buffers need for `ids` keys of `count` contributions to a shard of `rows_in_shard` rows.
    static void tally(std::int64_t count, std::int64_t ids, std::int64_t rows_in_shard, MemoryTally& tally) {
        tally.need(count * static_cast<std::int64_t>(sizeof(Contribution)));
        tally.need(8 * Filter{ids, rows_in_shard}.words());
        for (int i = 0; i < 2; ++i)
            tally.need(ids * static_cast<std::int64_t>(sizeof(std::uint64_t)));
        tally.need((ids + 1) * static_cast<std::int64_t>(sizeof(std::uint32_t)));
    }

    /// Tells rows with one key from those with several, and sorts those by row, then number. Two passes over the ids,
    /// and a radix sort. \throws BadInput for more ids than a 32-bit number can count
    /// \param each  called twice with use(row, number); calls it for each of the `ids`, in the order of numbers
    template <class Each>
    [[nodiscard]] RowSet group(int slot, int dim, std::int64_t rows_in_shard, std::int64_t ids, Each each) {
        check(ids);
        const auto size = static_cast<std::size_t>(ids);
        keys.resize(size);
        spare.resize(size);
        first.resize(size + 1);
        const Filter slots{ids, rows_in_shard};
        filter.assign_zero(static_cast<std::size_t>(slots.words()));
        std::uint64_t* const seen = filter.data();
        each([=](LocalRow row, std::uint64_t) __attribute__((always_inline)) {
            const std::uint64_t at = slots.of(row);
            std::uint64_t& word = seen[at / 32];
            const unsigned shift = at % 32 * 2;
            word += std::uint64_t{(word >> shift & 3U) < 2} << shift;
        });
        // Written at both ends of what is free, of which one moves on: by the number of its keys, 1 or 2 for more,
        // without a branch that would depend on the ids.
        std::uint64_t* front = keys.data();
        std::uint64_t* back = front + size;
        each([&, seen ](LocalRow row, std::uint64_t number) __attribute__((always_inline)) {
            const std::uint64_t at = slots.of(row);
            const auto more = static_cast<std::ptrdiff_t>((seen[at / 32] >> at % 32 * 2 & 3U) - 1);
            const std::uint64_t key = static_cast<std::uint64_t>(row) << 32U | number;
            *front = key;
            back[-1] = key;
            front += 1 - more;
            back -= more;
        });
        const auto singles = static_cast<std::size_t>(front - keys.data());
        std::reverse(front, front + (size - singles));
        const std::uint64_t* sorted = sort(front, size - singles, rows_in_shard);
        return {.slot = slot,
                .dim = dim,
                .contributions = contributions.data(),
                .singles = static_cast<std::int64_t>(singles),
                .single = keys.data(),
                .several = find_rows(sorted, size - singles),
                .first = first.data(),
                .keys = sorted};
    }

  private:
    /// Where a row's two bits are: a slot a row, where that is at most 64 slots a key; otherwise one of 16 slots a key,
    /// by hash. Rows that share a slot count as rows with several keys, which changes no bit and costs a sort of
    /// theirs.
    class Filter {
      public:
        Filter(std::int64_t keys, std::int64_t rows)
            : slots_{static_cast<std::uint64_t>(std::max<std::int64_t>(rows, 1))},
              hashed_{rows > 64 * std::max<std::int64_t>(keys, 8)} {
            if (hashed_) slots_ = std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(16 * keys, 32)));
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

    static void check(std::int64_t count) {
        if (count > std::numeric_limits<std::uint32_t>::max())
            throw BadInput{concat(
                {"the batch has ", count, " ids of one shard, and at most 4294967295 fit: give smaller batches"})};
    }
    /// Where each row's keys begin, and behind the last where they end. \returns how many rows
    std::int64_t find_rows(const std::uint64_t* sorted, std::size_t count) {
        std::uint32_t* to = first.data();
        *to = 0;
        if (count == 0) return 0;
        to[1] = 1;
        for (std::size_t k = 1; k < count; ++k) {
            to += (sorted[k] >> 32U) != (sorted[k - 1] >> 32U) ? 1 : 0;
            to[1] = static_cast<std::uint32_t>(k + 1);
        }
        return to - first.data() + 1;
    }
    /// \returns where the sorted keys are
    std::uint64_t* sort(std::uint64_t* from, std::size_t count, std::int64_t rows_in_shard) {
        constexpr std::size_t few = 256;  // below, a radix sort is busy with its counters
        if (count >= few) return radix_sort(from, count, rows_in_shard);
        std::sort(from, from + count);
        return from;
    }
    /// From the lowest digit of the row on, stable; numbers ascend already. As few digits of at most 11 bits as the
    /// rows need, all counted in one pass.
    std::uint64_t* radix_sort(std::uint64_t* from, std::size_t count, std::int64_t rows_in_shard) {
        constexpr unsigned most_bits = 11;
        constexpr unsigned most_digits = 3;
        const auto bits = static_cast<unsigned>(
            std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(rows_in_shard, 1) - 1)));
        const unsigned digits = (bits + most_bits - 1) / most_bits;
        if (digits == 0) return from;
        const unsigned width = (bits + digits - 1) / digits;
        const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
        std::array<std::array<std::uint32_t, std::size_t{1} << most_bits>, most_digits> offsets;
        for (unsigned digit = 0; digit < digits; ++digit)
            std::fill_n(offsets[digit].data(), mask + 1, 0U);
        for (std::size_t i = 0; i < count; ++i)
            for (unsigned digit = 0; digit < digits; ++digit)
                ++offsets[digit][from[i] >> (32U + digit * width) & mask];
        std::uint64_t* to = spare.data();
        for (unsigned digit = 0; digit < digits; ++digit) {
            auto& offset = offsets[digit];
            std::uint32_t sum = 0;
            for (std::size_t bucket = 0; bucket <= mask; ++bucket)
                sum += std::exchange(offset[bucket], sum);
            for (const std::uint64_t *key = from, *const end = from + count; key != end; ++key)
                to[offset[*key >> (32U + digit * width) & mask]++] = *key;
            std::swap(from, to);
        }
        return from;
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
