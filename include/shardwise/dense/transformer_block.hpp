// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/dense/activation.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/jagged_rows.hpp"
#include "shardwise/dense/layer_norm.hpp"
#include "shardwise/dense/linear.hpp"
#include "shardwise/dense/multi_head_attention.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/dense/softmax.hpp"

/// \file
/// A block of a Transformer encoder over lists of different lengths.

namespace shardwise::inline SHARDWISE_ABI {

/// The shape of a TransformerBlock.
struct TransformerConfig {
    AttentionConfig attention = {};
    std::int64_t hidden = 0;  ///< width of the feed-forward layers between
};

/// a = x + SelfAttention(LayerNorm(x)); y = a + W2 relu(W1 LayerNorm(a) + b1) + b2: the Transformer's encoder layer
/// (Vaswani et al., 2017) with normalization first (Xiong et al., "On Layer Normalization in the Transformer
/// Architecture", 2020), as torch.nn.TransformerEncoderLayer(norm_first=True) without dropout.
///
/// Holds weights alone. Not collective; the flops of its attention, and 4 width * hidden a row; twice as many backward.
class TransformerBlock {
  public:
    /// What a batch leaves from forward to backward, in buffers that grow when it is larger than all before it.
    struct Work {
        Work() = default;
        explicit Work(std::pmr::memory_resource& memory)
            : rows{memory}, hidden{memory}, attention{memory}, first{memory}, second{memory} {}
        Buffer<float> rows;    ///< (both normalized, a, and two gradients, rows, width)
        Buffer<float> hidden;  ///< (of the feed-forward layers and their gradient, rows, hidden)
        MultiHeadAttention::Work attention;
        LayerNorm::Work first;
        LayerNorm::Work second;
    };

    /// Reserves, in `set`, which outlives this: `<name>.attention...` (see MultiHeadAttention), `<name>.norm1...` and
    /// `.norm2...` (see LayerNorm), `<name>.up.weight` (hidden, width), `.up.bias`, `<name>.down.weight` (width,
    /// hidden) and `.down.bias`.
    /// \throws BadInput when the heads do not divide the width, hidden is not positive or a name is taken
    TransformerBlock(ParameterSet& set, const std::string& name, const TransformerConfig& config,
                     DensePrecision precision = DensePrecision::single)
        : precision_{precision},
          attention_{set, name + ".attention", config.attention, precision},
          norm1_{set, name + ".norm1", config.attention.width, precision},
          norm2_{set, name + ".norm2", config.attention.width, precision},
          up_{set, name + ".up", config.attention.width, config.hidden},
          down_{set, name + ".down", config.hidden, config.attention.width} {}

    /// Initial values of all parts. A function of seed and parameter indices.
    void initialize(std::uint64_t seed) const {
        attention_.initialize(seed);
        norm1_.initialize();
        norm2_.initialize();
        up_.initialize_weight(seed);
        down_.initialize_weight(seed);
    }

    /// \param x  lists of `width` columns; has to stay as it is until backward
    /// \param y  (rows, width), does not overlap x
    void forward(const JaggedRows& x, AttentionMask mask, MatrixView<float> y, Work& work) const {
        SHARDWISE_ASSERT(y.rows() == x.rows.rows() && y.columns() == x.rows.columns());
        const auto [normal1, normal2, a, unused1, unused2] = matrices(work, x.rows.rows());
        const auto [h, unused3] = hidden(work, x.rows.rows());
        norm1_.forward(x.rows, normal1, work.first);
        attention_.forward({normal1, x.lengths}, {normal1, x.lengths}, mask, a, work.attention);
        add(x.rows, a);
        norm2_.forward(a, normal2, work.second);
        up_.forward<Relu>(normal2, h, products(work));
        down_.forward(h, y, products(work));
        add(a, y);
    }

    /// Overwrites the gradients of all parts.
    /// \param work, x  as in the last forward \param dy  (rows, width), with respect to its y
    /// \param dx       (rows, width), with respect to x; does not overlap dy
    void backward(Work& work, const JaggedRows& x, MatrixView<const float> dy, MatrixView<float> dx) const {
        const auto [normal1, normal2, a, da, through] = matrices(work, x.rows.rows());
        const auto [h, dh] = hidden(work, x.rows.rows());
        down_.backward(h, dy, products(work));
        down_.backward_input(dy, dh, products(work));
        activate_backward<Relu>(h, dh, dh);
        up_.backward(normal2, dh, products(work));
        up_.backward_input(dh, da, products(work));
        norm2_.backward(work.second, a, da, da);
        add(dy, da);
        const JaggedRows lists{normal1, x.lengths};
        attention_.backward(work.attention, lists, lists, da, dx, through);
        add(through, dx);
        norm1_.backward(work.first, x.rows, dx, dx);
        add(da, dx);
    }

  private:
    [[nodiscard]] BatchProducts* products(Work& work) const noexcept { return work.attention.products.in(precision_); }
    [[nodiscard]] std::array<MatrixView<float>, 5> matrices(Work& work, std::int64_t rows) const {
        const std::int64_t width = norm1_.width();
        float* data = work.rows.resize(static_cast<std::size_t>(5 * rows * width)).data();
        std::array<MatrixView<float>, 5> all;
        for (std::size_t i = 0; i < all.size(); ++i)
            all[i] = {data + static_cast<std::int64_t>(i) * rows * width, rows, width};
        return all;
    }
    [[nodiscard]] std::array<MatrixView<float>, 2> hidden(Work& work, std::int64_t rows) const {
        const std::int64_t all = rows * up_.outputs();
        float* data = work.hidden.resize(static_cast<std::size_t>(2 * all)).data();
        return {MatrixView<float>{data, rows, up_.outputs()}, MatrixView<float>{data + all, rows, up_.outputs()}};
    }
    /// to += x.
    static void add(MatrixView<const float> x, MatrixView<float> to) {
        for (std::int64_t i = 0; i < to.rows(); ++i) {
            const float* from = x.row(i);
            float* __restrict sum = to.row(i);
            for (std::int64_t j = 0; j < to.columns(); ++j)
                sum[j] += from[j];
        }
    }

    DensePrecision precision_;
    MultiHeadAttention attention_;
    LayerNorm norm1_;
    LayerNorm norm2_;
    Linear up_;
    Linear down_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
