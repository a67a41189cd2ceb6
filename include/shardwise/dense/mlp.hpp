// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/dense/activation.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/linear.hpp"
#include "shardwise/dense/parameter.hpp"

/// \file
/// A multi-layer perceptron.

namespace shardwise::inline SHARDWISE_ABI {

/// Linear layers with an activation after each.
///
/// Keeps the outputs of its layers from forward to backward in work buffers that grow when a batch is larger than all
/// before it, and allocates nothing otherwise.
/// \tparam Hidden  activation between two layers \tparam Last  activation after the last layer
template <class Hidden = Relu, class Last = Identity>
class Mlp {
  public:
    /// Reserves the parameters of each layer in `set`, which outlives this.
    ///
    /// Their names are `<name>.<layer>.weight` and `<name>.<layer>.bias`.
    /// \param widths  inputs, outputs of each hidden layer, outputs; at least two, all positive
    /// \param work    where outputs and gradients of the layers live; a MemoryAccount's `work()`
    /// \param precision  of products; but with single, backward overwrites the set's wide gradients
    /// \throws BadInput when there are fewer than two widths or one is not positive
    Mlp(ParameterSet& set, const std::string& name, std::span<const std::int64_t> widths,
        std::pmr::memory_resource& work, DensePrecision precision = DensePrecision::single)
        : output_buffer_{work}, gradient_buffers_{Buffer<float>{work}, Buffer<float>{work}} {
        if (widths.size() < 2)
            throw BadInput{concat({"'", name, "' has ", widths.size(),
                                   " widths: give the number of inputs and of the outputs of each layer"})};
        for (std::size_t i = 1; i < widths.size(); ++i) {
            layers_.emplace_back(set, name + "." + std::to_string(i - 1), widths[i - 1], widths[i]);
            widest_ = std::max(widest_, widths[i]);
        }
        outputs_.resize(layers_.size());
        if (precision != DensePrecision::single) products_.emplace(precision, work);
    }

    [[nodiscard]] std::int64_t inputs() const noexcept { return layers_.front().inputs(); }
    [[nodiscard]] std::int64_t outputs() const noexcept { return layers_.back().outputs(); }
    [[nodiscard]] std::span<const Linear> layers() const noexcept { return layers_; }

    /// Initial values of all layers; see Linear::initialize.
    void initialize(std::uint64_t seed) const {
        for (const Linear& layer : layers_)
            layer.initialize(seed);
    }

    /// The output, (samples, outputs), contiguous, valid until the next forward. Not collective;
    /// 2 * samples flops a weight.
    /// \param input  (samples, inputs); has to stay as it is until backward
    MatrixView<const float> forward(MatrixView<const float> input) {
        SHARDWISE_ASSERT(input.columns() == inputs());
        input_ = input;
        std::size_t total = 0;
        for (const Linear& layer : layers_)
            total += padded(input.rows() * layer.outputs());
        float* place = output_buffer_.resize(total).data();
        for (std::size_t i = 0; i < layers_.size(); ++i) {
            outputs_[i] = {place, input.rows(), layers_[i].outputs()};
            place += padded(input.rows() * layers_[i].outputs());
            if (i + 1 < layers_.size())
                layers_[i].template forward<Hidden>(input_of(i), outputs_[i], products());
            else
                layers_[i].template forward<Last>(input_of(i), outputs_[i], products());
        }
        return outputs_.back();
    }

    /// Overwrites the gradients of all layers. Not collective; 4 * samples flops a weight, 2 * samples in the first
    /// layer.
    /// \param gradient  (samples, outputs), with respect to the output of the last forward
    void backward(MatrixView<const float> gradient) {
        const MatrixView<const float> dz = backward_to_first(gradient);
        layers_.front().backward(input_, dz, products());
    }

    /// As backward, and writes the gradient with respect to the input. 4 * samples flops a weight.
    /// \param gradient        (samples, outputs), with respect to the output of the last forward
    /// \param input_gradient  (samples, inputs), overlaps neither input nor gradient
    void backward(MatrixView<const float> gradient, MatrixView<float> input_gradient) {
        const MatrixView<const float> dz = backward_to_first(gradient);
        layers_.front().backward(input_, dz, products());
        layers_.front().backward_input(dz, input_gradient, products());
    }

  private:
    [[nodiscard]] BatchProducts* products() noexcept { return products_ ? &*products_ : nullptr; }
    static std::size_t padded(std::int64_t floats) noexcept {
        constexpr std::size_t step = buffer_alignment / sizeof(float);
        return (static_cast<std::size_t>(floats) + step - 1) / step * step;
    }
    [[nodiscard]] MatrixView<const float> input_of(std::size_t layer) const noexcept {
        return layer == 0 ? input_ : MatrixView<const float>{outputs_[layer - 1]};
    }
    /// Gradients of all layers but the first; returns that with respect to the first one's z.
    [[nodiscard]] MatrixView<const float> backward_to_first(MatrixView<const float> gradient) {
        SHARDWISE_ASSERT(gradient.rows() == input_.rows() && gradient.columns() == outputs());
        for (auto& buffer : gradient_buffers_)
            buffer.resize(static_cast<std::size_t>(input_.rows() * widest_));
        std::size_t which = 0;
        if constexpr (!std::is_same_v<Last, Identity>) {
            const MatrixView<float> dz{gradient_buffers_[which].data(), input_.rows(), outputs()};
            activate_backward<Last>(outputs_.back(), gradient, dz);
            gradient = dz;
            which ^= 1;
        }
        for (std::size_t i = layers_.size() - 1; i > 0; --i, which ^= 1) {
            const MatrixView<float> dx{gradient_buffers_[which].data(), input_.rows(), layers_[i].inputs()};
            layers_[i].backward(outputs_[i - 1], gradient, products());
            layers_[i].backward_input(gradient, dx, products());
            activate_backward<Hidden>(outputs_[i - 1], dx, dx);
            gradient = dx;
        }
        return gradient;
    }

    std::vector<Linear> layers_;
    std::optional<BatchProducts> products_;
    std::int64_t widest_ = 0;  // outputs of the widest layer
    MatrixView<const float> input_;
    std::vector<MatrixView<float>> outputs_;  // (samples, outputs) of each layer, in output_buffer_
    Buffer<float> output_buffer_;
    std::array<Buffer<float>, 2> gradient_buffers_;  // of the layer at hand and of the one below
};

}  // namespace shardwise::inline SHARDWISE_ABI
