// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// Vectors of lists of different lengths: histories, and what is asked of them.

namespace shardwise::inline SHARDWISE_ABI {

/// The vectors of a batch of lists, a list a sample, one below the other: what an embedding layer with Pooling<None>
/// returns of a feature, with the lengths of its bags. A list may be empty.
struct JaggedRows {
    MatrixView<const float> rows;                ///< (rows of all samples, width)
    std::span<const std::int32_t> lengths = {};  ///< (samples); empty: each sample has one row, as in LayerVectors

    [[nodiscard]] std::int64_t samples() const noexcept {
        return lengths.empty() ? rows.rows() : static_cast<std::int64_t>(lengths.size());
    }
    [[nodiscard]] std::int64_t length(std::int64_t sample) const noexcept {
        return lengths.empty() ? 1 : lengths[static_cast<std::size_t>(sample)];
    }
    /// The longest list; 0 where there is none.
    [[nodiscard]] std::int64_t longest() const noexcept {
        std::int64_t most = lengths.empty() && rows.rows() > 0 ? 1 : 0;
        for (const std::int32_t length : lengths)
            most = std::max<std::int64_t>(most, length);
        return most;
    }
    /// One pass over the lengths. \param what  of whom, in the error, for example "history"
    /// \throws BadInput when a length is negative or the lengths do not add up to the rows
    void validate(const char* what) const {
        std::int64_t total = lengths.empty() ? rows.rows() : 0;
        for (std::size_t i = 0; i < lengths.size(); ++i) {
            if (lengths[i] < 0)
                throw BadInput{concat({what, ": sample ", i, " has a length of ", lengths[i], ": give at least 0"})};
            total += lengths[i];
        }
        if (total != rows.rows())
            throw BadInput{concat({what, ": the lengths add up to ", total, ", and there are ", rows.rows(),
                                   " rows: give the lengths of these rows"})};
    }
};

/// Calls use(sample, first, length) for each list, in order: its rows are [first, first + length).
template <class Use>
void for_each_list(const JaggedRows& x, Use use) {
    std::int64_t first = 0;
    for (std::int64_t sample = 0; sample < x.samples(); ++sample) {
        const std::int64_t length = x.length(sample);
        use(sample, first, length);
        first += length;
    }
}

/// y[s] = the mean of the rows of sample s, added in order from +0; zeros where there are none. One pass.
/// \param y  (samples, width)
inline void mean_of_lists(const JaggedRows& x, MatrixView<float> y) {
    SHARDWISE_ASSERT(y.rows() == x.samples() && y.columns() == x.rows.columns());
    for_each_list(x, [&](std::int64_t sample, std::int64_t first, std::int64_t length) {
        float* __restrict to = y.row(sample);
        std::fill_n(to, y.columns(), 0.0F);
        for (std::int64_t i = first; i < first + length; ++i) {
            const float* from = x.rows.row(i);
            for (std::int64_t j = 0; j < y.columns(); ++j)
                to[j] += from[j];
        }
        for (std::int64_t j = 0; length > 1 && j < y.columns(); ++j)
            to[j] /= static_cast<float>(length);
    });
}
/// The gradient with respect to the rows: each has its list's, divided by the length.
/// \param lists     as in mean_of_lists; its lengths count \param gradient  (samples, width) \param to  (rows, width)
inline void mean_of_lists_backward(const JaggedRows& lists, MatrixView<const float> gradient, MatrixView<float> to) {
    SHARDWISE_ASSERT(gradient.rows() == lists.samples() && to.columns() == gradient.columns());
    for_each_list(lists, [&](std::int64_t sample, std::int64_t first, std::int64_t length) {
        const float* from = gradient.row(sample);
        for (std::int64_t i = first; i < first + length; ++i)
            for (std::int64_t j = 0; j < to.columns(); ++j)
                to(i, j) = from[j] / static_cast<float>(length);
    });
}

/// y[i] = x[s] for each row i of sample s: one vector a sample becomes one a row. One pass.
/// \param x  (samples, width) \param lists  its lengths count \param y  (rows of `lists`, width)
inline void repeat_by_lists(MatrixView<const float> x, const JaggedRows& lists, MatrixView<float> y) {
    SHARDWISE_ASSERT(x.rows() == lists.samples() && y.columns() == x.columns());
    for_each_list(lists, [&](std::int64_t sample, std::int64_t first, std::int64_t length) {
        for (std::int64_t i = first; i < first + length; ++i)
            std::copy_n(x.row(sample), x.columns(), y.row(i));
    });
}
/// The gradient with respect to x: the sum over each sample's rows, in order from +0.
/// \param gradient  (rows of `lists`, width) \param to  (samples, width)
inline void repeat_by_lists_backward(MatrixView<const float> gradient, const JaggedRows& lists, MatrixView<float> to) {
    SHARDWISE_ASSERT(to.rows() == lists.samples() && to.columns() == gradient.columns());
    for_each_list(lists, [&](std::int64_t sample, std::int64_t first, std::int64_t length) {
        float* __restrict sum = to.row(sample);
        std::fill_n(sum, to.columns(), 0.0F);
        for (std::int64_t i = first; i < first + length; ++i) {
            const float* from = gradient.row(i);
            for (std::int64_t j = 0; j < to.columns(); ++j)
                sum[j] += from[j];
        }
    });
}

}  // namespace shardwise::inline SHARDWISE_ABI
