// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "options.hpp"
#include "shardwise/planning/group_choice.hpp"

/// \file
/// What each number of groups would hold and take.

namespace plan_groups {

/// How evenly blocks of tables are placed by load in a group: as the layer does it, and the best there is.
struct Balance {
    int groups = 1;
    double greedy = 1;
    std::optional<double> best;  ///< not given: too many blocks to try
};

struct Plan {
    std::vector<sw::TableConfig> tables;
    std::vector<sw::GroupChoice> choices;  ///< one a way of the options
    std::optional<std::size_t> best;
    std::vector<Balance> balance;  ///< where tables are placed by load
};

/// What takes longer than a second says on standard error how far it is. \throws BadInput for a layer that there is not
[[nodiscard]] Plan make_plan(const Options& options);

void print(const Plan& plan, const Options& options);
[[nodiscard]] nlohmann::ordered_json to_json(const Plan& plan, const Options& options);
/// SVG.
[[nodiscard]] std::string picture(const Plan& plan, const Options& options);

}  // namespace plan_groups
