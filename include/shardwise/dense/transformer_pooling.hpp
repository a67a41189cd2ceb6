// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/jagged_rows.hpp"
#include "shardwise/dense/layer_norm.hpp"
#include "shardwise/dense/mean_pooling.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/dense/positions.hpp"
#include "shardwise/dense/softmax.hpp"
#include "shardwise/dense/transformer_block.hpp"

/// \file
/// A history as a small Transformer sums it up.

namespace shardwise::inline SHARDWISE_ABI {

/// The history with learned positions through Transformer blocks, normalized, and the mean of what comes out: one
/// vector a sample, whatever the candidates (in the manner of Kang and McAuley, "Self-Attentive Sequential
/// Recommendation", 2018). Zeros for an empty history. Work buffers grow when a batch is larger than all before it.
class TransformerPooling {
  public:
    static constexpr const char* name = "transformer";
    static constexpr bool per_candidate = false;
    /// Run-time choices.
    struct Config {
        std::int64_t heads = 2;   ///< divides the dimension
        std::int64_t hidden = 0;  ///< of the feed-forward layers; 0: four times the dimension
        std::int64_t blocks = 1;
        AttentionMask mask = {};  ///< causal: an item sees those before it and itself
    };

    /// Reserves its parameters.
    ///
    /// Their names are `<name>.positions.weight` (longest, dimension), `<name>.<block>...` (see
    /// TransformerBlock) and `<name>.norm...` (see LayerNorm).
    /// \throws BadInput when there is no block, or the heads do not divide the dimension
    TransformerPooling(ParameterSet& set, const std::string& prefix, const HistoryShape& shape, const Config& config,
                       std::pmr::memory_resource& work, DensePrecision precision)
        : dimension_{shape.dimension},
          mask_{config.mask},
          positions_{set, prefix + ".positions", shape.longest, shape.dimension, precision},
          norm_{set, prefix + ".norm", shape.dimension, precision},
          norm_work_{work},
          rows_{work},
          gradients_{work} {
        if (config.blocks < 1)
            throw BadInput{concat({"transformer '", prefix, "' of ", config.blocks, " blocks: give at least 1"})};
        for (std::int64_t b = 0; b < config.blocks; ++b) {
            blocks_.emplace_back(set, prefix + "." + std::to_string(b),
                                 TransformerConfig{.attention = {.width = shape.dimension, .heads = config.heads},
                                                   .hidden = hidden(shape, config)},
                                 precision);
            works_.emplace_back(work);
        }
    }

    void initialize(std::uint64_t seed) const {
        positions_.initialize(seed);
        for (const TransformerBlock& block : blocks_)
            block.initialize(seed);
        norm_.initialize();
    }
    /// Of forward and backward together, for a sample with so many items.
    [[nodiscard]] static std::int64_t flops(const HistoryShape& shape, const Config& config, std::int64_t items,
                                            std::int64_t) {
        const std::int64_t d = shape.dimension;
        return config.blocks * items * (24 * d * d + 12 * d * items + 12 * d * hidden(shape, config));
    }

    /// \param history  lists of at most `longest` items; stays as it is until backward
    /// \param pooled   (samples, dimension)
    void forward(const JaggedRows& history, const JaggedRows&, MatrixView<float> pooled) {
        const std::int64_t items = history.rows.rows();
        positions_.forward(history, layer(0, items));
        for (std::size_t b = 0; b < blocks_.size(); ++b)
            blocks_[b].forward({layer(b, items), history.lengths}, mask_, layer(b + 1, items), works_[b]);
        const MatrixView<float> normal = layer(blocks_.size() + 1, items);
        norm_.forward(layer(blocks_.size(), items), normal, norm_work_);
        mean_of_lists({normal, history.lengths}, pooled);
    }
    /// \param gradient          (samples, dimension)
    /// \param history_gradient  (items, dimension), overwritten
    void backward(const JaggedRows& history, const JaggedRows&, MatrixView<const float> gradient,
                  MatrixView<float> history_gradient, MatrixView<float>) {
        const std::int64_t items = history.rows.rows();
        const std::int64_t all = items * dimension_;
        float* data = gradients_.resize(static_cast<std::size_t>(2 * all)).data();
        MatrixView<float> above{data, items, dimension_};
        MatrixView<float> below{data + all, items, dimension_};
        mean_of_lists_backward(history, gradient, above);
        norm_.backward(norm_work_, layer(blocks_.size(), items), above, above);
        for (std::size_t b = blocks_.size(); b-- > 0;) {
            blocks_[b].backward(works_[b], {layer(b, items), history.lengths}, above,
                                b == 0 ? history_gradient : below);
            std::swap(above, below);
        }
        positions_.backward(history, history_gradient);
    }

  private:
    static std::int64_t hidden(const HistoryShape& shape, const Config& config) {
        return config.hidden == 0 ? 4 * shape.dimension : config.hidden;
    }
    /// What goes into block `number`; then what comes out of the last one, and that normalized.
    [[nodiscard]] MatrixView<float> layer(std::size_t number, std::int64_t items) {
        const std::size_t each = static_cast<std::size_t>(items * dimension_);
        return {rows_.resize((blocks_.size() + 2) * each).data() + number * each, items, dimension_};
    }

    std::int64_t dimension_;
    AttentionMask mask_;
    LearnedPositions positions_;
    std::vector<TransformerBlock> blocks_;
    LayerNorm norm_;
    std::vector<TransformerBlock::Work> works_;  // (block)
    LayerNorm::Work norm_work_;
    Buffer<float> rows_;       // (layer, items, dimension)
    Buffer<float> gradients_;  // (2, items, dimension)
};

}  // namespace shardwise::inline SHARDWISE_ABI
