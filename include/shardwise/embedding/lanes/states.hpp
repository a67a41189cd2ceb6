// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory_resource>
#include <vector>

#include "shardwise/core/config.hpp"

/// \file
/// Small states of embedding plans. The others stand with what they are: Placement, Store, RowRule, OrderTraits, Wires,
/// PlanPooling, TowerModules, UpdateStep.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// Where a flight's buffers come from.
struct WorkMemory {
    static constexpr const char* state_name = "WorkMemory";
    std::pmr::memory_resource* resource = nullptr;
};

/// Which features of a layer each plan inside it has.
struct FeaturesByPlan {
    static constexpr const char* state_name = "FeaturesByPlan";
    std::vector<std::vector<int>> features;  ///< (plan)
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps
