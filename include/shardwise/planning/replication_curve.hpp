// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/planning/merged_rows.hpp"
#include "shardwise/planning/row_costs.hpp"
#include "shardwise/planning/scaling.hpp"

/// \file
/// Memory and communication as ever more rows are replicated: FlexShard, Figure 5.

namespace shardwise::inline SHARDWISE_ABI {

/// A plan of two tiers: so many rows in DP, all others in Row.
struct CurvePoint {
    std::int64_t rows = 0;                             ///< in DP
    double lookups = 0.0;                              ///< of these in a sample
    double net_bytes = 0.0;                            ///< of a rank, above all rows in Row
    std::optional<double> net_seconds = std::nullopt;  ///< of communication in a step, above all rows in Row
};

/// Where the curve of memory and communication turns, as ever more rows in order of frequency are DP instead of Row
/// (section 4.3, Figure 5). A point that does not exist is empty.
struct CurvePoints {
    std::optional<CurvePoint> a;  ///< most memory saved; empty where no row saves any
    /// Memory back at that of Row; empty without A, and where it stays below to the last row.
    std::optional<CurvePoint> b;
    /// Most communication saved; empty where no row saves any, or bandwidths are not known.
    std::optional<CurvePoint> c;
    CurvePoint d;  ///< all rows
};

/// The points A to D, of all rows, whether they may be replicated or not. \throws BadInput as checked(scaling)
[[nodiscard]] CurvePoints curve_points(const MergedRows& rows, const Scaling& scaling, const RowMemory& memory);

/// The curve itself (Figure 5): \param at  rows in DP, rising, at most all \returns (at)
/// \throws BadInput for numbers that do not rise, or more rows than there are
[[nodiscard]] std::vector<CurvePoint> replication_curve(const MergedRows& rows, const Scaling& scaling,
                                                        const RowMemory& memory, std::span<const std::int64_t> at);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/replication_curve.ipp"
#endif
