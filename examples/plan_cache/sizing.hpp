// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "options.hpp"
#include "shardwise/planning/cache_sizing.hpp"
#include "shardwise/sharding/row_plan.hpp"

/// \file
/// The distinct rows of a batch, and the size of a cache.

namespace plan_cache {

/// A size of the cache: what an epoch moves.
struct Size {
    std::int64_t cached = 0;
    double batch = 0;
    double cost = 0;
};

struct Sizing {
    std::vector<sw::CacheTable> tables;
    double batch = 0;  ///< whose distinct rows are told: --batch, or that of the size
    std::optional<sw::CacheCosts> costs;
    sw::CacheSize best;
    Size size;  ///< of --cached, or the best
    std::vector<Size> curve;

    /// U(batch), of all tables.
    [[nodiscard]] double unique() const;
    [[nodiscard]] double lookups() const;
};

[[nodiscard]] Sizing size_cache(const Options& options);
void print(const Sizing& sizing, const Options& options);
[[nodiscard]] nlohmann::ordered_json to_json(const Sizing& sizing, const Options& options);
[[nodiscard]] std::string picture(const Sizing& sizing);
/// The cached rows in dp, all others in row.
[[nodiscard]] sw::RowPlan row_plan(const Sizing& sizing, const Options& options);

}  // namespace plan_cache
