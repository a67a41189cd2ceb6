// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/config.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Tables split by row inside each host, with a copy on every host.

namespace shardwise::inline SHARDWISE_ABI {

/// Rows are dealt as by Row, over the ranks of one host; every host holds them all. Ids and vectors stay inside the
/// host, the gradients of touched rows are summed with the ranks of other hosts that hold the same rows. Memory: a copy
/// a host. (FlexShard, section 4.4)
struct Flex : Row {
    static constexpr const char* name = "flex";
    using home = OneHost;
};

}  // namespace shardwise::inline SHARDWISE_ABI
