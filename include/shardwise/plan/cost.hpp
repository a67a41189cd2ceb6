// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/plan/cost_walk.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/cluster.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// The cost reader: bytes and messages of one batch, step by step, without a communicator.

namespace shardwise::inline SHARDWISE_ABI {

/// The cost reader's counterpart of a frame: what it knows of all ranks, for the plan and each plan inside it.
template <class Cost>
struct CostTree {
    Cost own;
    std::vector<std::unique_ptr<CostTree>> branches;

    /// Of the plan, or of one inside it; made where there is none yet.
    [[nodiscard]] Cost& at(const BranchPath& branch) {
        CostTree* node = this;
        for (const std::size_t i : branch) {
            while (node->branches.size() <= i)
                node->branches.push_back(std::make_unique<CostTree>());
            node = node->branches[i].get();
        }
        return node->own;
    }
};

/// Of batches that are there.
using SegmentCost = SegmentCostOf<std::int64_t>;

/// Adds the needs of a flight's message buffers on `rank`: one to each peer for all segments, one from each peer a
/// segment.
void tally_messages(const std::vector<SegmentCost>& costs, const Topology& topology, int rank, MemoryTally& tally);

/// Walks all segments of a program. With a tally, adds what the steps' buffers need on `rank`. Not collective; the same
/// on every rank. \param cost_at  the Cost of a branch, the same for the plan and its adjoint
[[nodiscard]] std::vector<SegmentCost> predict(const Program& program, const Topology& topology,
                                               const std::function<void*(const BranchPath&)>& cost_at,
                                               MemoryTally* tally = nullptr, int rank = 0);
/// The same. `tree` is the domain's CostTree: bound to all ranks' batches, and carried from the forward to the backward
/// plan.
template <class Cost>
[[nodiscard]] std::vector<SegmentCost> predict(const Program& program, const Topology& topology, CostTree<Cost>& tree,
                                               MemoryTally* tally = nullptr, int rank = 0) {
    return predict(
        program, topology, [&](const BranchPath& branch) -> void* { return &tree.at(branch); }, tally, rank);
}

/// How long a round takes on a cluster: the slowest rank's, where a rank's sends and receives go on at once, both tiers
/// too, and each tier takes its messages one after the other. A bound for planning; contention inside the network is
/// not in it.
[[nodiscard]] double seconds(const TrafficMatrix& round, const Cluster& cluster);
/// The exchange time of all rounds, one after the other.
[[nodiscard]] double seconds(const std::vector<SegmentCost>& costs, const Cluster& cluster);

/// What rank `rank` sends in each round, by a prediction of a whole program.
[[nodiscard]] std::vector<std::int64_t> rounds_of(const std::vector<SegmentCost>& costs, int rank);
/// The payload that rank `rank` sends for each exchange of the program, by the same: what Flight::count counts.
[[nodiscard]] std::vector<std::int64_t> payload_by_post(const std::vector<SegmentCost>& costs, int rank);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/plan/cost.ipp"
#endif
