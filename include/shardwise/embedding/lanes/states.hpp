// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "shardwise/core/config.hpp"

/// \file
/// Small states of embedding plans. The others stand with what they are: Placement, Store, TableRules, OrderTraits,
/// Wires, PlanPooling, TowerModules.

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

/// What a rank's tables have looked up so far for one plan: rows, or, where columns are split, parts of rows.
struct LookedUpRows {
    static constexpr const char* state_name = "LookedUpRows";
    std::atomic<std::int64_t> rows{0};  // a thread that answers others adds while a report reads
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps
