// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/config.hpp"
#include "shardwise/sharding/policy.hpp"

/// \file
/// Whole tables dealt over all ranks.

namespace shardwise::inline SHARDWISE_ABI {

/// Table t lives on rank t modulo the number of ranks.
struct Table : WholeRows, WholeColumns {
    static constexpr const char* name = "table";
    static constexpr Splits splits = Splits::nothing;

    static constexpr int shards(const Topology&, int) noexcept { return 1; }
    static constexpr int owner(const Topology& t, int table, int) noexcept { return table % t.ranks(); }
};

}  // namespace shardwise::inline SHARDWISE_ABI
