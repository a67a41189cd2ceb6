// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/dense/linear.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/dense/wide_products.hpp"

/// \file
/// The cross network of DCN v2 (Wang et al., DCN V2, 2021, section 3): explicit products of features.

namespace shardwise::inline SHARDWISE_ABI {

/// The shape of a CrossNet.
struct CrossNetConfig {
    std::int64_t width = 0;   ///< elements of the input, and of the output
    std::int64_t layers = 0;  ///< each raises the degree of the products by one
    std::int64_t rank = 0;    ///< of each layer's weight, which is then a product of two; 0: full, one square weight
};

/// x[l+1] = x[0] * (W[l] x[l] + b[l]) + x[l], where * goes element by element, and W[l] = U[l] V[l] with a rank.
/// Not collective.
class CrossNet {
  public:
    /// Reserves `<name>.<layer>.u.weight` (width, rank), `.u.bias` and `.v.weight` (rank, width) for each layer in
    /// `set`, which outlives this; without a rank `<name>.<layer>.w.weight` (width, width) and `.w.bias`.
    ///
    /// \param work  where outputs and gradients of the layers live; a MemoryAccount's `work()`
    ///
    /// \param precision  wide: products are summed in double, and backward overwrites the set's wide gradients
    ///
    /// \throws BadInput when the width or the number of layers is not positive, or the rank negative
    CrossNet(ParameterSet& set, const std::string& name, const CrossNetConfig& config, std::pmr::memory_resource& work,
             DensePrecision precision = DensePrecision::single)
        : config_{checked(name, config)}, outputs_{work}, lower_{work}, gradient_{work} {
        for (std::int64_t l = 0; l < config.layers; ++l) {
            const std::string layer = name + "." + std::to_string(l);
            if (config.rank == 0) {
                upper_.emplace_back(set, layer + ".w", config.width, config.width);
            } else {
                upper_.emplace_back(set, layer + ".u", config.rank, config.width);
                down_.emplace_back(set, layer + ".v", config.width, config.rank, Linear::Bias::none);
            }
        }
        if (precision == DensePrecision::wide) wide_.emplace(work);
    }

    [[nodiscard]] const CrossNetConfig& config() const noexcept { return config_; }
    /// Of forward and backward together, a sample: 6 a multiplication of a weight, 6 an element and layer.
    [[nodiscard]] std::int64_t flops() const noexcept {
        const std::int64_t weights =
            config_.rank == 0 ? config_.width * config_.width : 2 * config_.width * config_.rank;
        return 6 * config_.layers * (weights + config_.width);
    }

    /// Initial values: weights uniform with variance 2 / (inputs + outputs), biases zero. A function of seed and
    /// parameter indices.
    void initialize(std::uint64_t seed) const {
        for (const std::vector<Linear>* layers : {&upper_, &down_})
            for (const Linear& layer : *layers)
                layer.initialize_weight(seed);
    }

    /// The output, (samples, width), contiguous, valid until the next forward.
    /// \param input  (samples, width); has to stay as it is until backward
    MatrixView<const float> forward(MatrixView<const float> input) {
        SHARDWISE_ASSERT(input.columns() == config_.width);
        input_ = input;
        outputs_.resize(size(2 * config_.layers * config_.width));
        lower_.resize(size(config_.layers * config_.rank));
        for (std::int64_t l = 0; l < config_.layers; ++l) {
            const MatrixView<const float> x = layer_input(l);
            const MatrixView<float> z = product(l);
            if (config_.rank != 0) down(l).forward(x, lower(l), wide());
            upper(l).forward(config_.rank == 0 ? x : MatrixView<const float>{lower(l)}, z, wide());
            const MatrixView<float> y = output(l);
            for (std::int64_t i = 0; i < y.rows(); ++i)
                for (std::int64_t j = 0; j < y.columns(); ++j)
                    y(i, j) = std::fma(input_(i, j), z(i, j), x(i, j));
        }
        return layer_input(config_.layers);
    }

    /// Overwrites the gradients of all layers, and writes the gradient with respect to the input.
    /// \param gradient        (samples, width), with respect to the output of the last forward
    /// \param input_gradient  (samples, width), overlaps neither input nor gradient
    void backward(MatrixView<const float> gradient, MatrixView<float> input_gradient) {
        SHARDWISE_ASSERT(gradient.rows() == input_.rows() && gradient.columns() == config_.width);
        gradient_.resize(size(3 * config_.width + config_.rank));
        const std::int64_t all = input_.rows() * config_.width;
        const MatrixView<float> dx{gradient_.data(), input_.rows(), config_.width};  // of the layer's output
        const MatrixView<float> dz{gradient_.data() + all, input_.rows(), config_.width};
        const MatrixView<float> through{gradient_.data() + 2 * all, input_.rows(), config_.width};
        const MatrixView<float> below{gradient_.data() + 3 * all, input_.rows(), config_.rank};
        for (std::int64_t i = 0; i < dx.rows(); ++i) {
            std::copy_n(gradient.row(i), dx.columns(), dx.row(i));
            std::fill_n(input_gradient.row(i), dx.columns(), 0.0F);
        }
        for (std::int64_t l = config_.layers - 1; l >= 0; --l) {
            const MatrixView<float> z = product(l);
            for (std::int64_t i = 0; i < dx.rows(); ++i)
                for (std::int64_t j = 0; j < dx.columns(); ++j) {
                    dz(i, j) = dx(i, j) * input_(i, j);
                    input_gradient(i, j) = std::fma(dx(i, j), z(i, j), input_gradient(i, j));
                }
            if (config_.rank == 0) {
                upper(l).backward(layer_input(l), dz, wide());
                upper(l).backward_input(dz, through, wide());
            } else {
                upper(l).backward(lower(l), dz, wide());
                upper(l).backward_input(dz, below, wide());
                down(l).backward(layer_input(l), below, wide());
                down(l).backward_input(below, through, wide());
            }
            for (std::int64_t i = 0; i < dx.rows(); ++i)
                for (std::int64_t j = 0; j < dx.columns(); ++j)
                    dx(i, j) += through(i, j);
        }
        for (std::int64_t i = 0; i < dx.rows(); ++i)
            for (std::int64_t j = 0; j < dx.columns(); ++j)
                input_gradient(i, j) += dx(i, j);
    }

  private:
    static const CrossNetConfig& checked(const std::string& name, const CrossNetConfig& config) {
        if (config.width < 1 || config.layers < 1 || config.rank < 0)
            throw BadInput{"cross network '" + name + "' of width " + std::to_string(config.width) + ", " +
                           std::to_string(config.layers) + " layers and rank " + std::to_string(config.rank) +
                           ": width and layers are at least 1, the rank at least 1, or 0 for full weights"};
        return config;
    }
    [[nodiscard]] WideProducts* wide() noexcept { return wide_ ? &*wide_ : nullptr; }
    [[nodiscard]] std::size_t size(std::int64_t columns) const noexcept {
        return static_cast<std::size_t>(input_.rows() * columns);
    }
    [[nodiscard]] const Linear& upper(std::int64_t layer) const { return upper_[static_cast<std::size_t>(layer)]; }
    [[nodiscard]] const Linear& down(std::int64_t layer) const { return down_[static_cast<std::size_t>(layer)]; }
    /// W x + b of a layer.
    [[nodiscard]] MatrixView<float> product(std::int64_t layer) { return slab(2 * layer); }
    [[nodiscard]] MatrixView<float> output(std::int64_t layer) { return slab(2 * layer + 1); }
    [[nodiscard]] MatrixView<float> slab(std::int64_t number) {
        return {outputs_.data() + number * input_.rows() * config_.width, input_.rows(), config_.width};
    }
    /// V x of a layer.
    [[nodiscard]] MatrixView<float> lower(std::int64_t layer) {
        return {lower_.data() + layer * input_.rows() * config_.rank, input_.rows(), config_.rank};
    }
    [[nodiscard]] MatrixView<const float> layer_input(std::int64_t layer) {
        return layer == 0 ? input_ : MatrixView<const float>{output(layer - 1)};
    }

    CrossNetConfig config_;
    std::vector<Linear> upper_;  // (layer)
    std::vector<Linear> down_;   // (layer), with a rank
    std::optional<WideProducts> wide_;
    MatrixView<const float> input_;
    Buffer<float> outputs_;   // (layer, product and output, samples, width)
    Buffer<float> lower_;     // (layer, samples, rank)
    Buffer<float> gradient_;  // (of output, product and way through, samples, width), (samples, rank)
};

}  // namespace shardwise::inline SHARDWISE_ABI
