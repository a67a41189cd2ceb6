// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/tower_module.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// The towers of a layer whose towers have modules.

namespace shardwise::inline SHARDWISE_ABI {

/// The towers of a layer with modules; of other layers, none.
struct TowerModules {
    static constexpr const char* state_name = "TowerModules";
    static constexpr bool trained = true;

    std::vector<TowerShape> shapes;              ///< (tower)
    std::vector<int> outputs;                    ///< (tower): columns of the module's result
    std::shared_ptr<const ModulePolicy> policy;  ///< null: towers pass their vectors on
    std::shared_ptr<AnyTowerModule> module;      ///< of this rank's tower; null on paper
};

/// The towers of these tables, their module not made yet. Pure; the same on all ranks.
/// \param tower_of  (table)
/// \throws BadInput for a tower without features, and a config that does not fit
[[nodiscard]] TowerModules shape_towers(std::shared_ptr<const ModulePolicy> policy, const Topology& topology,
                                        const std::vector<TableConfig>& tables, const std::vector<int>& tower_of);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/lanes/towers.ipp"
#endif
