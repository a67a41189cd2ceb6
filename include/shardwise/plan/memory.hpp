// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"

/// \file
/// The memory reader's sum: what the buffers of one flight grow to over its batches.

namespace shardwise::inline SHARDWISE_ABI {

/// The largest need of each buffer over all batches so far. Steps name their buffers' needs in one fixed order, so that
/// the n-th need of a batch belongs to the n-th buffer.
class MemoryTally {
  public:
    /// A new batch: the next need is the first buffer's again.
    void begin_batch() noexcept { next_ = 0; }
    /// The next buffer needs `bytes` for this batch.
    void need(std::int64_t bytes) {
        if (next_ == most_.size()) most_.push_back(0);
        most_[next_] = std::max(most_[next_], bytes);
        ++next_;
    }
    /// What the batches need, without what buffers take beyond.
    [[nodiscard]] std::int64_t needed() const { return std::accumulate(most_.begin(), most_.end(), std::int64_t{0}); }
    /// What all buffers hold after these batches. A buffer never shrinks, and grows to buffer_capacity of its need.
    [[nodiscard]] std::int64_t bytes() const {
        std::int64_t sum = 0;
        for (const std::int64_t most : most_)
            sum += static_cast<std::int64_t>(buffer_capacity(static_cast<std::size_t>(most)));
        return sum;
    }

  private:
    std::vector<std::int64_t> most_;
    std::size_t next_ = 0;
};

/// What a reader takes that tallies for several ranks.
[[nodiscard]] inline std::span<MemoryTally> one_or_none(MemoryTally* tally) noexcept {
    return {tally, tally == nullptr ? std::size_t{0} : std::size_t{1}};
}

}  // namespace shardwise::inline SHARDWISE_ABI
