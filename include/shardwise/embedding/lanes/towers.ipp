// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/towers.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE TowerModules shape_towers(std::shared_ptr<const ModulePolicy> policy, const Topology& topology,
                                           const std::vector<TableConfig>& tables, const std::vector<int>& tower_of) {
    TowerModules towers;
    towers.policy = std::move(policy);
    for (int t = 0; t < topology.towers(); ++t) {
        TowerShape& shape = towers.shapes.emplace_back();
        shape.tower = t;
        for (std::size_t table = 0; table < tables.size(); ++table)
            if (tower_of[table] == t)
                shape.dims.insert(shape.dims.end(), features_of(tables[table]).size(), tables[table].dim);
        if (shape.dims.empty())
            throw BadInput{
                concat({"tower ", t, " of ", topology.towers(),
                        " has no feature, and a module has nothing to work on there: give every tower one"})};
        towers.outputs.push_back(towers.policy->outputs(shape));
    }
    const std::int64_t width = std::accumulate(towers.outputs.begin(), towers.outputs.end(), std::int64_t{0});
    if (width > std::numeric_limits<int>::max())
        throw BadInput{concat({"the towers' modules have ", width, " columns: 2147483647 at most"})};
    return towers;
}

}  // namespace shardwise::inline SHARDWISE_ABI
