// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>

#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/optimizer/moment_scale.hpp"
#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// RMSProp with a moment an element, lazy: rows that no sample touched keep their weights and moments.

namespace shardwise::inline SHARDWISE_ABI {

/// v <- v + (1 - alpha) * (g * g - v); w <- w - learning_rate * g / (sqrt(v / moment_scale) + epsilon). As
/// torch.optim.RMSprop, neither centered nor with momentum, on the rows that a batch touched.
struct RmsProp {
    static constexpr const char* name = "rms_prop";
    static constexpr int row_slots = 0;
    static constexpr int element_slots = 1;
    static constexpr bool needs_row_norm = false;
    /// What row() hands to element().
    struct Row {
        float learning_rate;
        float square_share;  ///< 1 - alpha
        float moment_scale;
    };

    double alpha = 0.99;
    float epsilon = 1e-8F;
    float moment_scale = as_many_as_groups;

    /// Checks the constants.
    /// \throws BadInput for an alpha outside of [0, 1), and an epsilon that is negative or no finite number
    void check() const {
        detail::require_beta(name, "alpha", alpha);
        detail::require_not_negative(name, "epsilon", epsilon);
    }
    void add_to(Digest& digest) const { digest.add(alpha).add(epsilon).add(detail::divisor_of(moment_scale)); }

    SHARDWISE_HOST_DEVICE Row row(const UpdateStep& step, float*, double, int) const {
        return {.learning_rate = step.learning_rate,
                .square_share = static_cast<float>(1.0 - alpha),
                .moment_scale = detail::divisor_of(moment_scale)};
    }
    SHARDWISE_HOST_DEVICE void element(const Row& row, float& weight, float gradient, float& square) const {
        square = std::fma(row.square_share, std::fma(gradient, gradient, -square), square);
        weight = std::fma(-row.learning_rate, gradient / (std::sqrt(square / row.moment_scale) + epsilon), weight);
    }
};
static_assert(SparseOptimizer<RmsProp>);

}  // namespace shardwise::inline SHARDWISE_ABI
