// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>

#include "shardwise/core/config.hpp"
#include "shardwise/planning/flexshard.hpp"
#include "shardwise/planning/merged_rows.hpp"
#include "shardwise/planning/scaling.hpp"

/// \file
/// The collectives of a step under a plan, by the clusters' bandwidths.

namespace shardwise::inline SHARDWISE_ABI {

/// The four collectives of a step, in seconds of a rank, both directions; nothing where a bandwidth that is needed is
/// not known.
struct PlanSeconds {
    std::optional<double> row_only;           ///< the all-to-all of all ranks with all rows in Row
    std::optional<double> all_to_all_global;  ///< of the rows in Row
    std::optional<double> all_to_all_intra;   ///< of those in Flex
    std::optional<double> all_reduce_global;  ///< of those in DP
    std::optional<double> all_reduce_cross;   ///< of those in Flex

    /// How many times as fast as with all rows in Row, the all-to-all and the all-reduce of all ranks one after the
    /// other; the all-to-all inside hosts hides behind them (section 6.2, "nearly 6x"). \param cross_hidden  so does
    /// the all-reduce across hosts; else it follows. \returns nothing where a time is not known, or all are 0
    [[nodiscard]] std::optional<double> speedup(bool cross_hidden) const;
};

/// The seconds of a plan of these rows. A pure function. \param scaling  has batch, topology and bandwidths
[[nodiscard]] PlanSeconds plan_seconds(const MergedRows& rows, const Scaling& scaling, const FlexShardPlan& plan);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/plan_seconds.ipp"
#endif
