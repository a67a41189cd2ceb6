// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>

#include "shardwise/embedding/copies/lanes.hpp"

namespace shardwise::inline SHARDWISE_ABI::copies {

SHARDWISE_INLINE void RowsToMean::merge(std::vector<std::span<const LocalRow>>& lists) {
    std::size_t most = 0;
    for (const auto& list : lists)
        most += list.size();
    all_ = false;
    copies_ = static_cast<int>(lists.size());
    words_ = (copies_ + 63) / 64;
    LocalRow* const rows = rows_.resize(most).data();
    std::int32_t* const averagers = averagers_.resize(most).data();
    std::uint64_t* bits = touched_.assign_zero(most * static_cast<std::size_t>(words_)).data();
    constexpr std::int64_t none = std::int64_t{1} << 32;
    for (size_ = 0;; ++size_, bits += words_) {
        std::int64_t row = none;
        for (const auto& list : lists)
            if (!list.empty()) row = std::min<std::int64_t>(row, list.front());
        if (row == none) return order(most);
        for (std::size_t copy = 0; copy < lists.size(); ++copy)
            if (!lists[copy].empty() && lists[copy].front() == row) {
                bits[copy / 64] |= std::uint64_t{1} << copy % 64;
                lists[copy] = lists[copy].subspan(1);
            }
        rows[size_] = static_cast<LocalRow>(row);
        averagers[size_] =
            averager_of(row, copies_, [bits](int copy) { return (bits[copy / 64] >> copy % 64 & 1U) != 0; });
    }
}

/// Sorts the numbers of rows by who makes their mean.
SHARDWISE_INLINE void RowsToMean::order(std::size_t most) {
    std::uint32_t* const order = order_.resize(most).data();
    const std::span<const std::int32_t> averagers = averagers_.span().first(static_cast<std::size_t>(size_));
    first_.assign(static_cast<std::size_t>(copies_) + 1, 0);
    for (const std::int32_t averager : averagers)
        ++at(first_, averager + 1);
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    for (std::size_t number = 0; number < averagers.size(); ++number)
        order[at(first_, averagers[number])++] = static_cast<std::uint32_t>(number);
    std::copy_backward(first_.begin(), first_.end() - 1, first_.end());
    first_.front() = 0;
}

}  // namespace shardwise::inline SHARDWISE_ABI::copies
