// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <limits>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/row_counter.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE RowCounter::RowCounter(std::int64_t counters) {
    constexpr std::int64_t most = std::int64_t{1} << 31;
    if (counters < 0 || counters > most)
        throw BadInput{concat({counters, " counters of rows: give 1 to ", most, ", or 0 to count every row"})};
    most_ = static_cast<std::size_t>(counters == 0 ? most : counters);
    index(16);
}

SHARDWISE_INLINE RowCounter::Counter& RowCounter::take_up(std::int64_t row) {
    if (counters_.size() == most_) forget();
    if (2 * (counters_.size() + 1) > slots_.size()) index(2 * slots_.size());
    if (counters_.size() == counters_.capacity())
        counters_.reserve(std::min(most_, std::max<std::size_t>(8, 2 * counters_.size())));
    slots_[slot_of(row)] = static_cast<std::uint32_t>(counters_.size() + 1);
    return counters_.emplace_back(Counter{.access = {.row = row, .lookups = 0, .samples = 0}, .missed = error_});
}

SHARDWISE_INLINE void RowCounter::forget() {
    bounds_.clear();
    for (const Counter& counter : counters_)
        bounds_.push_back(counter.access.lookups + counter.missed);
    const auto quarter = bounds_.begin() + static_cast<std::ptrdiff_t>(bounds_.size() / 4);
    std::nth_element(bounds_.begin(), quarter, bounds_.end());
    error_ = *quarter;
    std::erase_if(counters_, [&](const Counter& counter) { return counter.access.lookups + counter.missed <= error_; });
    index(slots_.size());
}

SHARDWISE_INLINE void RowCounter::index(std::size_t slots) {
    slots_.assign(slots, 0);
    for (std::size_t i = 0; i != counters_.size(); ++i)
        slots_[slot_of(counters_[i].access.row)] = static_cast<std::uint32_t>(i + 1);
}

SHARDWISE_INLINE std::vector<RowAccess> RowCounter::seen() const {
    std::vector<RowAccess> rows;
    rows.reserve(counters_.size());
    for (const Counter& counter : counters_)
        rows.push_back(counter.access);
    std::sort(rows.begin(), rows.end(), [](const RowAccess& a, const RowAccess& b) { return a.row < b.row; });
    return rows;
}

}  // namespace shardwise::inline SHARDWISE_ABI
