// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
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

/// The memory of the RowSets of a step, and the way to them. Most rows of a batch have one key: a filter of two bits a
/// row tells them from the others, and only the others are sorted. All sets share a buffer of each kind: together they
/// are large enough for huge pages sooner than each alone, and what only grouping needs serves one set after the other.
class RowGroups {
  public:
    RowGroups& on(std::pmr::memory_resource& memory) {
        contributions_.on(memory);
        filter_.on(memory);
        keys_.on(memory);
        spare_.on(memory);
        first_.on(memory);
        return *this;
    }
    /// Adds up what the buffers need for the sets of one step.
    class Needs {
      public:
        /// `ids` keys of `count` contributions to a shard of `rows_in_shard` rows.
        void add(std::int64_t count, std::int64_t ids, std::int64_t rows_in_shard) {
            contributions_ += count;
            ids_ += ids;
            most_ids_ = std::max(most_ids_, ids);
            most_words_ = std::max(most_words_, Filter{ids, rows_in_shard}.words());
            ++sets_;
        }
        void tally(MemoryTally& tally) const {
            tally.need(contributions_ * static_cast<std::int64_t>(sizeof(Contribution)));
            tally.need(8 * most_words_);
            tally.need(8 * ids_);
            tally.need(8 * most_ids_);
            tally.need((ids_ + sets_) * static_cast<std::int64_t>(sizeof(std::uint32_t)));
        }

      private:
        std::int64_t contributions_ = 0;
        std::int64_t ids_ = 0;
        std::int64_t most_ids_ = 0;
        std::int64_t most_words_ = 0;
        std::int64_t sets_ = 0;
    };

    /// Makes room for a step's sets, and forgets those before. \param count  contributions \param ids  keys
    void begin(std::int64_t count, std::int64_t ids, std::size_t sets) {
        contributions_.resize(static_cast<std::size_t>(count));
        keys_.resize(static_cast<std::size_t>(ids));
        first_.resize(static_cast<std::size_t>(ids) + sets);
        next_ = {};
    }
    /// Room for the next set's contributions, to be filled before `group`.
    /// \throws BadInput for more than a 32-bit number can count
    [[nodiscard]] std::span<Contribution> contribute(std::int64_t count) {
        check(count);
        begun_ = next_.contributions;
        next_.contributions += static_cast<std::size_t>(count);
        SHARDWISE_ASSERT(next_.contributions <= contributions_.size());
        return contributions_.span().subspan(begun_, static_cast<std::size_t>(count));
    }
    /// Tells rows with one key from those with several, and sorts those by row, then number. Two passes over the ids,
    /// and a radix sort. \throws BadInput for more ids than a 32-bit number can count
    /// \param each  called twice with use(row, number); calls it for each of the `ids`, in the order of numbers
    template <class Each>
    [[nodiscard]] RowSet group(int slot, int dim, std::int64_t rows_in_shard, std::int64_t ids, Each each) {
        check(ids);
        const auto size = static_cast<std::size_t>(ids);
        std::uint64_t* const keys = keys_.data() + next_.keys;
        std::uint32_t* const first = first_.data() + next_.first;
        next_.keys += size;
        next_.first += size + 1;
        SHARDWISE_ASSERT(next_.keys <= keys_.size() && next_.first <= first_.size());
        spare_.resize(size);
        const Filter slots{ids, rows_in_shard};
        filter_.assign_zero(static_cast<std::size_t>(slots.words()));
        std::uint64_t* const seen = filter_.data();
        each([=](LocalRow row, std::uint64_t) __attribute__((always_inline)) {
            const std::uint64_t at = slots.of(row);
            std::uint64_t& word = seen[at / 32];
            const unsigned shift = at % 32 * 2;
            word += std::uint64_t{(word >> shift & 3U) < 2} << shift;
        });
        // Written at both ends of what is free, of which one moves on: by the number of its keys, 1 or 2 for more,
        // without a branch that would depend on the ids.
        const unsigned digits = digits_of(rows_in_shard);
        std::uint64_t* front = keys;
        std::uint64_t* back =
            (digits % 2 == 0 ? keys : spare_.data()) + size;  // each digit moves them to the other; they end in keys
        each([&, seen ](LocalRow row, std::uint64_t number) __attribute__((always_inline)) {
            const std::uint64_t at = slots.of(row);
            const auto more = static_cast<std::ptrdiff_t>((seen[at / 32] >> at % 32 * 2 & 3U) - 1);
            const std::uint64_t key = static_cast<std::uint64_t>(row) << 32U | number;
            *front = key;
            back[-1] = key;
            front += 1 - more;
            back -= more;
        });
        const auto singles = static_cast<std::size_t>(front - keys);
        std::reverse(back, back + (size - singles));
        sort(back, front, size - singles, rows_in_shard);
        return {.slot = slot,
                .dim = dim,
                .contributions = {.list = contributions_.data() + begun_,
                                  .count = static_cast<std::int64_t>(next_.contributions - begun_)},
                .singles = static_cast<std::int64_t>(singles),
                .single = keys,
                .several = find_rows(front, size - singles, first),
                .first = first,
                .keys = front};
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
    static std::int64_t find_rows(const std::uint64_t* sorted, std::size_t count, std::uint32_t* const first) {
        std::uint32_t* to = first;
        *to = 0;
        if (count == 0) return 0;
        to[1] = 1;
        for (std::size_t k = 1; k < count; ++k) {
            to += (sorted[k] >> 32U) != (sorted[k - 1] >> 32U) ? 1 : 0;
            to[1] = static_cast<std::uint32_t>(k + 1);
        }
        return to - first + 1;
    }
    /// Sorts `count` keys to `to`; they are there already where rows have an even number of digits.
    void sort(std::uint64_t* from, std::uint64_t* to, std::size_t count, std::int64_t rows_in_shard) {
        constexpr std::size_t few = 256;  // below, a radix sort is busy with its counters
        if (count >= few) return radix_sort(from, from == to ? spare_.data() : to, count, rows_in_shard);
        std::sort(from, from + count);
        if (from != to) std::copy_n(from, count, to);
    }
    static constexpr unsigned most_bits = 11;  // a digit
    static constexpr unsigned most_digits = 3;
    static unsigned bits_of(std::int64_t rows_in_shard) {
        return static_cast<unsigned>(
            std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(rows_in_shard, 1) - 1)));
    }
    static unsigned digits_of(std::int64_t rows_in_shard) {
        return (bits_of(rows_in_shard) + most_bits - 1) / most_bits;
    }
    /// From the lowest digit of the row on, stable; numbers ascend already. As few digits of at most 11 bits as the
    /// rows need, all counted in one pass; each moves the keys from one place to the other.
    static void radix_sort(std::uint64_t* from, std::uint64_t* to, std::size_t count, std::int64_t rows_in_shard) {
        const unsigned digits = digits_of(rows_in_shard);
        if (digits == 0) return;
        const unsigned width = (bits_of(rows_in_shard) + digits - 1) / digits;
        const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
        std::array<std::array<std::uint32_t, std::size_t{1} << most_bits>, most_digits> offsets;
        for (unsigned digit = 0; digit < digits; ++digit)
            std::fill_n(offsets[digit].data(), mask + 1, 0U);
        for (std::size_t i = 0; i < count; ++i)
            for (unsigned digit = 0; digit < digits; ++digit)
                ++offsets[digit][from[i] >> (32U + digit * width) & mask];
        for (unsigned digit = 0; digit < digits; ++digit) {
            auto& offset = offsets[digit];
            std::uint32_t sum = 0;
            for (std::size_t bucket = 0; bucket <= mask; ++bucket)
                sum += std::exchange(offset[bucket], sum);
            for (const std::uint64_t *key = from, *const end = from + count; key != end; ++key)
                to[offset[*key >> (32U + digit * width) & mask]++] = *key;
            std::swap(from, to);
        }
    }

    /// How far the buffers are filled.
    struct Filled {
        std::size_t contributions = 0;
        std::size_t keys = 0;
        std::size_t first = 0;
    };

    Buffer<Contribution> contributions_;  // (set, number)
    Buffer<std::uint64_t> keys_;          // (set): row << 32 | number: of rows with one key, then of the others
    Buffer<std::uint32_t> first_;         // (set): of rows with several keys
    Buffer<std::uint64_t> filter_;        // 2 bits a slot: 0, 1 or more keys
    Buffer<std::uint64_t> spare_;         // the other place of keys while they are sorted
    Filled next_;
    std::size_t begun_ = 0;  // the contributions of the set that is next
};

}  // namespace shardwise::inline SHARDWISE_ABI
