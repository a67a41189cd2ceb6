// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "options.hpp"
#include "shardwise/planning/cache_replay.hpp"

/// \file
/// What caches would have hit on a trace.

namespace plan_cache {

struct Replay {
    std::size_t lookups = 0;
    std::int64_t rows = 0;  ///< distinct ones
    std::vector<sw::CacheHits> hits;
    std::optional<sw::WindowRows> windows;

    /// Sizes at which the first half does not predict the second.
    [[nodiscard]] std::size_t unpredicted() const;
};

[[nodiscard]] Replay replay(const Options& options);
void print(const Replay& replay, const Options& options);
[[nodiscard]] nlohmann::ordered_json to_json(const Replay& replay, const Options& options);

}  // namespace plan_cache
