// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/data_parallel.hpp"
#include "shardwise/embedding/lanes/tower_module.hpp"
#include "shardwise/embedding/lanes/towers.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"
#include "shardwise/topology/groups.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// The modules of a layer whose policies are forgotten: what trains them, and what a report says of them. A
/// `DataParallel<Optimizer, OneTower>` on the parameters of this rank's module trains all of them.
///
/// Nothing here is collective. M is the module of the layer's policy `Tower<M>`.

namespace shardwise::inline SHARDWISE_ABI {

/// The module of this rank's tower; `EmbeddingLayer::module()` where the layer's type is known.
/// \throws BadInput for a layer whose towers have no module of type M
template <class M>
[[nodiscard]] M& module_of(LayerBase& layer) {
    return layer.module<M>();
}

/// What the sum of the modules' gradients over the ranks of each tower, and over its copies, moves. A pure function,
/// the same on all ranks. \param precision  that of the modules' config \throws BadInput for a layer without modules
template <class M>
[[nodiscard]] TrafficMatrix predict_module_sum(const LayerBase& layer, DensePrecision precision) {
    const auto& config = layer.module_config<M>();
    const Topology& topology = layer.topology();
    const ReplicaGroups& groups = layer.groups();
    return predict_gradient_sum<OneTower>(topology, groups, precision, [&](int rank) {
        const int tower = topology.tower_of(groups.index_of(rank));
        return M::span_elements(config, layer.towers().shapes[static_cast<std::size_t>(tower)]);
    });
}

/// How large the modules of all towers are together.
struct ModulesSize {
    std::int64_t flops = 0;       ///< a sample, forward and backward
    std::int64_t parameters = 0;  ///< weights and biases
};
/// The same on all ranks. \throws BadInput for a layer without modules
template <class M>
[[nodiscard]] ModulesSize size_of_modules(const LayerBase& layer) {
    const auto& config = layer.module_config<M>();
    ModulesSize size;
    for (const TowerShape& shape : layer.towers().shapes) {
        size.flops += M::flops(config, shape);
        size.parameters += M::parameter_count(config, shape);
    }
    return size;
}

}  // namespace shardwise::inline SHARDWISE_ABI
