// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"

/// \file
/// How often the rows of a table are looked up.

namespace shardwise::inline SHARDWISE_ABI {

/// Rows of a table that are looked up equally often.
struct RowRun {
    double p = 0.0;         ///< expected look-ups of each row in a sample; above 1 where samples repeat rows
    std::int64_t rows = 0;  ///< how many

    friend bool operator==(const RowRun&, const RowRun&) = default;
};

/// The rows of a table by falling p, as runs of equal p: their order of frequency. The sum of p * rows is L, the
/// expected look-ups in a sample: no independence of rows is assumed (FlexShard, section 4.1, equation 2).
///
/// Memory: 16 bytes a run.
class RowDistribution {
  public:
    /// \param runs  in any order; those of equal p become one, so that their order changes nothing
    /// \throws BadInput for a p that is negative or not finite, a number of rows below 1, more rows than 2^63 - 1, no
    /// run, and an L that is not finite
    explicit RowDistribution(std::vector<RowRun> runs);

    /// By falling p, all different.
    [[nodiscard]] std::span<const RowRun> runs() const noexcept { return runs_; }
    [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
    /// L: expected look-ups in a sample; 0 where no row is looked up.
    [[nodiscard]] double lookups() const noexcept { return lookups_; }

  private:
    std::vector<RowRun> runs_;
    std::int64_t rows_ = 0;
    double lookups_ = 0.0;
};

/// Reads a distribution from a text file of lines `rows p`, in any order: so many rows, each with p look-ups a sample.
/// Words are parted by blanks or tabs; lines without a word are passed over.
/// \param progress  called now and then with the lines read so far, and the share of the file that they are (0 where
/// its size is not known) \throws BadInput that names file and line for a line that is none, and as RowDistribution
/// Cost: one pass over the file, and a sort unless its lines are sorted.
[[nodiscard]] RowDistribution read_row_distribution(const std::string& path,
                                                    const std::function<void(std::int64_t, double)>& progress = {});

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/row_distribution.ipp"
#endif
