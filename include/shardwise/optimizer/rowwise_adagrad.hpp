// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>

#include "shardwise/core/digest.hpp"
#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// AdaGrad with one moment a row.

namespace shardwise::inline SHARDWISE_ABI {

/// The moment grows by the sum of the squares of the row's gradient (two-dimensional sparse parallelism, Algorithm 1).
struct SumOfSquares {
    static constexpr const char* name = "rowwise_adagrad";
    SHARDWISE_HOST_DEVICE static double growth(double sum_of_squares, int) { return sum_of_squares; }
};

/// The moment grows by the mean of the squares of the row's gradient, as in FBGEMM.
struct MeanOfSquares {
    static constexpr const char* name = "rowwise_adagrad_mean";
    SHARDWISE_HOST_DEVICE static double growth(double sum_of_squares, int dim) { return sum_of_squares / dim; }
};

/// s <- s + growth of g; w <- w - learning_rate / (sqrt(s) + epsilon) * g. The growth is added in double precision.
template <class Moment = SumOfSquares>
struct RowwiseAdagrad {
    static constexpr const char* name = Moment::name;
    static constexpr int row_slots = 1;
    static constexpr int element_slots = 0;
    static constexpr bool needs_row_norm = true;
    struct Row {
        float scale;
    };

    float epsilon = 1e-8F;

    /// \throws BadInput for an epsilon that is negative or no finite number
    void check() const { detail::require_not_negative(name, "epsilon", epsilon); }
    void add_to(Digest& digest) const { digest.add(epsilon); }

    SHARDWISE_HOST_DEVICE Row row(const UpdateStep& step, float* moment, double sum_of_squares, int dim) const {
        *moment = static_cast<float>(static_cast<double>(*moment) + Moment::growth(sum_of_squares, dim));
        return {step.learning_rate / (std::sqrt(*moment) + epsilon)};
    }
    SHARDWISE_HOST_DEVICE void element(const Row& row, float& weight, float gradient) const {
        weight = std::fma(-row.scale, gradient, weight);
    }
};
static_assert(SparseOptimizer<RowwiseAdagrad<>> && SparseOptimizer<RowwiseAdagrad<MeanOfSquares>>);

}  // namespace shardwise::inline SHARDWISE_ABI
