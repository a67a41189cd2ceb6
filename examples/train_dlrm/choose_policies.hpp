// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"
#include "shardwise/comm/communicator_ref.hpp"

/// \file
/// Policies that the cost reader chooses by the first batch: --sharding auto and --requests auto.

namespace train_dlrm {

/// The options, with `auto` replaced by the sharding whose exchanges of the first batch the cost reader finds the
/// fastest over the links of a Cluster (A100 hosts). Rank 0 prints what each would move. Collective.
[[nodiscard]] Options choose_sharding(const Options& options, sw::CommunicatorRef comm);
/// The same for requests, once sharding and rows are settled. Collective.
[[nodiscard]] Options choose_requests(const Options& options, sw::CommunicatorRef comm);

}  // namespace train_dlrm
