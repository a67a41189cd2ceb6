// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/workload.hpp"
#include "shardwise/planning/access_profile.hpp"
#include "shardwise/planning/row_distribution.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// From how often rows are looked up to what LayerBlueprint::expect_cost() takes.

namespace shardwise::inline SHARDWISE_ABI {

/// How a table is used, as a profile counted it: rows of equal counts are one run. Of a profile with an error, look-ups
/// that it has of no row are spread evenly over all rows of the table, so that all keep their order, and none gets more
/// than the error; of an exact one there are none.
/// Cost: a sort of the rows that were seen. Memory: 8 bytes for each of them.
/// \param samples  the profile's
/// \throws BadInput for no sample, though rows were looked up
[[nodiscard]] TableUse use_of(const TableAccess& table, std::int64_t samples);
/// The rows of a table by how often they are looked up: those of use_of(), and p = 0 for all others.
/// Cost: a sort of the rows that were seen. \throws BadInput as use_of, and for a table without rows
[[nodiscard]] RowDistribution distribution_of(const TableAccess& table, std::int64_t samples);

/// The same of all tables of a profile, in its order.
[[nodiscard]] std::vector<TableUse> use_of(const AccessProfile& profile);

/// How a table is used whose row 0 is looked up most often, row 1 next, and so on, with ids drawn independently: then
/// 1 - q is the share of samples all of whose ids are others.
/// \param features  lengths of the bags of each feature of the table
[[nodiscard]] TableUse use_of(const std::string& table, const RowDistribution& distribution,
                              std::span<const BagLengths> features);

/// The workload that a profile says. The look-ups of a table are shared equally by its features, and bags are as long
/// as each other, within one id; whoever knows better, of how lengths spread or of weights, writes it into the result.
/// \param samples  a rank's batch
/// \throws BadInput for a profile of other tables, and as use_of
[[nodiscard]] Workload workload_of(const AccessProfile& profile, const std::vector<TableConfig>& tables,
                                   std::int64_t samples);
/// The same of laws: rows are in the order of their frequency. \param distributions  (table)
/// \throws BadInput for another number of tables, or of rows of one
[[nodiscard]] Workload workload_of(std::span<const RowDistribution> distributions,
                                   const std::vector<TableConfig>& tables, std::int64_t samples);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/workloads.ipp"
#endif
