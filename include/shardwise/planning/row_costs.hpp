// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/planning/scaling.hpp"

/// \file
/// What a row costs by how often it is looked up, and from which frequency on a strategy pays.

namespace shardwise::inline SHARDWISE_ABI {

/// A model of memory: the bytes that a row takes on a rank, static and dynamic together, under a strategy. A value, so
/// that a planner takes any: paper_row_memory() is FlexShard's.
struct RowMemory {
    std::string name;
    /// (strategy, elements of the row, p) to bytes. A replica of a row may pay from some p on, and not up to one:
    /// bytes(dp) - bytes(row), bytes(dp) - bytes(flex) and bytes(flex) - bytes(row) change their sign at most once as p
    /// rises, from above 0 to below.
    std::function<double(Strategy, double, double)> bytes;
};

/// The paper's model: StrategyCost::bytes() of a row. \throws BadInput as checked(scaling)
[[nodiscard]] RowMemory paper_row_memory(const Scaling& scaling);

/// Seconds of communication that a row adds to a step, forward and backward (section 4.2); nothing where the strategy's
/// bandwidths are not known.
[[nodiscard]] std::optional<double> row_seconds(const Scaling& scaling, Strategy strategy, double dim, double p);

/// Whether row_seconds() knows DP and Row, and Flex where asked for it.
[[nodiscard]] bool knows_seconds(const Scaling& scaling, bool flex);

/// The least p from which on a row costs no more under one strategy than under another (section 4.2); infinity where it
/// always costs more, 0 where it never does.
struct NeutralPoints {
    double memory_dp_row = 0.0;    ///< the text's cut below DP, and point A
    double memory_dp_flex = 0.0;   ///< the cut that the published plans have
    double memory_flex_row = 0.0;  ///< infinity in the paper's model: Flex takes more, whatever p
    std::optional<double> communication_dp_row = std::nullopt;  ///< point C. These three: nothing without bandwidths
    std::optional<double> communication_flex_row = std::nullopt;
    std::optional<double> communication_dp_flex = std::nullopt;
};

/// \param dim  elements of a row; in the paper's model nothing depends on it
[[nodiscard]] NeutralPoints neutral_points(const Scaling& scaling, const RowMemory& memory, double dim);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/row_costs.ipp"
#endif
