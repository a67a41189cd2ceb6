// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/core/matrix.hpp"

/// \file
/// A batch of click data: what readers and generators fill, and a training loop reads.

namespace shardwise::inline SHARDWISE_ABI {

/// Samples of click data: a label, dense features and bags of ids each. Meant to be filled again and again: vectors
/// keep their memory, so that a batch which is not larger than an earlier one allocates nothing.
struct ClickBatch {
    std::vector<float> labels;  ///< (samples), each 0 or 1
    std::vector<float> dense;   ///< (samples, dense_columns), row-major
    std::int64_t dense_columns = 0;
    JaggedBatch<std::int64_t> ids;  ///< (features, samples) bags

    [[nodiscard]] std::int64_t samples() const noexcept { return ids.samples; }
    /// The dense features. \returns (samples, dense_columns)
    [[nodiscard]] MatrixView<const float> dense_view() const noexcept {
        return {dense.data(), samples(), dense_columns};
    }

    /// Makes room for `samples` labels and rows of dense features, and for one id a bag: no lengths, no weights.
    void resize_single(std::int64_t samples, std::int64_t columns, std::int64_t features) {
        ids.samples = samples;
        ids.features = features;
        dense_columns = columns;
        labels.resize(static_cast<std::size_t>(samples));
        dense.resize(static_cast<std::size_t>(samples * columns));
        ids.values.resize(static_cast<std::size_t>(samples * features));
        ids.lengths.clear();
        ids.weights.clear();
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
