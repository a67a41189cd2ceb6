// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>

#include "options.hpp"

/// \file
/// The options of --sharding tiered: a plan of which rows are in which tier, or what to plan that from, and how.

namespace train_dlrm {

/// What the command line says, as text.
struct TierFlags {
    std::string tiers = "dp,flex,row";
    std::string cut = "row";
    double budget = 0;
};

/// Adds their group; what the options name lives in `options` and `flags`.
void add_tier_options(CLI::App& app, Options& options, TierFlags& flags);

/// Checks them, and reads the plan or the profile. \throws BadInput, for options without an effect too
void read_tiers(const CLI::App& app, Options& options, const TierFlags& flags);

/// Checks that a profile or a plan is of the model's tables, once these are known. \throws BadInput
void check_row_files(const Options& options);

/// As they are written into a report.
[[nodiscard]] nlohmann::json tiers_json(const Options& options);

}  // namespace train_dlrm
