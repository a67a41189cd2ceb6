// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/planning/merged_rows.hpp"
#include "shardwise/planning/row_costs.hpp"
#include "shardwise/planning/scaling.hpp"

/// \file
/// FlexShard: how many rows of each table to replicate on every rank (DP), how many on every host (Flex), and how many
/// to split over all ranks (Row).

namespace shardwise::inline SHARDWISE_ABI {

/// What a plan is to reach.
enum class FlexShardGoal : std::uint8_t {
    neutral,        ///< the least communication whose memory keeps to the budget: point B, where that is Row's own
    memory,         ///< the least memory: point A
    communication,  ///< the least communication, whatever memory it takes: point C
};

/// Which rows go no further in DP with three tiers.
enum class FlexShardCut : std::uint8_t {
    row,   ///< those that take more memory in DP than in Row: the paper's text (section 4.5)
    flex,  ///< those that take more memory in DP than in Flex: what the published plans have
};

/// How to plan.
struct FlexShardOptions {
    bool dp = true;    ///< there is a tier DP
    bool flex = true;  ///< there is a tier Flex; always one Row
    FlexShardCut cut = FlexShardCut::row;
    FlexShardGoal goal = FlexShardGoal::neutral;
    /// Bytes that a rank may take above what it takes with all rows in Row, negative ones below. Not given: 0 for the
    /// goal `neutral`, none for `communication`. `memory` takes none.
    std::optional<double> budget = std::nullopt;
};

/// Rows of a tier, and their look-ups in a sample.
struct TierRows {
    std::int64_t rows = 0;
    double lookups = 0.0;
};

/// The first rows of a table's order of frequency are DP, the next ones Flex, the others Row.
struct TableTiers {
    TierRows dp;
    TierRows flex;
    TierRows row;
};

/// How many rows are in which tier.
struct FlexShardPlan {
    std::vector<TableTiers> tables;  ///< (table)
    double net_bytes = 0.0;          ///< of a rank, above all rows in Row

    /// Of all tables.
    [[nodiscard]] TableTiers total() const;
};

/// Plans greedily, row by row in the merged order of frequency (sections 4.3 to 4.6).
///
/// `neutral`: DP down to the cut (two tiers: as far as the budget goes), then Flex as far as the budget goes, then Row.
/// A tier ends as well where its next row would communicate longer than in Row, if its bandwidths are known. `memory`
/// and `communication`: each row where it takes least. `communication` with a budget that this would exceed: as
/// `neutral`. With two tiers no plan of whole chunks communicates less in the same memory, but for the last row where
/// tables differ in dimension. With three, the cut is the paper's and not always the best. Rows that may not be
/// replicated (RowTable::least_p) stay in Row.
/// Cost: a pass over the merged runs for each tier.
/// \throws BadInput for a plan of one tier, a budget below the least that a plan takes (which it says), one with the
/// goal `memory`, and for the goal `communication` without budget where bandwidths of its tiers are not known
[[nodiscard]] FlexShardPlan plan_flexshard(const MergedRows& rows, const Scaling& scaling, const RowMemory& memory,
                                           const FlexShardOptions& options);

/// What a plan takes by a model of memory, whichever it was made with: bytes of a rank, above all rows in Row.
/// Cost: a pass over the merged runs of replicated rows. \throws BadInput for a plan of other tables
[[nodiscard]] double net_bytes(const MergedRows& rows, const FlexShardPlan& plan, const RowMemory& memory);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/flexshard.ipp"
#endif
