// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>

#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"

/// \file
/// Sums of bags to means, and their gradients.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// out[i] /= lengths[i]. \param lengths  (rows of out), or null: each bag has one id
inline void divide_by_lengths(const std::int32_t* lengths, const MatrixView<float>& out) {
    if (lengths == nullptr) return;
    for (std::int64_t i = 0; i < out.rows(); ++i) {
        if (lengths[i] < 2) continue;
        const auto length = static_cast<float>(lengths[i]);
        float* row = out.row(i);
        for (std::int64_t d = 0; d < out.columns(); ++d)
            row[d] /= length;
    }
}

/// Writes gradient[i] / lengths[i] to `to`, which moves on behind it. \returns what was written
inline MatrixView<const float> divided_by_lengths(const std::int32_t* lengths, const MatrixView<const float>& gradient,
                                                  float*& to) {
    float* const first = to;
    to += gradient.rows() * gradient.columns();
    for (std::int64_t i = 0; i < gradient.rows(); ++i) {
        const float* __restrict from = gradient.row(i);
        float* __restrict row = first + i * gradient.columns();
        const auto length = static_cast<float>(lengths == nullptr ? 1 : std::max(lengths[i], 1));
        for (std::int64_t d = 0; d < gradient.columns(); ++d)
            row[d] = from[d] / length;
    }
    return {first, gradient.rows(), gradient.columns()};
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
