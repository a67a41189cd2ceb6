// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/config.hpp"
#include "shardwise/sharding/policy.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Whole tables on every rank.

namespace shardwise::inline SHARDWISE_ABI {

/// Data parallel: every rank holds every row, looks up alone, and sums the gradients of the touched rows with all
/// others before it updates.
struct DP : WholeRows, WholeColumns {
    static constexpr const char* name = "dp";
    static constexpr Splits splits = Splits::nothing;
    using home = Self;

    static constexpr int shards(const Topology&, int) noexcept { return 1; }
    static constexpr int owner(const Topology&, int, int) noexcept { return 0; }
};

}  // namespace shardwise::inline SHARDWISE_ABI
