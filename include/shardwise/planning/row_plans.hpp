// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/planning/access_profile.hpp"
#include "shardwise/planning/flexshard.hpp"
#include "shardwise/planning/merged_rows.hpp"
#include "shardwise/planning/row_costs.hpp"
#include "shardwise/planning/row_distribution.hpp"
#include "shardwise/planning/scaling.hpp"
#include "shardwise/sharding/row_plan.hpp"

/// \file
/// From how often rows are looked up, and how many each tier has, to which rows those are.

namespace shardwise::inline SHARDWISE_ABI {

/// The plan of one table that gives its hottest rows to the first tier, the next to the second, and all others to the
/// last. Rows that an exact profile did not see are marked as such; they stay in the last tier. The plan has the
/// look-ups of each tier in the profile.
/// Not collective. Cost: a sort of the rows that were seen.
/// \param tiers  (tier): how many rows; what they leave of the table goes to the last tier, whose own number is not
///               read
/// \throws BadInput for fewer than two tiers, a negative number of rows, more replicated rows than were seen, or more
/// rows than a RowMap has room for
[[nodiscard]] TableRowPlan plan_by_frequency(const TableAccess& table, std::span<const std::int64_t> tiers);

/// The same of all tables of a profile.
/// \param tiers  the names of the tiers \param rows  (table of the profile): as above
/// \throws BadInput as above, and for another number of tables
[[nodiscard]] RowPlan plan_by_frequency(const AccessProfile& profile, std::vector<std::string> tiers,
                                        std::span<const std::vector<std::int64_t>> rows);

/// The same with as many rows in each tier as a FlexShard plan says, "dp", "flex" and "row", of which it has those that
/// `options` name.
/// \param plan  of the profile's tables, in its order, as row_table() has them \throws BadInput as above
[[nodiscard]] RowPlan plan_by_frequency(const AccessProfile& profile, const FlexShardPlan& plan,
                                        const FlexShardOptions& options);

/// From a profile to the rows of each tier: plans all its tables together, says which rows those are, and how many a
/// step is expected to touch. Rows that the profile does not list stay in the last tier.
/// Cost: sorts the rows that were seen, and plan_flexshard.
/// \param dims  (table of the profile): elements of a row \param chunk  as of MergedRows
/// \throws BadInput for another number of dims, where nothing was looked up at all, and as plan_flexshard and
/// MergedRows
[[nodiscard]] RowPlan plan_profile(const AccessProfile& profile, std::span<const int> dims, const Scaling& scaling,
                                   const RowMemory& memory, const FlexShardOptions& options, std::int64_t chunk);

/// From laws to the rows of each tier: the plan of tables whose row 0 is looked up most often, row 1 next, and so on.
/// It has the look-ups of each tier in a million samples, and how many rows a step is expected to touch, as where ids
/// are drawn independently.
/// Not collective. Cost: a pass over the replicated rows.
/// \param rows  what `plan` was made of \param options, scaling  what it was made with
/// \throws BadInput for a plan of other tables
[[nodiscard]] RowPlan plan_in_order(const MergedRows& rows, const FlexShardPlan& plan, const FlexShardOptions& options,
                                    const Scaling& scaling);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/row_plans.ipp"
#endif
