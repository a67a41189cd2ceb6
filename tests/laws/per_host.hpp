// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/sharding/row.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// A sharding policy of a user's own, with a home that is neither the world nor one rank.

namespace laws {

namespace sw = shardwise;

/// Rows are dealt over the ranks of each host, and every host has a copy: lookups stay inside hosts, gradients cross.
struct PerHost : sw::Row {
    static constexpr const char* name = "per_host";
    using home = sw::OneHost;
};

}  // namespace laws
