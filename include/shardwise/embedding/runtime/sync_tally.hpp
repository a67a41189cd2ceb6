// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/copies/lanes.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/plan/cost.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/topology/replica_groups.hpp"

/// \file
/// What a prediction carries from step to step where copies are synced: what a sync moves depends on the steps before.

namespace shardwise::inline SHARDWISE_ABI {

/// The rows that each group has touched since the last sync.
class SyncTally {
  public:
    /// \param steps  that the layer has made already; its copies are equal
    explicit SyncTally(std::int64_t steps = 0) : steps_{steps} {}

    /// What the buffers of a sync need on the rank that predictions were asked for.
    [[nodiscard]] const MemoryTally& memory() const noexcept { return memory_; }
    /// Steps of the layer that were predicted, and those that it had made before.
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }

  private:
    friend class LayerBlueprint;

    struct Group {
        std::vector<std::vector<steps::TouchedLocals>> touched;  // (index, shard)
    };
    std::vector<Group> groups_;
    MemoryTally memory_;
    std::int64_t steps_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
