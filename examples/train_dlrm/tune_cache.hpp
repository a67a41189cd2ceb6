// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <functional>

#include "options.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/planning/access_profile.hpp"
#include "shardwise/sharding/row_plan.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// The size of the cache by the clock: how many rows to replicate on every rank, where formulas do not say it.

namespace train_dlrm {

/// The plan with the most often used rows of all tables in dp, and the others in row.
/// \throws BadInput for more rows than the profile saw
[[nodiscard]] sw::RowPlan cache_plan(const sw::AccessProfile& profile, std::int64_t rows, std::int64_t batch,
                                     const sw::Topology& topology);

/// The options, with --tune-cache the plan of the size whose steps take the least time, and what was tried.
/// \param step_seconds  what a step takes on the slowest rank, with these options; collective, the same on all ranks
/// Collective. Rank 0 prints each size that was tried.
[[nodiscard]] Options tune_cache(const Options& options, sw::CommunicatorRef comm,
                                 const std::function<double(const Options&)>& step_seconds);

}  // namespace train_dlrm
