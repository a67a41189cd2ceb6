// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>

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
        if (row == none) return;
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

}  // namespace shardwise::inline SHARDWISE_ABI::copies
