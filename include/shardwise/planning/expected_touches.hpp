// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "shardwise/core/config.hpp"
#include "shardwise/planning/access_profile.hpp"
#include "shardwise/sharding/row_plan.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// How many rows of each tier a step touches, by a profile: what a layer chooses between touched and dense sums by.

namespace shardwise::inline SHARDWISE_ABI {

/// Sets `touches` of a table's plan. A row that a share q of the profile's samples hold is touched by b samples with
/// the probability 1 - (1 - q)^b; rows that the profile does not list, never.
/// \param profiled  samples of the profile \param samples  of a rank in a step
/// Not collective. Cost: a pass over the rows that were seen, and 8 bytes a row while it goes on. \throws BadInput for
/// a profile without samples, fewer than one sample a step, or a plan of another table
void expect_touches(TableRowPlan& plan, const TableAccess& table, std::int64_t profiled, std::int64_t samples,
                    const Topology& topology);

/// The same of all tables of a plan. \throws BadInput as above, and for a table that the profile does not have
void expect_touches(RowPlan& plan, const AccessProfile& profile, std::int64_t samples, const Topology& topology);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/expected_touches.ipp"
#endif
