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
#include "shardwise/sharding/row_plan.hpp"

/// \file
/// A plan, and all that is to be said of it.

namespace plan_rows {

inline constexpr std::array strategies{sw::Strategy::row, sw::Strategy::col, sw::Strategy::dp, sw::Strategy::flex};

/// What one model of memory says.
struct ByModel {
    std::string name;
    double net_bytes = 0;       ///< of the plan, whichever model it was made with
    sw::NeutralPoints neutral;  ///< of rows as those of the first table
};

struct Result {
    sw::MergedRows rows;
    sw::RowMemory memory;  ///< that the plan is made with
    sw::FlexShardPlan plan;
    std::array<ByModel, 2> models;  ///< the paper's and the library's
    sw::NeutralPoints neutral;
    sw::CurvePoints points;
    sw::PlanSeconds seconds;
    std::array<sw::StrategyCost, strategies.size()> cost;  ///< of all tables under each of `strategies`
};

/// Reads the distributions and plans. \throws BadInput as the parts do
[[nodiscard]] Result plan(const Options& o);

/// Which rows are in which tier, for --out.
[[nodiscard]] sw::RowPlan row_plan(const Result& result, const Options& o);

/// The memory that a row with p = alpha takes in dp, over that in row; rows as those of the first table.
[[nodiscard]] double dp_over_row_memory(const Result& result, const Options& o, double alpha);

/// "12.3 MB".
[[nodiscard]] std::string bytes_text(double bytes);

/// The tables of the terminal.
void print(const Result& result, const Options& o);

/// Everything, for --json.
[[nodiscard]] nlohmann::ordered_json to_json(const Result& result, const Options& o);

}  // namespace plan_rows
