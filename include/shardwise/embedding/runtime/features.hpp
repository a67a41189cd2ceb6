// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/runtime/traits.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// The features of a layer, in its order, and the form of what it returns.

namespace shardwise::inline SHARDWISE_ABI {

/// What a layer returns: pooled results side by side in one matrix, and a matrix for each sequence.
struct LayerFeatures {
    /// A result, and where it is.
    struct Result {
        int dim = 0;
        bool pooled = true;
        bool mean = false;
        int column = 0;  ///< of the pooled matrix; of a sequence: its number among those
        /// The look at a gradient's numbers makes the sum of squares of each of its rows: the rule wants it.
        bool squares = false;
    };

    std::vector<std::string> names;
    std::vector<Result> results;  ///< one a feature; with modules, one a tower
    std::vector<int> dims;        ///< of the results
    int width = 0;                ///< columns of the pooled matrix
    int sequences = 0;            ///< how many there are
    bool of_towers = false;       ///< results are those of towers

    LayerFeatures() = default;
    /// \throws BadInput for names that stand twice, and poolings that are none
    LayerFeatures(const std::vector<TableConfig>& tables, Pools pools);
    /// With modules: what each tower returns.
    void become_towers(const std::vector<int>& outputs);

    /// Sums of squares that a look at the gradient of so many samples makes.
    [[nodiscard]] std::int64_t squares(std::int64_t samples) const {
        return samples * std::count_if(results.begin(), results.end(), [](const Result& r) { return r.squares; });
    }
    /// Elements of the result of a batch. \tparam Batch  steps::BatchView, or what is expected of one
    template <class Batch>
    [[nodiscard]] auto output_elements(const Batch& batch) const {
        std::decay_t<decltype(batch.values(0))> elements = batch.samples() * width;
        for (std::size_t f = 0; f < results.size(); ++f)
            if (!results[f].pooled) elements += batch.values(static_cast<int>(f)) * results[f].dim;
        return elements;
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/runtime/features.ipp"
#endif
