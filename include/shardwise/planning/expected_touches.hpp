// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/workload.hpp"
#include "shardwise/sharding/row_plan.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// How many rows of each tier a step is expected to touch: what a layer chooses between touched and dense sums by.

namespace shardwise::inline SHARDWISE_ABI {

/// Sets `touches` of all tables of a plan. A row that a share q of the samples hold is touched by b samples with the
/// probability 1 - (1 - q)^b; rows that are not in use, never.
/// Not collective. Cost: a pass over the rows in use, and the memory of a row map while it goes on.
/// \param use  how the tables are used: use_of() a profile or a law, or a workload's tables; others may be among them
/// \param samples  of a rank in a step \param topology  of the ranks that hold the rows
/// \throws BadInput for fewer than one sample or too many, and for a table of the plan that is not among those in use
/// or has fewer rows
void expect_touches(RowPlan& plan, std::span<const TableUse> use, std::int64_t samples, const Topology& topology);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/expected_touches.ipp"
#endif
