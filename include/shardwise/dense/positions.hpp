// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/initialization.hpp"
#include "shardwise/dense/jagged_rows.hpp"
#include "shardwise/dense/parameter.hpp"

/// \file
/// Learned positions: where in a history an item stands.

namespace shardwise::inline SHARDWISE_ABI {

/// y = x + a learned vector of the row's position in its list, counted from the list's end: the last item, the most
/// recent one, has position 0 whatever the length. Holds weights alone. Not collective; one pass.
class LearnedPositions {
  public:
    /// Reserves `<name>.weight` (positions, width) in `set`, which outlives this.
    /// \param precision  but with single, backward overwrites the set's wide gradients
    /// \throws BadInput when a size is not positive or the name is taken
    LearnedPositions(ParameterSet& set, const std::string& name, std::int64_t positions, std::int64_t width,
                     DensePrecision precision = DensePrecision::single)
        : weight_{&set.reserve(name + ".weight", positions, width)}, precision_{precision} {}

    /// The longest list that has positions.
    [[nodiscard]] std::int64_t positions() const noexcept { return weight_->rows; }
    [[nodiscard]] std::int64_t width() const noexcept { return weight_->columns; }

    /// Initial values: uniform with mean 0 and variance 1 / width / 100, small beside what items learn. A function of
    /// seed and parameter index.
    void initialize(std::uint64_t seed) const {
        fill_uniform(weight_->values(), uniform_bound(0.01 / static_cast<double>(width())), seed,
                     static_cast<std::uint64_t>(weight_->index));
    }

    /// \param x  lists of at most positions() rows \param y  (rows, width); may be x's rows
    void forward(const JaggedRows& x, MatrixView<float> y) const {
        SHARDWISE_ASSERT(y.rows() == x.rows.rows() && y.columns() == width() && x.longest() <= positions());
        for_each_list(x, [&](std::int64_t, std::int64_t first, std::int64_t length) {
            for (std::int64_t i = 0; i < length; ++i) {
                const float* from = x.rows.row(first + i);
                const float* position = weight_->value.row(length - 1 - i);
                float* to = y.row(first + i);
                for (std::int64_t j = 0; j < width(); ++j)
                    to[j] = from[j] + position[j];
            }
        });
    }

    /// Overwrites the gradient of the positions, summed over the rows in order from +0; that with respect to x is
    /// `gradient` itself.
    /// \param lists  as in forward; its lengths count \param gradient  (rows, width), with respect to y
    void backward(const JaggedRows& lists, MatrixView<const float> gradient) const {
        if (precision_ != DensePrecision::single) {
            sum(lists, gradient, weight_->wide_gradient);
        } else {
            sum(lists, gradient, weight_->gradient);
        }
    }

  private:
    template <class T>
    void sum(const JaggedRows& lists, MatrixView<const float> gradient, MatrixView<T> to) const {
        SHARDWISE_ASSERT(gradient.columns() == width());
        std::fill_n(to.data(), positions() * width(), T{0});
        for_each_list(lists, [&](std::int64_t, std::int64_t first, std::int64_t length) {
            for (std::int64_t i = 0; i < length; ++i) {
                const float* from = gradient.row(first + i);
                T* position = to.row(length - 1 - i);
                for (std::int64_t j = 0; j < width(); ++j)
                    position[j] += static_cast<T>(from[j]);
            }
        });
    }

    const Parameter* weight_;
    DensePrecision precision_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
