// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "options.hpp"
#include "shardwise/planning/flexshard.hpp"
#include "shardwise/planning/merged_rows.hpp"
#include "shardwise/planning/plan_seconds.hpp"
#include "shardwise/planning/replication_curve.hpp"
#include "shardwise/planning/row_costs.hpp"
#include "shardwise/planning/scaling.hpp"

/// \file
/// A plan, and all that is to be said of it.

namespace plan_rows {

inline constexpr std::array strategies{sw::Strategy::row, sw::Strategy::col, sw::Strategy::dp, sw::Strategy::flex};

struct Result {
    sw::MergedRows rows;
    sw::RowMemory memory;
    sw::FlexShardPlan plan;
    sw::NeutralPoints neutral;
    sw::CurvePoints points;
    sw::PlanSeconds seconds;
    std::array<sw::StrategyCost, strategies.size()> cost;  ///< of all tables under each of `strategies`
};

/// Reads the distributions and plans. \throws BadInput as the parts do
[[nodiscard]] Result plan(const Options& o);

/// The memory that a row with p = alpha takes in dp, over that in row; rows as those of the first table.
[[nodiscard]] double dp_over_row_memory(const Result& result, const Options& o, double alpha);

/// "12.3 MB".
[[nodiscard]] std::string bytes_text(double bytes);

/// The tables of the terminal.
void print(const Result& result, const Options& o);

/// Everything, for --json.
[[nodiscard]] nlohmann::ordered_json to_json(const Result& result, const Options& o);

}  // namespace plan_rows
