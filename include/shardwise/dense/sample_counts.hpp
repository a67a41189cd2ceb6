// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
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

/// Those of a step, as a rank of the world sees them. Not collective. \param by_rank  samples of each rank of the world
/// \throws BadInput for a rank that there is not, another number of ranks, or a negative number of samples
[[nodiscard]] inline SampleCounts count_samples(const ReplicaGroups& groups, int rank,
                                                std::span<const std::int64_t> by_rank) {
    const int ranks = groups.world.ranks();
    if (rank < 0 || rank >= ranks || std::ssize(by_rank) != ranks)
        throw BadInput{concat({"samples of rank ", rank, ", of ", by_rank.size(), " ranks: the world has ", ranks,
                               " ranks, give a number of samples for each"})};
    SampleCounts counts;
    for (std::size_t other = 0; other < by_rank.size(); ++other) {
        if (by_rank[other] < 0)
            throw BadInput{concat({"rank ", other, " has ", by_rank[other], " samples: give 0 or more"})};
        counts.world += by_rank[other];
        if (groups.group_of(static_cast<int>(other)) == groups.group_of(rank)) counts.group += by_rank[other];
    }
    return counts;
}

}  // namespace shardwise::inline SHARDWISE_ABI
