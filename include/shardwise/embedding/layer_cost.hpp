// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/batch_view.hpp"
#include "shardwise/embedding/cost.hpp"
#include "shardwise/embedding/layer_towers.hpp"
#include "shardwise/plan/cost.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// The cost reader of a layer: what a training step moves.

namespace shardwise::inline SHARDWISE_ABI {

/// What one training step moves, predicted.
struct LayerCost {
    std::vector<SegmentCost> segments;
    TrafficMatrix forward;
    TrafficMatrix backward;
};

namespace detail {

/// What a step on `batches`, one a rank, moves under a program. The branches of a Mixed layer have one placement each.
inline LayerCost predict_layer(const Program& program, const Topology& topology,
                               const std::vector<Placement>& placements, bool mixed, const LayerTowers& towers,
                               const std::vector<BatchView>& batches, MemoryTally* tally, int rank) {
    CostTree<EmbeddingCost> tree;
    const auto bind = [&](CostTree<EmbeddingCost>& node, std::size_t branch) {
        node.own.placement = &placements[branch];
        node.own.batches = &batches;
        node.own.towers = &towers;
    };
    if (mixed) {
        tree.branches.resize(placements.size());
        for (std::size_t i = 0; i < placements.size(); ++i)
            bind(tree.branches[i], i);
    } else {
        bind(tree, 0);
    }
    LayerCost cost{.segments = {}, .forward = TrafficMatrix{topology}, .backward = TrafficMatrix{topology}};
    cost.segments = predict(program, 0, program.segments.size(), topology, tree, tally, rank);
    for (const SegmentCost& segment : cost.segments)
        (segment.segment < program.forward ? cost.forward : cost.backward) += segment.traffic;
    return cost;
}

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
