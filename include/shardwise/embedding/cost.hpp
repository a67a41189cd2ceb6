// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/batch_view.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// What the cost reader knows about one branch of an embedding plan: the batches of all ranks, and what follows from
/// them.

namespace shardwise::inline SHARDWISE_ABI {

/// The cost reader's lanes. It shares with the run reader only the placement and the policies' pure functions; it
/// counts on its own, and sees no communicator and no tape.
struct EmbeddingCost {
    struct Count {
        std::int64_t ids = 0;
        bool single = false;
    };

    const Placement* placement = nullptr;
    const std::vector<BatchView>* batches = nullptr;          ///< (rank)
    std::vector<std::vector<Count>> counts;                   ///< (source, block)
    std::vector<std::vector<std::vector<std::int64_t>>> ids;  ///< (source, block): local rows
    std::vector<std::vector<std::vector<std::int64_t>>>
        touched;  ///< (rank, table * shards + shard): distinct, ascending

    [[nodiscard]] const Topology& topology() const noexcept { return placement->topology; }
    [[nodiscard]] int ranks() const noexcept { return placement->topology.ranks(); }
    [[nodiscard]] std::int64_t samples(int rank) const { return (*batches)[static_cast<std::size_t>(rank)].samples(); }
};

}  // namespace shardwise::inline SHARDWISE_ABI
