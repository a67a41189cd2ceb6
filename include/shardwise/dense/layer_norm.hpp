// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/parameter.hpp"

/// \file
/// Layer normalization (Ba, Kiros and Hinton, "Layer Normalization", 2016).

namespace shardwise::inline SHARDWISE_ABI {

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, row by row, as torch.nn.LayerNorm: the variance is the
/// mean of squares of deviations.
///
/// A row is computed in double and rounded once, so that it is a function of the row alone. Not collective; two passes
/// over the rows forward, three backward. A LayerNorm holds weights alone: what a batch leaves from forward to backward
/// is the caller's Work.
class LayerNorm {
  public:
    static constexpr double epsilon = 1e-5;

    /// What a batch leaves from forward to backward, in a buffer that grows when it is larger than all before it.
    struct Work {
        Work() = default;
        explicit Work(std::pmr::memory_resource& memory) : scales{memory} {}
        Buffer<double> scales;  ///< (rows, mean and 1 / deviation)
    };

    /// Reserves `<name>.weight` (1, width) and `<name>.bias` (1, width) in `set`, which outlives this.
    /// \param precision  but with single, backward overwrites the set's wide gradients
    /// \throws BadInput when the width is not positive or a name is taken
    LayerNorm(ParameterSet& set, const std::string& name, std::int64_t width,
              DensePrecision precision = DensePrecision::single)
        : weight_{&set.reserve(name + ".weight", 1, width)},
          bias_{&set.reserve(name + ".bias", 1, width)},
          precision_{precision} {}

    [[nodiscard]] std::int64_t width() const noexcept { return weight_->columns; }

    /// Weights of 1 and biases of 0.
    void initialize() const {
        std::fill_n(weight_->value.data(), width(), 1.0F);
        std::fill_n(bias_->value.data(), width(), 0.0F);
    }

    /// \param x  (rows, width); has to stay as it is until backward \param y  (rows, width), does not overlap x
    void forward(MatrixView<const float> x, MatrixView<float> y, Work& work) const {
        SHARDWISE_ASSERT(x.columns() == width() && y.rows() == x.rows() && y.columns() == width());
        double* scale = work.scales.resize(static_cast<std::size_t>(2 * x.rows())).data();
        const float* weight = weight_->value.data();
        const float* bias = bias_->value.data();
        for (std::int64_t i = 0; i < x.rows(); ++i, scale += 2) {
            const float* from = x.row(i);
            float* to = y.row(i);
            double sum = 0.0;
            for (std::int64_t j = 0; j < width(); ++j)
                sum += static_cast<double>(from[j]);
            const double mean = sum / static_cast<double>(width());
            double squares = 0.0;
            for (std::int64_t j = 0; j < width(); ++j) {
                const double deviation = from[j] - mean;
                squares = std::fma(deviation, deviation, squares);
            }
            const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(width()) + epsilon);
            for (std::int64_t j = 0; j < width(); ++j)
                to[j] = static_cast<float>(
                    std::fma((from[j] - mean) * inverse, static_cast<double>(weight[j]), static_cast<double>(bias[j])));
            scale[0] = mean;
            scale[1] = inverse;
        }
    }

    /// Overwrites the gradients of weight and bias, summed over the rows in order from +0.
    /// \param work, x   as in the last forward \param dy  (rows, width), with respect to its y
    /// \param dx        (rows, width), with respect to x; may be dy
    void backward(const Work& work, MatrixView<const float> x, MatrixView<const float> dy, MatrixView<float> dx) const {
        SHARDWISE_ASSERT(work.scales.size() == static_cast<std::size_t>(2 * x.rows()) && dy.rows() == x.rows());
        if (precision_ != DensePrecision::single) {
            parameters_backward(work, x, dy, weight_->wide_gradient.data(), bias_->wide_gradient.data());
        } else {
            parameters_backward(work, x, dy, weight_->gradient.data(), bias_->gradient.data());
        }
        const double* scale = work.scales.data();
        const float* weight = weight_->value.data();
        const auto count = static_cast<double>(width());
        for (std::int64_t i = 0; i < x.rows(); ++i, scale += 2) {
            const float* from = x.row(i);
            const float* g = dy.row(i);
            float* to = dx.row(i);
            double sum = 0.0;
            double dot = 0.0;
            for (std::int64_t j = 0; j < width(); ++j) {
                const double scaled = static_cast<double>(g[j]) * weight[j];
                sum += scaled;
                dot = std::fma(scaled, (from[j] - scale[0]) * scale[1], dot);
            }
            for (std::int64_t j = 0; j < width(); ++j) {
                const double scaled = static_cast<double>(g[j]) * weight[j];
                const double normal = (from[j] - scale[0]) * scale[1];
                to[j] = static_cast<float>(scale[1] * (std::fma(-normal, dot / count, scaled) - sum / count));
            }
        }
    }

  private:
    template <class T>
    void parameters_backward(const Work& work, MatrixView<const float> x, MatrixView<const float> dy, T* of_weight,
                             T* of_bias) const {
        std::fill_n(of_weight, width(), T{0});
        std::fill_n(of_bias, width(), T{0});
        const double* scale = work.scales.data();
        for (std::int64_t i = 0; i < x.rows(); ++i, scale += 2) {
            const float* from = x.row(i);
            const float* g = dy.row(i);
            for (std::int64_t j = 0; j < width(); ++j) {
                of_weight[j] = static_cast<T>(std::fma(static_cast<double>(g[j]), (from[j] - scale[0]) * scale[1],
                                                       static_cast<double>(of_weight[j])));
                of_bias[j] += static_cast<T>(g[j]);
            }
        }
    }

    const Parameter* weight_;
    const Parameter* bias_;
    DensePrecision precision_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
