// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "shardwise/checkpoint/layer_shards.hpp"
#include "shardwise/core/config.hpp"

/// \file
/// The rows of a shard in the order of its table.

namespace shardwise::inline SHARDWISE_ABI {

/// Finds the rows of a shard that lie in a range of its table. Where a shard has them in ascending order, as under all
/// policies of the library but in the replicated tiers of Tiered, that takes no memory; otherwise 4 bytes a row.
class ShardRows {
  public:
    explicit ShardRows(const TableShard& shard) : shard_{&shard} {
        std::int64_t last = -1;
        bool ascending = true;
        for (std::int64_t local = 0; ascending && local < shard.view.rows; ++local) {
            const std::int64_t row = shard.row(local);
            ascending = row > last;
            last = row;
        }
        if (ascending) return;
        order_.resize(static_cast<std::size_t>(shard.view.rows));
        std::iota(order_.begin(), order_.end(), std::uint32_t{0});
        std::sort(order_.begin(), order_.end(),
                  [&](std::uint32_t a, std::uint32_t b) { return shard.row(a) < shard.row(b); });
    }

    /// Whether the rows lie in the order of the table.
    [[nodiscard]] bool ascending() const noexcept { return order_.empty(); }
    /// Of the rows in ascending order, the local number of one and its number in the table.
    [[nodiscard]] std::int64_t local(std::int64_t position) const {
        return order_.empty() ? position : order_[static_cast<std::size_t>(position)];
    }
    [[nodiscard]] std::int64_t row(std::int64_t position) const { return shard_->row(local(position)); }

    /// Calls `use(row, local)` for the rows of [first, last), ascending. Cost: a binary search, then a call a row.
    template <class Use>
    void visit(std::int64_t first, std::int64_t last, Use use) const {
        std::int64_t low = 0;
        for (std::int64_t high = shard_->view.rows; low < high;) {
            const std::int64_t middle = low + (high - low) / 2;
            if (shard_->row(local(middle)) < first) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        for (; low < shard_->view.rows; ++low) {
            const std::int64_t row = shard_->row(local(low));
            if (row >= last) return;
            use(row, local(low));
        }
    }

  private:
    const TableShard* shard_;
    std::vector<std::uint32_t> order_;  // (position) -> local row; empty: the same
};

}  // namespace shardwise::inline SHARDWISE_ABI
