// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>

#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// Stochastic gradient descent.

namespace shardwise::inline SHARDWISE_ABI {

/// w <- w - learning_rate * g.
struct Sgd {
    static constexpr const char* name = "sgd";
    static constexpr int row_slots = 0;
    static constexpr int element_slots = 0;
    static constexpr bool needs_row_norm = false;
    /// What row() hands to element().
    struct Row {
        float learning_rate;
    };

    SHARDWISE_HOST_DEVICE Row row(const UpdateStep& step, float*, double, int) const { return {step.learning_rate}; }
    SHARDWISE_HOST_DEVICE void element(const Row& row, float& weight, float gradient) const {
        weight = std::fma(-row.learning_rate, gradient, weight);
    }
};
static_assert(SparseOptimizer<Sgd>);

}  // namespace shardwise::inline SHARDWISE_ABI
