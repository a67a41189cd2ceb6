// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"

/// \file
/// What the steps of coalesced layers know of tables and features.

namespace shardwise::inline SHARDWISE_ABI {

/// The tables of a layer whose requests are coalesced, and the features that look up in each.
struct CoalescedTables {
    static constexpr const char* state_name = "CoalescedTables";
    /// What the layer returns of it.
    struct Feature {
        std::string name;
        bool pooled = true;
        bool mean = false;
    };
    /// A table, and its features: `first` and those behind it.
    struct Table {
        std::string name;
        std::int64_t rows = 0;
        int dim = 0;
        int first = 0;  ///< feature
        int end = 0;    ///< behind the last
    };
    bool wide = false;         ///< some row's number takes more than 31 bits
    bool some_pooled = false;  ///< not all features are sequences
    bool counted = false;      ///< somebody counts look-ups of rows
    int words = 1;             ///< floats a column of a row's gradient: 2 where it travels in double
    std::vector<Feature> features;
    std::vector<Table> tables;
};

/// What a rank's batches have asked for so far.
struct RequestCounts {
    static constexpr const char* state_name = "RequestCounts";
    std::int64_t lookups = 0;   ///< ids of bags
    std::int64_t distinct = 0;  ///< of a batch and table, which are what travels
};

}  // namespace shardwise::inline SHARDWISE_ABI
