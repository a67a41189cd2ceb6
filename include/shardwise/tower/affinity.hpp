// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// How much features have to do with each other (Disaggregated Multi-Tower, section 3.3).

namespace shardwise::inline SHARDWISE_ABI {

/// A symmetric matrix over features, (features, features) row by row.
struct Affinity {
    std::int64_t features = 0;
    std::vector<double> values;

    [[nodiscard]] double operator()(std::int64_t i, std::int64_t j) const {
        return values[static_cast<std::size_t>(i * features + j)];
    }
    [[nodiscard]] double& operator()(std::int64_t i, std::int64_t j) {
        return values[static_cast<std::size_t>(i * features + j)];
    }
};

/// Adds up the affinity of an untowered model's features: the mean over samples of the absolute cosine between the
/// vectors of two of them. A vector of zeros, as of an empty bag, has the cosine 0 with all. Ranks add up `sums()`.
/// Not collective; samples * features^2 / 2 dots a batch.
class AffinityMeter {
  public:
    /// \param features   vectors a sample
    /// \param dimension  elements of each; tables of other dimensions enter as chunks of equal width
    /// \throws BadInput when either is not positive
    AffinityMeter(std::int64_t features, std::int64_t dimension) : features_{features}, dimension_{dimension} {
        if (features < 1 || dimension < 1)
            throw BadInput{
                concat({"affinity of ", features, " features of dimension ", dimension, ": both are at least 1"})};
        sums_.assign(static_cast<std::size_t>(features * features) + 1, 0.0);
    }

    /// \param vectors  (samples, features * dimension), as a pooled layer returns them
    /// \throws BadInput when the number of columns is another one, or an element is no finite number
    void add(MatrixView<const float> vectors) {
        if (vectors.columns() != features_ * dimension_)
            throw BadInput{concat({"affinity of ", features_, " features of dimension ", dimension_, ": add is given ",
                                   vectors.columns(), " columns"})};
        std::vector<double> scaled(static_cast<std::size_t>(features_ * dimension_));
        for (std::int64_t sample = 0; sample < vectors.rows(); ++sample) {
            for (std::int64_t f = 0; f < features_; ++f) {
                const float* from = vectors.row(sample) + f * dimension_;
                double* to = scaled.data() + f * dimension_;
                double square = 0.0;
                for (std::int64_t d = 0; d < dimension_; ++d)
                    square += static_cast<double>(from[d]) * from[d];
                if (!std::isfinite(square))
                    throw BadInput{concat({"affinity: sample ", sample, ", feature ", f,
                                           " has an element that is no finite number: the model has diverged"})};
                const double scale = square > 0.0 ? 1.0 / std::sqrt(square) : 0.0;
                for (std::int64_t d = 0; d < dimension_; ++d)
                    to[d] = scale * from[d];
            }
            for (std::int64_t i = 0; i < features_; ++i)
                for (std::int64_t j = 0; j < i; ++j) {
                    double cosine = 0.0;
                    for (std::int64_t d = 0; d < dimension_; ++d)
                        cosine += scaled[static_cast<std::size_t>(i * dimension_ + d)] *
                                  scaled[static_cast<std::size_t>(j * dimension_ + d)];
                    sums_[static_cast<std::size_t>(i * features_ + j)] += std::abs(cosine);
                }
        }
        sums_.back() += static_cast<double>(vectors.rows());
    }

    /// Sums below the diagonal, and the number of samples last: what ranks add up.
    [[nodiscard]] std::span<double> sums() noexcept { return sums_; }

    /// The means; 1 on the diagonal. \throws BadInput when nothing was added
    [[nodiscard]] Affinity affinity() const {
        if (!(sums_.back() > 0.0)) throw BadInput{"affinity of no samples: add a batch first"};
        Affinity result{.features = features_,
                        .values = std::vector<double>(static_cast<std::size_t>(features_ * features_), 1.0)};
        for (std::int64_t i = 0; i < features_; ++i)
            for (std::int64_t j = 0; j < i; ++j)
                result(i, j) = result(j, i) = sums_[static_cast<std::size_t>(i * features_ + j)] / sums_.back();
        return result;
    }

  private:
    std::int64_t features_;
    std::int64_t dimension_;
    std::vector<double> sums_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
