// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>

#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// An optimizer of the user's own: one struct, outside of the library.

namespace extending {

/// FTRL-Proximal, which click models of one weight a feature learn by (McMahan et al., Ad click prediction, 2013):
/// n <- n + g * g; z <- z + g - (sqrt(n) - sqrt(n before)) / learning_rate * w;
/// w <- 0 where |z| <= l1, else (sign(z) * l1 - z) / ((beta + sqrt(n)) / learning_rate).
///
/// It names its state (here: two floats an element, zero at first), and updates one element. Gathering gradients, their
/// order, the wire, column shards and checkpoints are the layer's business.
struct Ftrl {
    static constexpr const char* name = "ftrl";
    static constexpr int row_slots = 0;
    static constexpr int element_slots = 2;
    static constexpr bool needs_row_norm = false;
    struct Row {
        float learning_rate;
    };

    float l1 = 0.0F;  ///< weights of rows that say little become exactly 0
    float beta = 1.0F;

    SHARDWISE_HOST_DEVICE Row row(const shardwise::UpdateStep& step, float*, double, int) const {
        return {step.learning_rate};
    }
    SHARDWISE_HOST_DEVICE void element(const Row& row, float& weight, float gradient, float& square, float& sum) const {
        const float before = std::sqrt(square);
        square = std::fma(gradient, gradient, square);
        const float root = std::sqrt(square);
        sum = std::fma(-(root - before) / row.learning_rate, weight, sum + gradient);
        weight = std::fabs(sum) <= l1 ? 0.0F : (std::copysign(l1, sum) - sum) * row.learning_rate / (beta + root);
    }
};
static_assert(shardwise::SparseOptimizer<Ftrl>);

}  // namespace extending
