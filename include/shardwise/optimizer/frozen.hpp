// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/config.hpp"
#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// Tables that do not learn: for inference, and for parts of a model that stay as they are.

namespace shardwise::inline SHARDWISE_ABI {

/// Rows keep their weights. A frozen layer has no moments and no backward pass, its flights hold nothing for one, and
/// it reads the checkpoint of any optimizer.
struct Frozen {
    static constexpr const char* name = "frozen";
    static constexpr int row_slots = 0;
    static constexpr int element_slots = 0;
    static constexpr bool needs_row_norm = false;
    static constexpr bool learns = false;
    /// What row() hands to element().
    struct Row {};

    SHARDWISE_HOST_DEVICE Row row(const UpdateStep&, float*, double, int) const { return {}; }
    SHARDWISE_HOST_DEVICE void element(const Row&, float&, float) const {}
};
static_assert(SparseOptimizer<Frozen> && !rule_learns<Frozen>);

}  // namespace shardwise::inline SHARDWISE_ABI
