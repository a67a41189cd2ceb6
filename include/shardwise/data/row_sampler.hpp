// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/data/alias_table.hpp"
#include "shardwise/planning/row_distribution.hpp"

/// \file
/// Row numbers that follow a distribution of look-ups.

namespace shardwise::inline SHARDWISE_ABI {

/// Draws rows with probabilities proportional to their p; row k is the k-th in the distribution's order of frequency,
/// so that row 0 is the hottest. A run of equal p is drawn first, then one of its rows.
///
/// 20 bytes a run, whatever the number of rows; a draw takes three numbers and two lines of memory. Const members are
/// thread safe.
class RowSampler {
  public:
    explicit RowSampler(const RowDistribution& distribution) : runs_{weights_of(distribution.runs())} {
        for (const RowRun& run : distribution.runs()) {
            first_.push_back(rows_);
            rows_ += run.rows;
        }
    }

    [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }

    /// Draws a row. \param random has `double uniform()`, in [0, 1) \returns a number in [0, rows)
    template <class Random>
    [[nodiscard]] std::int64_t operator()(Random& random) const {
        const auto run = static_cast<std::size_t>(runs_(random));
        const std::int64_t end = run + 1 == first_.size() ? rows_ : first_[run + 1];
        const std::int64_t rows = end - first_[run];
        const auto place = static_cast<std::int64_t>(random.uniform() * static_cast<double>(rows));
        return first_[run] + std::min(place, rows - 1);  // a product of many rows may round up
    }

  private:
    static std::vector<double> weights_of(std::span<const RowRun> runs) {
        std::vector<double> weights;
        weights.reserve(runs.size());
        for (const RowRun& run : runs)
            weights.push_back(run.p * static_cast<double>(run.rows));
        return weights;
    }

    AliasTable runs_;
    std::vector<std::int64_t> first_;  // (run): its first row
    std::int64_t rows_ = 0;
};

}  // namespace shardwise::inline SHARDWISE_ABI
