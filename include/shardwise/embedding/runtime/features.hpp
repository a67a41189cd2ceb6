// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/batch.hpp"
#include "shardwise/embedding/runtime/traits.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// The features of a layer, in its order, and the form of what it returns.

namespace shardwise::inline SHARDWISE_ABI {

/// What a layer returns: pooled results side by side in one matrix, and a matrix for each sequence.
struct LayerFeatures {
    struct Result {
        int dim = 0;
        bool pooled = true;
        bool mean = false;
        int column = 0;  ///< of the pooled matrix; of a sequence: its number among those
    };

    std::vector<std::string> names;
    std::vector<Result> results;  ///< one a feature; with modules, one a tower
    std::vector<int> dims;        ///< of the results
    int width = 0;                ///< columns of the pooled matrix
    int sequences = 0;            ///< how many there are

    LayerFeatures() = default;
    /// \throws BadInput for names that stand twice, and poolings that are none
    LayerFeatures(const std::vector<TableConfig>& tables, Pools pools);
    /// With modules: what each tower returns.
    void become_towers(const std::vector<int>& outputs);

    /// Elements of the result of a batch.
    [[nodiscard]] std::int64_t output_elements(const steps::BatchView& batch) const;
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/runtime/features.ipp"
#endif
