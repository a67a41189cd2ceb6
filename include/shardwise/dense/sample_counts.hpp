// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shardwise/core/config.hpp"
#include "shardwise/topology/replica_groups.hpp"

/// \file
/// By how many samples the gradients of a step are divided where ranks form replica groups.
/// (Two-dimensional sparse parallelism, Algorithm 1)

namespace shardwise::inline SHARDWISE_ABI {

/// Dense parameters learn from the world's samples, embeddings from those of their group. One backward pass by the
/// world's samples is enough: what goes to the embedding layer is multiplied with to_group(), and the gradients of
/// towers' modules, which come out of the layer, with to_world() again. With one group both are 1.
struct SampleCounts {
    std::int64_t world = 0;
    std::int64_t group = 0;

    /// 1 where the group has no sample.
    [[nodiscard]] float to_group() const noexcept {
        return group == 0 ? 1.0F : static_cast<float>(static_cast<double>(world) / static_cast<double>(group));
    }
    /// 0 where the group has no sample, and others have.
    [[nodiscard]] double to_world() const noexcept {
        return world == 0 ? 1.0 : static_cast<double>(group) / static_cast<double>(world);
    }
};

/// Those of a step, as a rank sees them. Not collective. \param by_rank  samples of each rank of the world
[[nodiscard]] constexpr SampleCounts count_samples(const ReplicaGroups& groups, int rank,
                                                   std::span<const std::int64_t> by_rank) noexcept {
    SampleCounts counts;
    for (std::size_t other = 0; other < by_rank.size(); ++other) {
        counts.world += by_rank[other];
        if (groups.group_of(static_cast<int>(other)) == groups.group_of(rank)) counts.group += by_rank[other];
    }
    return counts;
}

}  // namespace shardwise::inline SHARDWISE_ABI
