// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/embedding/tower_module.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// The towers of a layer whose towers have modules.

namespace shardwise::inline SHARDWISE_ABI {

/// The towers of a layer with modules, as its steps see them.
struct LayerTowers {
    std::vector<TowerShape> shapes;  ///< (tower)
    std::vector<int> outputs;        ///< (tower): columns of the module's result
    const void* config = nullptr;    ///< the module's
    std::shared_ptr<void> module;    ///< of this rank's tower
};

/// The towers of these tables, their module not made yet. Pure; the same on all ranks.
/// \param tower_of  (table)
/// \throws BadInput for a tower without features, and a config that does not fit
[[nodiscard]] inline LayerTowers shape_towers(const ModuleTraits& module, const Topology& topology,
                                              const std::vector<TableConfig>& tables,
                                              const std::vector<int>& tower_of) {
    LayerTowers towers;
    towers.config = module.config.get();
    for (int t = 0; t < topology.towers(); ++t) {
        TowerShape& shape = towers.shapes.emplace_back();
        shape.tower = t;
        for (std::size_t table = 0; table < tables.size(); ++table)
            if (tower_of[table] == t)
                shape.dims.insert(shape.dims.end(), features_of(tables[table]).size(), tables[table].dim);
        if (shape.dims.empty())
            throw BadInput{"tower " + std::to_string(t) + " of " + std::to_string(topology.towers()) +
                           " has no feature, and a module has nothing to work on there: give every tower one"};
        towers.outputs.push_back(module.outputs(towers.config, shape));
    }
    const std::int64_t width = std::accumulate(towers.outputs.begin(), towers.outputs.end(), std::int64_t{0});
    if (width > std::numeric_limits<int>::max())
        throw BadInput{"the towers' modules have " + std::to_string(width) + " columns: 2147483647 at most"};
    return towers;
}

}  // namespace shardwise::inline SHARDWISE_ABI
