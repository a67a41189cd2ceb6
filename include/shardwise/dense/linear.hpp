// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/dense/activation.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/gemm.hpp"
#include "shardwise/dense/initialization.hpp"
#include "shardwise/dense/parameter.hpp"

/// \file
/// An affine map, with the activation that follows it.

namespace shardwise::inline SHARDWISE_ABI {

/// y = Activation(x W^T + b) with W (outputs, inputs) and b (outputs), as torch.nn.Linear.
///
/// Holds no activations and never allocates: the caller brings x, y and their gradients.
class Linear {
  public:
    enum class Bias : std::uint8_t { one_an_output, none };

    /// Reserves `<name>.weight` (outputs, inputs) and `<name>.bias` (1, outputs) in `set`, which outlives this layer.
    /// \throws BadInput when a size is not positive or a name is taken
    Linear(ParameterSet& set, const std::string& name, std::int64_t inputs, std::int64_t outputs,
           Bias bias = Bias::one_an_output)
        : weight_{&set.reserve(name + ".weight", outputs, inputs)},
          bias_{bias == Bias::none ? nullptr : &set.reserve(name + ".bias", 1, outputs)} {}

    [[nodiscard]] std::int64_t inputs() const noexcept { return weight_->columns; }
    [[nodiscard]] std::int64_t outputs() const noexcept { return weight_->rows; }
    [[nodiscard]] const Parameter& weight() const noexcept { return *weight_; }
    /// Null without one.
    [[nodiscard]] const Parameter* bias() const noexcept { return bias_; }

    /// Initial values: uniform with mean 0 and the variances of the reference DLRM's normal distributions,
    /// 2 / (inputs + outputs) for the weight and 1 / outputs for the bias. A function of seed and parameter indices.
    void initialize(std::uint64_t seed) const {
        initialize_weight(seed);
        if (bias_ != nullptr)
            fill_uniform(bias_->values(), uniform_bound(1.0 / static_cast<double>(outputs())), seed,
                         static_cast<std::uint64_t>(bias_->index));
    }
    /// The same for the weight alone; the bias stays as it is, zero at first.
    void initialize_weight(std::uint64_t seed) const {
        fill_uniform(weight_->values(), uniform_bound(2.0 / static_cast<double>(inputs() + outputs())), seed,
                     static_cast<std::uint64_t>(weight_->index));
    }

    /// y = Activation(x W^T + b). Not collective; 2 * samples * inputs * outputs flops.
    /// \param x  (samples, inputs) \param y  (samples, outputs), does not overlap x
    /// \param products  in which they are taken; null: one product in single precision
    template <class Activation = Identity>
    void forward(MatrixView<const float> x, MatrixView<float> y, BatchProducts* products = nullptr) const {
        if (products != nullptr) {
            products->nt(x, weight_->value, y);
        } else {
            gemm_nt(x, weight_->value, y);
        }
        if (bias_ != nullptr)
            activate<Activation>(y, bias_->value.data());
        else
            activate<Activation>(y);
    }

    /// Overwrites the gradients of weight and bias, given the gradient with respect to z = x W^T + b.
    /// A bias gradient is summed in the order of the samples, from +0. Not collective; as many flops as forward.
    /// \param x  (samples, inputs), as in forward \param dz  (samples, outputs)
    /// \param products  overwrites the wide gradients instead, of a set that has some
    void backward(MatrixView<const float> x, MatrixView<const float> dz, BatchProducts* products = nullptr) const {
        if (products != nullptr) {
            products->tn(dz, x, weight_->wide_gradient);
            if (bias_ != nullptr) sum_samples(dz, bias_->wide_gradient.data());
        } else {
            gemm_tn(dz, x, weight_->gradient);
            if (bias_ != nullptr) sum_samples(dz, bias_->gradient.data());
        }
    }

    /// The gradient with respect to x, dx = dz W. Not collective; as many flops as forward.
    /// \param dz  (samples, outputs) \param dx  (samples, inputs), does not overlap dz
    void backward_input(MatrixView<const float> dz, MatrixView<float> dx, BatchProducts* products = nullptr) const {
        if (products != nullptr) {
            products->nn(dz, weight_->value, dx);
        } else {
            gemm_nn(dz, weight_->value, dx);
        }
    }

  private:
    template <class T>
    void sum_samples(MatrixView<const float> dz, T* sum) const {
        std::fill_n(sum, outputs(), T{0});
        for (std::int64_t i = 0; i < dz.rows(); ++i) {
            const float* row = dz.row(i);
            for (std::int64_t j = 0; j < outputs(); ++j)
                sum[j] += row[j];
        }
    }

    const Parameter* weight_;
    const Parameter* bias_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
