// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/split_mix.hpp"
#include "shardwise/planning/access_profile.hpp"

/// \file
/// Counts the rows of one table, exactly or in bounded memory.

namespace shardwise::inline SHARDWISE_ABI {

/// Counts look-ups of rows, and samples that hold them.
///
/// **Exact**, with 0 counters: one a row that is seen, up to 2^31 rows; beyond, streaming with as many.
///
/// **Streaming**, with k counters: the rows that are looked up most often, in one pass. When a row comes for which no
/// counter is left, the error rises to what the lowest quarter of the counted rows may have been looked up at most, and
/// these are forgotten. That is lossy counting (Manku and Motwani, "Approximate frequency counts over data streams",
/// 2002: a count since a row was taken up, and what it may have missed before) whose error follows the stream by a
/// quantile (Anderson et al., "A high-performance algorithm for identifying frequent items in data streams", 2017).
/// Counts are too low by at most `error()`, which is at most 4/3 lookups() / k: each time that it rises by c, at least
/// 3/4 k rows have c look-ups each that are accounted for no more. A row whose look-ups are above that is always among
/// those counted; rows taken up before the first forgetting have exact counts.
///
/// Cost: a look into a hash table a look-up; forgetting is a pass over k counters, every k / 4 new rows at most.
/// Memory: 48 to 56 bytes a counter, and 8 more where rows are forgotten; up to twice that while it grows. Not thread
/// safe.
class RowCounter {
  public:
    /// \param counters  rows counted at once; 0: all \throws BadInput when it is negative or above 2^31
    explicit RowCounter(std::int64_t counters = 0);

    /// One look-up. \param sample  its sample's number; look-ups of a sample come one after the other
    void count(std::int64_t row, std::int64_t sample) {
        ++lookups_;
        Counter* counter = find(row);
        if (counter == nullptr) counter = &take_up(row);
        ++counter->access.lookups;
        if (counter->sample == sample) return;
        counter->sample = sample;
        ++counter->access.samples;
    }

    /// All look-ups.
    [[nodiscard]] std::int64_t lookups() const noexcept { return lookups_; }
    /// How much too low a count may be; 0 while all rows have had a counter.
    [[nodiscard]] std::int64_t error() const noexcept { return error_; }
    /// What was counted, ascending by row.
    [[nodiscard]] std::vector<RowAccess> seen() const;

  private:
    struct Counter {
        RowAccess access;
        std::int64_t missed = 0;   // at most so many look-ups came before it was taken up
        std::int64_t sample = -1;  // the last one that holds the row
    };

    // Linear probing; 0 is free, otherwise the number of a counter from 1.
    [[nodiscard]] std::size_t slot_of(std::int64_t row) const noexcept {
        const std::size_t mask = slots_.size() - 1;
        std::size_t slot = static_cast<std::size_t>(split_mix(static_cast<std::uint64_t>(row))) & mask;
        while (slots_[slot] != 0 && counters_[slots_[slot] - 1].access.row != row)
            slot = (slot + 1) & mask;
        return slot;
    }
    [[nodiscard]] Counter* find(std::int64_t row) noexcept {
        const std::uint32_t number = slots_[slot_of(row)];
        return number == 0 ? nullptr : &counters_[number - 1];
    }
    Counter& take_up(std::int64_t row);
    void forget();
    void index(std::size_t slots);

    std::size_t most_;  // counters
    std::int64_t lookups_ = 0;
    std::int64_t error_ = 0;
    std::vector<Counter> counters_;
    std::vector<std::uint32_t> slots_;  // a power of two, at most half of them taken
    std::vector<std::int64_t> bounds_;  // of what counted rows may have been looked up in all
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/row_counter.ipp"
#endif
