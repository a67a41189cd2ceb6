// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/jagged_rows.hpp"
#include "shardwise/dense/mean_pooling.hpp"
#include "shardwise/dense/multi_head_attention.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/dense/positions.hpp"

/// \file
/// A history as a candidate sees it.

namespace shardwise::inline SHARDWISE_ABI {

/// Each candidate attends over its user's history: what was seen counts by how much it says about this candidate (the
/// idea of DIN: Zhou et al., "Deep Interest Network for Click-Through Rate Prediction", 2018). Items have learned
/// positions, counted from the most recent one; scores are scaled dot products of several heads with a softmax over the
/// history, where DIN has a small MLP for each pair and no softmax: products of matrices, and less work a pair.
///
/// A vector a candidate. Without a history it is the attention's bias. Work buffers grow when a batch is larger than
/// all before it.
class TargetAttention {
  public:
    static constexpr const char* name = "attention";
    static constexpr bool per_candidate = true;
    /// Run-time choices.
    struct Config {
        std::int64_t heads = 2;  ///< divides the dimension
    };

    /// Reserves `<name>.positions.weight` (longest, dimension) and `<name>.attention...` (see MultiHeadAttention).
    /// \throws BadInput when the heads do not divide the dimension
    TargetAttention(ParameterSet& set, const std::string& prefix, const HistoryShape& shape, const Config& config,
                    std::pmr::memory_resource& work, DensePrecision precision)
        : positions_{set, prefix + ".positions", shape.longest, shape.dimension, precision},
          attention_{set, prefix + ".attention", {.width = shape.dimension, .heads = config.heads}, precision},
          work_{work},
          items_{work},
          of_candidates_{work} {}

    void initialize(std::uint64_t seed) const {
        positions_.initialize(seed);
        attention_.initialize(seed);
    }
    /// Of forward and backward together, for a sample with so many items and candidates.
    [[nodiscard]] static std::int64_t flops(const HistoryShape& shape, const Config&, std::int64_t items,
                                            std::int64_t candidates) {
        const std::int64_t d = shape.dimension;
        return 12 * d * d * (items + candidates) + 12 * d * items * candidates;
    }

    /// \param history     lists of at most `longest` items; stays as it is until backward
    /// \param candidates  as many lists; stays as it is until backward \param pooled  (candidates, dimension)
    void forward(const JaggedRows& history, const JaggedRows& candidates, MatrixView<float> pooled) {
        positions_.forward(history, items(history));
        attention_.forward(candidates, {items(history), history.lengths}, {}, pooled, work_);
    }
    /// \param gradient            (candidates, dimension)
    /// \param history_gradient    (items, dimension), overwritten
    /// \param candidate_gradient  (candidates, dimension), added to
    void backward(const JaggedRows& history, const JaggedRows& candidates, MatrixView<const float> gradient,
                  MatrixView<float> history_gradient, MatrixView<float> candidate_gradient) {
        const MatrixView<float> of_candidates{
            of_candidates_.resize(static_cast<std::size_t>(candidates.rows.rows() * candidates.rows.columns())).data(),
            candidates.rows.rows(), candidates.rows.columns()};
        attention_.backward(work_, candidates, {items(history), history.lengths}, gradient, of_candidates,
                            history_gradient);
        positions_.backward(history, history_gradient);
        for (std::int64_t i = 0; i < of_candidates.rows(); ++i)
            for (std::int64_t j = 0; j < of_candidates.columns(); ++j)
                candidate_gradient(i, j) += of_candidates(i, j);
    }

  private:
    [[nodiscard]] MatrixView<float> items(const JaggedRows& history) {
        const std::int64_t width = positions_.width();
        return {items_.resize(static_cast<std::size_t>(history.rows.rows() * width)).data(), history.rows.rows(),
                width};
    }

    LearnedPositions positions_;
    MultiHeadAttention attention_;
    MultiHeadAttention::Work work_;
    Buffer<float> items_;          // (items, dimension), with their positions
    Buffer<float> of_candidates_;  // (candidates, dimension)
};

}  // namespace shardwise::inline SHARDWISE_ABI
