// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory_resource>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/jagged_rows.hpp"
#include "shardwise/dense/parameter.hpp"

/// \file
/// What a pooling of histories is, and the one that learns nothing.
///
/// A pooling is a class that SequenceModel makes of (set, name, shape, config, work, precision) and that has
/// `forward(history, candidates, pooled)`, `backward(history, candidates, gradient, history_gradient,
/// candidate_gradient)`, `initialize(seed)`, `flops(shape, config, items, candidates)`, a `name`, a `Config`, and
/// `per_candidate`: whether it has a vector a candidate, or one a sample for all of its candidates.

namespace shardwise::inline SHARDWISE_ABI {

/// The histories that a pooling is made for.
struct HistoryShape {
    std::int64_t dimension = 0;  ///< elements of an item's vector, and of a pooled one
    std::int64_t longest = 0;    ///< items of the longest history
};

/// The mean of a history's vectors, zeros for an empty one. No parameters.
class MeanPooling {
  public:
    static constexpr const char* name = "mean";
    static constexpr bool per_candidate = false;
    /// There is nothing to choose.
    struct Config {};

    MeanPooling(ParameterSet&, const std::string&, const HistoryShape&, const Config&, std::pmr::memory_resource&,
                DensePrecision) {}

    void initialize(std::uint64_t) const {}
    [[nodiscard]] static std::int64_t flops(const HistoryShape& shape, const Config&, std::int64_t items,
                                            std::int64_t) {
        return 2 * items * shape.dimension;
    }
    /// \param pooled  (samples, dimension)
    void forward(const JaggedRows& history, const JaggedRows&, MatrixView<float> pooled) {
        mean_of_lists(history, pooled);
    }
    /// \param gradient  (samples, dimension) \param history_gradient  (items, dimension), overwritten
    void backward(const JaggedRows& history, const JaggedRows&, MatrixView<const float> gradient,
                  MatrixView<float> history_gradient, MatrixView<float>) {
        mean_of_lists_backward(history, gradient, history_gradient);
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
