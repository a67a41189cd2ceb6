// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// Power-law row numbers.

namespace shardwise::inline SHARDWISE_ABI {

/// The bounded Zipf distribution: row k of `rows` has a probability proportional to 1 / (k + 1)^exponent, so that row 0
/// is the hottest. Sampled by rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates
/// from monotone discrete distributions", 1996): no table, constant time at any number of rows.
class Zipf {
  public:
    /// \param rows at least 1 \param exponent above 0, finite \throws BadInput otherwise
    Zipf(std::int64_t rows, double exponent) : rows_{rows}, exponent_{exponent} {
        if (rows < 1) throw BadInput{concat({"a Zipf distribution over ", rows, " rows: give at least 1"})};
        if (!(exponent > 0) || !std::isfinite(exponent))
            throw BadInput{concat({"a Zipf exponent of ", exponent, ": give a finite one above 0"})};
        first_ = integral(1.5) - 1;
        last_ = integral(static_cast<double>(rows) + 0.5);
        squeeze_ = 2 - inverse(integral(2.5) - density(2));
    }

    [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }

    /// Draws a row. \param random has `double uniform()`, in [0, 1) \returns a number in [0, rows)
    /// Cost: about 1.1 uniform numbers, an exponential and a logarithm each.
    template <class Random>
    [[nodiscard]] std::int64_t operator()(Random& random) const {
        for (;;) {
            const double u = last_ + random.uniform() * (first_ - last_);
            const double x = inverse(u);
            const std::int64_t k = nearest(x);
            const auto d = static_cast<double>(k);
            if (d - x <= squeeze_ || u >= integral(d + 0.5) - density(d)) return k - 1;
        }
    }

  private:
    // x^-exponent
    [[nodiscard]] double density(double x) const { return std::exp(-exponent_ * std::log(x)); }
    // The integral of the density from 1 to x: (x^(1 - exponent) - 1) / (1 - exponent), and log(x) at exponent 1.
    [[nodiscard]] double integral(double x) const {
        const double log = std::log(x);
        const double t = (1 - exponent_) * log;
        return log * (std::abs(t) > 1e-8 ? std::expm1(t) / t : 1 + t / 2);
    }
    [[nodiscard]] double inverse(double y) const {
        const double t = std::max(-1.0, (1 - exponent_) * y);
        return std::exp(y * (std::abs(t) > 1e-8 ? std::log1p(t) / t : 1 - t / 2));
    }
    // Rounded and kept in [1, rows]; x may be infinite.
    [[nodiscard]] std::int64_t nearest(double x) const {
        if (!(x < static_cast<double>(rows_))) return rows_;
        return std::max<std::int64_t>(1, static_cast<std::int64_t>(x + 0.5));
    }

    std::int64_t rows_;
    double exponent_;
    double first_ = 0;    // the integral to 1.5, less the density at 1
    double last_ = 0;     // the integral to rows + 0.5
    double squeeze_ = 0;  // k - x up to which k is accepted without computing anything
};

}  // namespace shardwise::inline SHARDWISE_ABI
