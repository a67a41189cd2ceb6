// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>

#include "shardwise/core/digest.hpp"
#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// Adam, lazy: rows that no sample touched keep their weights and moments.

namespace shardwise::inline SHARDWISE_ABI {

/// m <- m + (1 - beta1) * (g - m); v <- v + (1 - beta2) * (g * g - v);
/// w <- w - learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon),
/// where t counts the layer's steps, not the row's. As torch.optim.SparseAdam.
struct Adam {
    static constexpr const char* name = "adam";
    static constexpr int row_slots = 0;
    static constexpr int element_slots = 2;
    static constexpr bool needs_row_norm = false;
    struct Row {
        float step_size;
    };

    float beta1 = 0.9F;
    float beta2 = 0.999F;
    float epsilon = 1e-8F;

    void add_to(Digest& digest) const { digest.add(beta1).add(beta2).add(epsilon); }

    SHARDWISE_HOST_DEVICE Row row(const UpdateStep& step, float*, double, int) const {
        // 1 - power, written so that no compiler fuses it with the last product of the power
        const double correction1 = std::fma(-power(beta1, step.step), 1.0, 1.0);
        const double correction2 = std::fma(-power(beta2, step.step), 1.0, 1.0);
        return {static_cast<float>(step.learning_rate * std::sqrt(correction2) / correction1)};
    }
    SHARDWISE_HOST_DEVICE void element(const Row& row, float& weight, float gradient, float& mean,
                                       float& square) const {
        mean = std::fma(1.0F - beta1, gradient - mean, mean);
        square = std::fma(1.0F - beta2, std::fma(gradient, gradient, -square), square);
        weight = std::fma(-row.step_size, mean / (std::sqrt(square) + epsilon), weight);
    }

  private:
    /// By squaring, so that the value does not depend on a math library.
    SHARDWISE_HOST_DEVICE static double power(double base, std::int64_t exponent) {
        double result = 1.0;
        for (; exponent > 0; exponent /= 2) {
            if (exponent % 2 == 1) result *= base;
            base *= base;
        }
        return result;
    }
};
static_assert(SparseOptimizer<Adam>);

}  // namespace shardwise::inline SHARDWISE_ABI
