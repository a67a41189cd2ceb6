// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>

#include "shardwise/core/digest.hpp"
#include "shardwise/optimizer/moment_scale.hpp"
#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// AdaGrad with a moment an element.

namespace shardwise::inline SHARDWISE_ABI {

/// s <- s + g * g; w <- w - learning_rate * g / (sqrt(s / moment_scale) + epsilon). As torch.optim.Adagrad on a sparse
/// gradient.
struct Adagrad {
    static constexpr const char* name = "adagrad";
    static constexpr int row_slots = 0;
    static constexpr int element_slots = 1;
    static constexpr bool needs_row_norm = false;
    /// What row() hands to element().
    struct Row {
        float learning_rate;
        float moment_scale;
    };

    float epsilon = 1e-10F;
    float moment_scale = as_many_as_groups;

    /// Checks the constants.
    /// \throws BadInput for an epsilon that is negative or no finite number
    void check() const { detail::require_not_negative(name, "epsilon", epsilon); }
    void add_to(Digest& digest) const { digest.add(epsilon).add(detail::divisor_of(moment_scale)); }

    SHARDWISE_HOST_DEVICE Row row(const UpdateStep& step, float*, double, int) const {
        return {.learning_rate = step.learning_rate, .moment_scale = detail::divisor_of(moment_scale)};
    }
    SHARDWISE_HOST_DEVICE void element(const Row& row, float& weight, float gradient, float& sum) const {
        sum = std::fma(gradient, gradient, sum);
        weight = std::fma(-row.learning_rate, gradient / (std::sqrt(sum / row.moment_scale) + epsilon), weight);
    }
};
static_assert(SparseOptimizer<Adagrad>);

}  // namespace shardwise::inline SHARDWISE_ABI
