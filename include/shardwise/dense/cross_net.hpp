// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/linear.hpp"
#include "shardwise/dense/parameter.hpp"

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
/// Not collective. A CrossNet holds weights alone: what a batch leaves from forward to backward is the caller's Work.
class CrossNet {
  public:
    /// What a batch leaves from forward to backward, in buffers that grow when it is larger than all before it.
    struct Work {
        Work() = default;
        explicit Work(std::pmr::memory_resource& memory) { on(memory); }
        /// Takes memory from `memory` from now on, where it has none yet.
        Work& on(std::pmr::memory_resource& memory) noexcept {
            for (Buffer<float>* buffer : {&outputs, &lower, &gradient})
                buffer->on(memory);
            products.on(memory);
            return *this;
        }

        MatrixView<const float> input = {};
        Buffer<float> outputs;   ///< (layer, product and output, samples, width)
        Buffer<float> lower;     ///< (layer, samples, rank)
        Buffer<float> gradient;  ///< (of output, product and way through, samples, width), (samples, rank)
        BatchProducts products;
    };

    /// Reserves the parameters of each layer in `set`, which outlives this.
    ///
    /// Their names are `<name>.<layer>.u.weight` (width, rank), `.u.bias` and `.v.weight` (rank, width); without a rank
    /// `<name>.<layer>.w.weight` (width, width) and `.w.bias`.
    ///
    /// \param precision  of products; but with single, backward overwrites the set's wide gradients
    ///
    /// \throws BadInput when the width or the number of layers is not positive, or the rank negative
    CrossNet(ParameterSet& set, const std::string& name, const CrossNetConfig& config,
             DensePrecision precision = DensePrecision::single)
        : config_{checked(name, config)}, precision_{precision} {
        for (std::int64_t l = 0; l < config.layers; ++l) {
            const std::string layer = name + "." + std::to_string(l);
            if (config.rank == 0) {
                upper_.emplace_back(set, layer + ".w", config.width, config.width);
            } else {
                upper_.emplace_back(set, layer + ".u", config.rank, config.width);
                down_.emplace_back(set, layer + ".v", config.width, config.rank, Linear::Bias::none);
            }
        }
    }

    [[nodiscard]] const CrossNetConfig& config() const noexcept { return config_; }
    /// Of forward and backward together, a sample: 6 a multiplication of a weight, 6 an element and layer.
    [[nodiscard]] static std::int64_t flops(const CrossNetConfig& config) noexcept {
        const std::int64_t weights = config.rank == 0 ? config.width * config.width : 2 * config.width * config.rank;
        return 6 * config.layers * (weights + config.width);
    }
    [[nodiscard]] std::int64_t flops() const noexcept { return flops(config_); }
    /// Weights and biases.
    [[nodiscard]] static std::int64_t parameter_count(const CrossNetConfig& config) noexcept {
        const std::int64_t weights = config.rank == 0 ? config.width * config.width : 2 * config.width * config.rank;
        return config.layers * (weights + config.width);
    }
    /// The floats that the first three buffers of a Work need for `samples`, and what its products need.
    [[nodiscard]] static std::array<std::int64_t, 3> work_floats(const CrossNetConfig& config, std::int64_t samples) {
        return {2 * config.layers * config.width * samples, config.layers * config.rank * samples,
                (3 * config.width + config.rank) * samples};
    }
    static void add_needs(const CrossNetConfig& config, std::int64_t samples, BatchProducts::Needs& needs) {
        if (config.rank == 0) return needs.add(samples, config.width, config.width);
        needs.add(samples, config.width, config.rank);
        needs.add(samples, config.rank, config.width);
    }

    /// Initial values: weights uniform with variance 2 / (inputs + outputs), biases zero. A function of seed and
    /// parameter indices.
    void initialize(std::uint64_t seed) const {
        for (const std::vector<Linear>* layers : {&upper_, &down_})
            for (const Linear& layer : *layers)
                layer.initialize_weight(seed);
    }

    /// The output, (samples, width), contiguous, valid until the next forward with this Work.
    /// \param input  (samples, width); has to stay as it is until backward
    MatrixView<const float> forward(MatrixView<const float> input, Work& work) const {
        SHARDWISE_ASSERT(input.columns() == config_.width);
        const auto [outputs, lowers, gradients] = work_floats(config_, input.rows());
        work.input = input;
        work.outputs.resize(static_cast<std::size_t>(outputs));
        work.lower.resize(static_cast<std::size_t>(lowers));
        for (std::int64_t l = 0; l < config_.layers; ++l) {
            const MatrixView<const float> x = layer_input(work, l);
            const MatrixView<float> z = product(work, l);
            if (config_.rank != 0) down(l).forward(x, lower(work, l), products(work));
            upper(l).forward(config_.rank == 0 ? x : MatrixView<const float>{lower(work, l)}, z, products(work));
            const MatrixView<float> y = output(work, l);
            for (std::int64_t i = 0; i < y.rows(); ++i) {
                const float* const first = input.row(i);
                const float* const below = x.row(i);
                const float* const through = z.row(i);
                float* __restrict to = y.row(i);
                for (std::int64_t j = 0; j < config_.width; ++j)
                    to[j] = std::fma(first[j], through[j], below[j]);
            }
        }
        return last_output(work);
    }
    /// What the last forward with this Work returned.
    [[nodiscard]] MatrixView<const float> last_output(Work& work) const { return layer_input(work, config_.layers); }

    /// Overwrites the gradients of all layers, and writes the gradient with respect to the input.
    /// \param work            as the last forward left it
    /// \param gradient        (samples, width), with respect to the output of that forward
    /// \param input_gradient  (samples, width), overlaps neither input nor gradient
    void backward(Work& work, MatrixView<const float> gradient, MatrixView<float> input_gradient) const {
        const MatrixView<const float> input = work.input;
        SHARDWISE_ASSERT(gradient.rows() == input.rows() && gradient.columns() == config_.width);
        work.gradient.resize(static_cast<std::size_t>(work_floats(config_, input.rows())[2]));
        const std::int64_t width = config_.width;
        const std::int64_t all = input.rows() * width;
        const MatrixView<float> dx{work.gradient.data(), input.rows(), width};  // of the layer's output
        const MatrixView<float> dz{dx.data() + all, input.rows(), width};
        const MatrixView<float> through{dz.data() + all, input.rows(), width};
        const MatrixView<float> below{through.data() + all, input.rows(), config_.rank};
        for (std::int64_t i = 0; i < dx.rows(); ++i) {
            std::copy_n(gradient.row(i), width, dx.row(i));
            std::fill_n(input_gradient.row(i), width, 0.0F);
        }
        for (std::int64_t l = config_.layers - 1; l >= 0; --l) {
            const MatrixView<float> z = product(work, l);
            for (std::int64_t i = 0; i < dx.rows(); ++i) {
                const float* const first = input.row(i);
                const float* const of_output = dx.row(i);
                const float* const product_row = z.row(i);
                float* __restrict of_product = dz.row(i);
                float* __restrict of_input = input_gradient.row(i);
                for (std::int64_t j = 0; j < width; ++j) {
                    of_product[j] = of_output[j] * first[j];
                    of_input[j] = std::fma(of_output[j], product_row[j], of_input[j]);
                }
            }
            if (config_.rank == 0) {
                upper(l).backward(layer_input(work, l), dz, products(work));
                upper(l).backward_input(dz, through, products(work));
            } else {
                upper(l).backward(lower(work, l), dz, products(work));
                upper(l).backward_input(dz, below, products(work));
                down(l).backward(layer_input(work, l), below, products(work));
                down(l).backward_input(below, through, products(work));
            }
            add(through, dx);
        }
        add(dx, input_gradient);
    }

  private:
    static const CrossNetConfig& checked(const std::string& name, const CrossNetConfig& config) {
        if (config.width < 1 || config.layers < 1 || config.rank < 0)
            throw BadInput{
                concat({"cross network '", name, "' of width ", config.width, ", ", config.layers, " layers and rank ",
                        config.rank, ": width and layers are at least 1, the rank at least 1, or 0 for full weights"})};
        return config;
    }
    static void add(MatrixView<const float> terms, MatrixView<float> sums) {
        for (std::int64_t i = 0; i < sums.rows(); ++i) {
            const float* const from = terms.row(i);
            float* __restrict to = sums.row(i);
            for (std::int64_t j = 0; j < sums.columns(); ++j)
                to[j] += from[j];
        }
    }
    [[nodiscard]] BatchProducts* products(Work& work) const noexcept { return work.products.in(precision_); }
    [[nodiscard]] const Linear& upper(std::int64_t layer) const { return upper_[static_cast<std::size_t>(layer)]; }
    [[nodiscard]] const Linear& down(std::int64_t layer) const { return down_[static_cast<std::size_t>(layer)]; }
    /// W x + b of a layer.
    [[nodiscard]] MatrixView<float> product(Work& work, std::int64_t layer) const { return slab(work, 2 * layer); }
    [[nodiscard]] MatrixView<float> output(Work& work, std::int64_t layer) const { return slab(work, 2 * layer + 1); }
    [[nodiscard]] MatrixView<float> slab(Work& work, std::int64_t number) const {
        return {work.outputs.data() + number * work.input.rows() * config_.width, work.input.rows(), config_.width};
    }
    /// V x of a layer.
    [[nodiscard]] MatrixView<float> lower(Work& work, std::int64_t layer) const {
        return {work.lower.data() + layer * work.input.rows() * config_.rank, work.input.rows(), config_.rank};
    }
    [[nodiscard]] MatrixView<const float> layer_input(Work& work, std::int64_t layer) const {
        return layer == 0 ? work.input : MatrixView<const float>{output(work, layer - 1)};
    }

    CrossNetConfig config_;
    DensePrecision precision_;
    std::vector<Linear> upper_;  // (layer)
    std::vector<Linear> down_;   // (layer), with a rank
};

}  // namespace shardwise::inline SHARDWISE_ABI
