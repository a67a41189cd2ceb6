// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"
#include "shardwise/comm/communicator_ref.hpp"

/// \file
/// Which rows are in which tier, where no file says it: from how often they are looked up.

namespace train_dlrm {

/// The options, with a row plan where --sharding tiered was given none: FlexShard's, by the paper's model of memory,
/// for the batch size and the topology of this run. Planned from --profile or else from a profile of the training data:
/// a pass of its own over all of it, that no later reader of the data notices. The same plan on all ranks; rank 0
/// prints what it comes to. With --tune-cache the profile stays, and the plan is one of those to try. Collective.
/// \throws BadInput on every rank, when any rank cannot read its part of the data, and as plan_profile()
[[nodiscard]] Options place_rows(const Options& options, sw::CommunicatorRef comm);

}  // namespace train_dlrm
