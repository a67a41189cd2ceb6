// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/lanes/blocks.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Partial sums of bags whose rows are split, summed along the tree.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// How many blocks, from `first` on, are parts of the same bags.
[[nodiscard]] std::size_t parts_of_bags(const VectorBlock* first, const VectorBlock* end);

/// Sums the parts of bags along the tree: ranks in order inside a host, then hosts.
class ShardSums {
  public:
    /// Makes room for the sums of a lane's blocks.
    void prepare(const std::vector<VectorBlock>& lane, std::pmr::memory_resource& memory);
    /// The bytes of that room, given the cost reader's lane.
    [[nodiscard]] static std::int64_t bytes(const std::vector<EmbeddingCost::Block>& lane);
    /// out = the sum of `blocks`, which are parts of the same bags in ascending order of the ranks that looked them up.
    void operator()(const Topology& topology, std::span<const VectorBlock> blocks, const MatrixView<float>& out);

  private:
    Buffer<float> scratch_;                   // a host's sum, and a tile for what is not in memory
    std::vector<detail::RowReader> readers_;  // (block)
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/lanes/shard_sums.ipp"
#endif
