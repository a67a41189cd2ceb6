// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/sharding/row_map.hpp"

/// \file
/// What the steps of tiered layers know of rows and features.

namespace shardwise::inline SHARDWISE_ABI {

/// The tiers of a layer's rows, by feature.
struct RowTiers {
    static constexpr const char* state_name = "RowTiers";
    /// A feature, and the map of its table.
    struct Feature {
        std::string name;
        std::string table;
        std::shared_ptr<const RowMap> map;
        int dim = 0;
        bool pooled = true;
        bool mean = false;
    };
    std::vector<std::string> names;  ///< of the layer's tiers
    int tiers = 0;                   ///< those that the plan has, the first ones; 0: the layer has none
    bool wide = false;               ///< some row's number takes more than 31 bits
    std::vector<Feature> features;   ///< of the layer

    /// Whether some of the layer's tiers are not the plan's: batches with a row of these are wrong.
    [[nodiscard]] bool hot() const noexcept { return static_cast<std::size_t>(tiers) < names.size(); }
    /// The tier of the plan with that number: each has as many plans as kinds of pooling.
    [[nodiscard]] std::size_t tier_of(std::size_t plan, std::size_t plans) const noexcept {
        return plan / (plans / static_cast<std::size_t>(tiers));
    }
};

/// What a rank's batches have looked up so far.
struct RowCounts {
    static constexpr const char* state_name = "RowCounts";
    std::vector<std::int64_t> lookups;  ///< (tier): ids
    std::int64_t unseen = 0;            ///< of these, ids of rows that no profile saw
};

}  // namespace shardwise::inline SHARDWISE_ABI
