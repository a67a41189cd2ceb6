// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/config.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// What a cluster's links can do.

namespace shardwise::inline SHARDWISE_ABI {

/// A link as a rank sees it: time = latency a message + bytes / bandwidth.
struct Link {
    double latency = 0.0;    ///< seconds a message
    double bandwidth = 1.0;  ///< bytes a second, in one direction, of one rank
};

/// The links of a cluster, by tier. The defaults are an A100 host's: 300 GB/s inside, 25 GB/s across.
struct Cluster {
    Link host{.latency = 2e-6, .bandwidth = 300e9};
    Link cross_host{.latency = 5e-6, .bandwidth = 25e9};

    [[nodiscard]] const Link& of(Tier tier) const noexcept { return tier == Tier::host ? host : cross_host; }
};

}  // namespace shardwise::inline SHARDWISE_ABI
