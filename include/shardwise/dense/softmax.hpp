// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"

/// \file
/// Softmax of rows that see a part of their columns.

namespace shardwise::inline SHARDWISE_ABI {

/// Which columns a row of scores sees: those of its list that are there.
///
/// A list of m questions stands at the end of one of n items: question i is at item n - m + i.
struct AttentionMask {
    enum class Kind : std::uint8_t {
        none,    ///< every question sees every item
        causal,  ///< a question sees its own item and those before it
    };
    Kind kind = Kind::none;

    /// The items that question `question` of `questions` sees, out of `items`: the first so many.
    [[nodiscard]] constexpr std::int64_t visible(std::int64_t question, std::int64_t questions,
                                                 std::int64_t items) const noexcept {
        if (kind == Kind::none) return items;
        return std::clamp<std::int64_t>(items - questions + question + 1, 0, items);
    }
};

/// x[i] = softmax(scale * x[i]) over the columns that row i sees; those that it does not see become 0, and so does a
/// whole row that sees none. In place; computed in double, without overflow, and rounded once.
///
/// Not collective; one exponential an element that is seen.
/// \param x      (questions, items) \param scale  of the scores, above 0 \param mask  which columns a row sees
inline void softmax(MatrixView<float> x, double scale, AttentionMask mask = {}) {
    for (std::int64_t i = 0; i < x.rows(); ++i) {
        float* row = x.row(i);
        const std::int64_t seen = mask.visible(i, x.rows(), x.columns());
        std::fill(row + seen, row + x.columns(), 0.0F);
        if (seen == 0) continue;
        const double most = *std::max_element(row, row + seen);
        double sum = 0.0;
        for (std::int64_t j = 0; j < seen; ++j) {
            const double e = std::exp(scale * (row[j] - most));
            row[j] = static_cast<float>(e);
            sum += e;
        }
        for (std::int64_t j = 0; j < seen; ++j)
            row[j] = static_cast<float>(row[j] / sum);
    }
}

/// The gradient with respect to x, in place: with y = softmax(scale * x), scale * y * (g - sum of y g).
/// What a row did not see has y = 0, and a gradient of 0. Not collective; two passes.
/// \param y         (questions, items), as softmax left it
/// \param gradient  (questions, items), with respect to y; becomes that with respect to x
inline void softmax_backward(MatrixView<const float> y, double scale, MatrixView<float> gradient) {
    SHARDWISE_ASSERT(y.rows() == gradient.rows() && y.columns() == gradient.columns());
    for (std::int64_t i = 0; i < y.rows(); ++i) {
        const float* p = y.row(i);
        float* g = gradient.row(i);
        double dot = 0.0;
        for (std::int64_t j = 0; j < y.columns(); ++j)
            dot = std::fma(static_cast<double>(p[j]), static_cast<double>(g[j]), dot);
        for (std::int64_t j = 0; j < y.columns(); ++j)
            g[j] = static_cast<float>(scale * p[j] * (g[j] - dot));
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
