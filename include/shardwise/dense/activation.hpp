// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"

/// \file
/// What a layer applies to each of its outputs.
///
/// An activation is a stateless type with `value(z)`, the output, and `through(y, gradient)`, the gradient with respect
/// to z, where y is the output. A user's own is one such struct.

namespace shardwise::inline SHARDWISE_ABI {

/// y = z.
struct Identity {
    [[nodiscard]] static float value(float z) noexcept { return z; }
    [[nodiscard]] static float through(float, float gradient) noexcept { return gradient; }
};

/// y = max(z, 0). The slope at 0 is 0; a NaN stays one.
struct Relu {
    [[nodiscard]] static float value(float z) noexcept { return z <= 0.0F ? 0.0F : z; }
    [[nodiscard]] static float through(float y, float gradient) noexcept { return y <= 0.0F ? 0.0F : gradient; }
};

/// y = 1 / (1 + exp(-z)), computed in double without overflow and rounded once.
struct Sigmoid {
    [[nodiscard]] static float value(float z) noexcept { return static_cast<float>(exact(z)); }
    [[nodiscard]] static float through(float y, float gradient) noexcept { return gradient * (y * (1.0F - y)); }
    /// The value before rounding.
    [[nodiscard]] static double exact(double z) noexcept {
        const double e = std::exp(-std::abs(z));
        return (z < 0.0 ? e : 1.0) / (1.0 + e);
    }
};

/// y = Activation(y + bias), row by row. Not collective; one pass over y.
/// \param y  (samples, n) \param bias  n values
template <class Activation>
void activate(MatrixView<float> y, const float* bias) {
    for (std::int64_t i = 0; i < y.rows(); ++i) {
        float* row = y.row(i);
        for (std::int64_t j = 0; j < y.columns(); ++j)
            row[j] = Activation::value(row[j] + bias[j]);
    }
}

/// y = Activation(y). Not collective; one pass over y. \param y  (samples, n)
template <class Activation>
void activate(MatrixView<float> y) {
    if constexpr (!std::is_same_v<Activation, Identity>)
        for (std::int64_t i = 0; i < y.rows(); ++i) {
            float* row = y.row(i);
            for (std::int64_t j = 0; j < y.columns(); ++j)
                row[j] = Activation::value(row[j]);
        }
}

/// The gradient with respect to z, given the output y and the gradient with respect to y; `to` may be `gradient`.
/// Not collective; one pass over the three. \param y, gradient, to  (samples, n)
template <class Activation>
void activate_backward(MatrixView<const float> y, MatrixView<const float> gradient, MatrixView<float> to) {
    SHARDWISE_ASSERT(y.rows() == gradient.rows() && y.columns() == gradient.columns());
    SHARDWISE_ASSERT(y.rows() == to.rows() && y.columns() == to.columns());
    for (std::int64_t i = 0; i < y.rows(); ++i) {
        const float* output = y.row(i);
        const float* from = gradient.row(i);
        float* result = to.row(i);
        for (std::int64_t j = 0; j < y.columns(); ++j)
            result[j] = Activation::through(output[j], from[j]);
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
