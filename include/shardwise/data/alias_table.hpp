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
#include "shardwise/core/text.hpp"

/// \file
/// Row numbers of any distribution.

namespace shardwise::inline SHARDWISE_ABI {

/// Any discrete distribution: row k has a probability proportional to its weight, for example its look-ups a sample.
/// Walker's alias method (Vose, "A Linear Algorithm for Generating Random Numbers with a Given Distribution", 1991):
/// each row has a column of equal width, shared with at most one other row.
///
/// 12 bytes a row; a draw takes two numbers and a line of memory. Drawn as a Zipf is; const members are thread safe.
class AliasTable {
  public:
    /// \param weights  (rows), not negative, finite, at least one above 0 \throws BadInput naming row and weight
    explicit AliasTable(std::span<const double> weights) {
        double total = 0.0;
        for (std::size_t k = 0; k < weights.size(); ++k) {
            if (!(weights[k] >= 0) || !std::isfinite(weights[k]))
                throw BadInput{concat(
                    {"row ", k, " has a weight of ", weights[k], ": give finite weights that are not negative"})};
            total += weights[k];
        }
        if (!(total > 0) || !std::isfinite(total))
            throw BadInput{concat({"the weights of ", weights.size(), " rows add up to ", total,
                                   ": give at least one row a weight above 0, and finite sums"})};
        const auto count = static_cast<double>(weights.size());
        share_.resize(weights.size());
        alias_.resize(weights.size());
        std::vector<std::size_t> less;
        std::vector<std::size_t> more;
        for (std::size_t k = 0; k < weights.size(); ++k) {
            share_[k] = weights[k] / total * count;
            alias_[k] = static_cast<std::uint32_t>(k);
            (share_[k] < 1 ? less : more).push_back(k);
        }
        while (!less.empty() && !more.empty()) {
            const std::size_t small = less.back();
            const std::size_t large = more.back();
            less.pop_back();
            alias_[small] = static_cast<std::uint32_t>(large);
            share_[large] -= 1 - share_[small];
            if (share_[large] >= 1) continue;
            more.pop_back();
            less.push_back(large);
        }
        for (const auto* rest : {&less, &more})  // rounding apart, these have exactly their column
            for (const std::size_t k : *rest)
                share_[k] = 1;
    }

    [[nodiscard]] std::int64_t rows() const noexcept { return std::ssize(share_); }

    /// Draws a row. \param random has `double uniform()`, in [0, 1) \returns a number in [0, rows)
    template <class Random>
    [[nodiscard]] std::int64_t operator()(Random& random) const {
        const auto column = static_cast<std::size_t>(random.uniform() * static_cast<double>(share_.size()));
        return random.uniform() < share_[column] ? static_cast<std::int64_t>(column)
                                                 : static_cast<std::int64_t>(alias_[column]);
    }

  private:
    std::vector<double> share_;         // (row): of its column, the rest is its alias's
    std::vector<std::uint32_t> alias_;  // (row)
};

}  // namespace shardwise::inline SHARDWISE_ABI
