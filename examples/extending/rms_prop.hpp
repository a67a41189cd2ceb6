// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>

#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// An optimizer of the user's own: one struct, outside of the library.

namespace extending {

/// s <- s + (1 - decay) * (g * g - s); w <- w - learning_rate * g / (sqrt(s) + epsilon).
///
/// It names its state (here: one float an element, zero at first), and updates one element. Gathering gradients, their
/// order, the wire, column shards and checkpoints are the layer's business.
struct RmsProp {
    static constexpr const char* name = "rms_prop";
    static constexpr int row_slots = 0;
    static constexpr int element_slots = 1;
    static constexpr bool needs_row_norm = false;
    struct Row {
        float learning_rate;
    };

    float decay = 0.9F;
    float epsilon = 1e-8F;

    SHARDWISE_HOST_DEVICE Row row(const shardwise::UpdateStep& step, float*, double, int) const {
        return {step.learning_rate};
    }
    SHARDWISE_HOST_DEVICE void element(const Row& row, float& weight, float gradient, float& square) const {
        square = std::fma(1.0F - decay, std::fma(gradient, gradient, -square), square);
        weight = std::fma(-row.learning_rate, gradient / (std::sqrt(square) + epsilon), weight);
    }
};
static_assert(shardwise::SparseOptimizer<RmsProp>);

}  // namespace extending
