// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "shardwise/core/config.hpp"

/// \file
/// What a lookup returns for a bag.

namespace shardwise::inline SHARDWISE_ABI {

/// The sum of weight * row over the bag; zeros for an empty bag.
struct Sum {
    static constexpr const char* name = "sum";
    static constexpr bool pooled = true;
    static constexpr bool mean = false;
};

/// The sum of weight * row over the bag, divided by the number of ids; zeros for an empty bag.
struct Mean {
    static constexpr const char* name = "mean";
    static constexpr bool pooled = true;
    static constexpr bool mean = true;
};

/// The rows themselves, in the order of the ids: a sequence. Weights make no sense here and are bad input.
struct None {
    static constexpr const char* name = "none";
    static constexpr bool pooled = false;
    static constexpr bool mean = false;
};

/// Each table names its own in TableConfig::pooling: sum, mean or none. Results are pooled vectors and sequences.
struct ByTable {
    static constexpr const char* name = "by_table";
};

/// How the features of one plan are pooled.
struct PlanPooling {
    static constexpr const char* state_name = "PlanPooling";

    bool pooled = true;          ///< one vector a sample; else sequences
    bool beside_pooled = false;  ///< sequences of a layer that has pooled features, too
    bool every_bag = false;      ///< a shard answers bags without an id there, too: relays know no lengths
    bool distinct = false;       ///< a feature's ids are distinct, and no bags: each stands for itself
    int words = 1;               ///< floats a column of the gradient: 2 where it is in double
    std::vector<char> mean;      ///< (feature)
};

}  // namespace shardwise::inline SHARDWISE_ABI
