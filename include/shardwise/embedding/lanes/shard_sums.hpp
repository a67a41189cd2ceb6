// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/lanes/blocks.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Partial sums of bags whose rows are split, summed along the tree.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// How many blocks, from `first` on, are parts of the same bags.
[[nodiscard]] std::size_t parts_of_bags(const VectorBlock* first, const VectorBlock* end);

namespace detail {

/// Floats: a host's sum, and a tile.
[[nodiscard]] constexpr std::int64_t room_for_sums(int dim, bool tile) noexcept {
    return dim + (tile ? tile_elements(dim) : 0);
}

}  // namespace detail

/// Sums the parts of bags along the tree: ranks in order inside a host, then hosts. Parts that a bag has not are +0.0.
class ShardSums {
  public:
    /// Of a cost reader's lane: every block has a row of every bag.
    static constexpr std::int64_t every_bag = -1;

    /// Makes room for a lane's blocks. \param summed  blocks of one source and feature are parts of the same bags
    void prepare(const std::vector<VectorBlock>& lane, bool summed, std::pmr::memory_resource& memory);
    /// The bytes of that room, given the cost reader's lane. \param bags  that a result has
    template <class Block>
    [[nodiscard]] static std::int64_t bytes(const std::vector<Block>& lane, bool summed, std::int64_t bags);
    /// out = the sum of `blocks`, which are parts of the same bags in ascending order of the ranks that looked them up.
    void operator()(const Topology& topology, std::span<const VectorBlock> blocks, const MatrixView<float>& out);

  private:
    struct Part {
        detail::RowReader reader;
        int host = 0;
        const std::int32_t* samples = nullptr;
        std::int64_t n = 0;
        std::int64_t row = 0;   // the next
        std::int64_t read = 0;  // the reader's first

        /// Goes on to the rows of samples before `end`, of which there are `count`.
        void read_until(std::int64_t end, std::int64_t count, float* tile);
        [[nodiscard]] bool has(std::int64_t sample) const noexcept {
            return samples == nullptr || (row < n && samples[row] == sample);
        }
        [[nodiscard]] const float* next() noexcept { return reader.row(row++ - read); }
    };
    Buffer<float> scratch_;    // a host's sum, and a tile for what is not in memory
    std::vector<Part> parts_;  // (block)
};

template <class Block>
std::int64_t ShardSums::bytes(const std::vector<Block>& lane, bool summed, std::int64_t bags) {
    std::int64_t most = 0;
    for (std::size_t first = 0; first < lane.size();) {
        std::size_t end = first;
        while (end < lane.size() && lane[end].head.source == lane[first].head.source &&
               lane[end].head.feature == lane[first].head.feature)
            ++end;
        const bool several = summed && end - first > 1;
        for (; first < end; ++first)
            if (several || (bags != every_bag && !(lane[first].n == bags)))
                most = std::max(most, detail::room_for_sums(lane[first].head.dim, !lane[first].looked_up));
    }
    return 4 * most;
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/lanes/shard_sums.ipp"
#endif
