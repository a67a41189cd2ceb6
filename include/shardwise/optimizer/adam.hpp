// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>

#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/optimizer/bias_correction.hpp"
#include "shardwise/optimizer/moment_scale.hpp"
#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// Adam, lazy: rows that no sample touched keep their weights and moments.

namespace shardwise::inline SHARDWISE_ABI {

/// m <- m + (1 - beta1) * (g - m); v <- v + (1 - beta2) * (g * g - v);
/// w <- w - learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v / moment_scale) + epsilon),
/// where t counts the layer's steps, not the row's. As torch.optim.SparseAdam, whose betas are doubles too: of a float
/// 0.999, 1 - beta would be 1.3e-5 off.
struct Adam {
    static constexpr const char* name = "adam";
    static constexpr int row_slots = 0;
    static constexpr int element_slots = 2;
    static constexpr bool needs_row_norm = false;
    /// What row() hands to element().
    struct Row {
        float step_size;
        float mean_share;    ///< 1 - beta1
        float square_share;  ///< 1 - beta2
        float moment_scale;
    };

    double beta1 = 0.9;
    double beta2 = 0.999;
    float epsilon = 1e-8F;
    float moment_scale = as_many_as_groups;  ///< of v

    /// Checks the constants.
    /// \throws BadInput for a beta outside of [0, 1), and an epsilon that is negative or no finite number
    void check() const {
        detail::require_beta(name, "beta1", beta1);
        detail::require_beta(name, "beta2", beta2);
        detail::require_not_negative(name, "epsilon", epsilon);
    }
    void add_to(Digest& digest) const {
        digest.add(beta1).add(beta2).add(epsilon).add(detail::divisor_of(moment_scale));
    }

    SHARDWISE_HOST_DEVICE Row row(const UpdateStep& step, float*, double, int) const {
        const double correction1 = bias_correction(beta1, step.step);
        const double correction2 = bias_correction(beta2, step.step);
        return {.step_size = static_cast<float>(step.learning_rate * std::sqrt(correction2) / correction1),
                .mean_share = static_cast<float>(1.0 - beta1),
                .square_share = static_cast<float>(1.0 - beta2),
                .moment_scale = detail::divisor_of(moment_scale)};
    }
    SHARDWISE_HOST_DEVICE void element(const Row& row, float& weight, float gradient, float& mean,
                                       float& square) const {
        mean = std::fma(row.mean_share, gradient - mean, mean);
        square = std::fma(row.square_share, std::fma(gradient, gradient, -square), square);
        weight = std::fma(-row.step_size, mean / (std::sqrt(square / row.moment_scale) + epsilon), weight);
    }
};
static_assert(SparseOptimizer<Adam>);

}  // namespace shardwise::inline SHARDWISE_ABI
