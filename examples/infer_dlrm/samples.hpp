// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "options.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/core/matrix.hpp"

/// \file
/// All samples, read before the clock starts.

namespace infer_dlrm {

/// A batch of one rank.
struct RankSamples {
    std::int64_t first = 0;  ///< number of its first sample
    std::vector<float> dense;
    std::int64_t dense_columns = 0;
    sw::JaggedBatch<std::int64_t> ids;

    [[nodiscard]] std::int64_t size() const noexcept { return ids.samples; }
    [[nodiscard]] sw::MatrixView<const float> dense_view() const { return {dense.data(), size(), dense_columns}; }
};
/// (batch, rank). Samples are numbered batch by batch, and in a batch rank by rank.
using Samples = std::vector<std::vector<RankSamples>>;

/// Reads or generates them. Shows how far it is. \param shown  false on all ranks but the first
/// \throws BadInput for files that cannot be read, or of no sample
[[nodiscard]] std::shared_ptr<const Samples> read_samples(const Options& options, bool shown);

}  // namespace infer_dlrm
