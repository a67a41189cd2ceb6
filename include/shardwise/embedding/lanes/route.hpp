// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "shardwise/core/config.hpp"

/// \file
/// Which blocks of a lane go to which rank.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// The blocks of a lane by the rank that each goes to, or comes from.
class Route {
  public:
    /// Sorts `count` blocks by rank, those of one rank in their order. \param rank_of  of the block with a number
    template <class RankOf>
    void assign(int ranks, std::size_t count, RankOf rank_of) {
        first_.assign(static_cast<std::size_t>(ranks) + 1, 0);
        blocks_.resize(count);
        for (std::size_t i = 0; i < count; ++i)
            ++first_[static_cast<std::size_t>(rank_of(i)) + 1];
        for (std::size_t rank = 1; rank < first_.size(); ++rank)
            first_[rank] += first_[rank - 1];
        next_ = first_;
        for (std::size_t i = 0; i < count; ++i)
            blocks_[next_[static_cast<std::size_t>(rank_of(i))]++] = i;
    }
    /// The numbers of the blocks of `rank`, ascending.
    [[nodiscard]] std::span<const std::size_t> of(int rank) const {
        const std::size_t first = first_[static_cast<std::size_t>(rank)];
        return {blocks_.data() + first, first_[static_cast<std::size_t>(rank) + 1] - first};
    }

  private:
    std::vector<std::size_t> first_;  // (rank + 1)
    std::vector<std::size_t> next_;
    std::vector<std::size_t> blocks_;
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps
