// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/dense/data_parallel.hpp"
#include "shardwise/dense/wide_products.hpp"
#include "shardwise/embedding/layer_base.hpp"
#include "shardwise/embedding/layer_towers.hpp"
#include "shardwise/embedding/tower_module.hpp"
#include "shardwise/topology/groups.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// The modules of a layer whose policies are forgotten: what trains them, and what a report says of them. A
/// `DataParallel<Optimizer, OneTower>` on the parameters of this rank's module trains all of them.
///
/// Nothing here is collective. M is the module of the layer's policy `Tower<M>`; with another one, behaviour is
/// undefined.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

[[nodiscard]] inline const LayerTowers& towers_with_modules(const LayerBase& layer) {
    if (layer.towers().module == nullptr)
        throw BadInput{"the layer's towers have no modules: give it a Tower<> policy"};
    return layer.towers();
}

/// The config of the modules.
template <class M>
[[nodiscard]] const typename M::Config& module_config_of(const LayerBase& layer) {
    return *static_cast<const typename M::Config*>(towers_with_modules(layer).config);
}

}  // namespace detail

/// The module of this rank's tower; `EmbeddingLayer::module()` where the layer's type is known.
/// \throws BadInput for a layer without modules
template <class M>
[[nodiscard]] M& module_of(LayerBase& layer) {
    return *static_cast<M*>(detail::towers_with_modules(layer).module.get());
}

/// What the sum of the modules' gradients over the ranks of each tower moves. A pure function, the same on all ranks.
/// \param precision  that of the modules' config
/// \throws BadInput for a layer without modules
template <class M>
[[nodiscard]] TrafficMatrix predict_module_sum(const LayerBase& layer, DensePrecision precision) {
    const auto& config = detail::module_config_of<M>(layer);
    const Topology& topology = layer.topology();
    return predict_gradient_sum<OneTower>(topology, precision, [&](int rank) {
        return M::span_elements(config, layer.towers().shapes[static_cast<std::size_t>(topology.tower_of(rank))]);
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
    const auto& config = detail::module_config_of<M>(layer);
    ModulesSize size;
    for (const TowerShape& shape : layer.towers().shapes) {
        size.flops += M::flops(config, shape);
        size.parameters += M::parameter_count(config, shape);
    }
    return size;
}

}  // namespace shardwise::inline SHARDWISE_ABI
