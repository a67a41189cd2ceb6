// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "options.hpp"

/// \file
/// The command line's replica groups: ranks that each hold every table.

namespace train_dlrm {

/// What the command line says, as text.
struct GroupFlags {
    int groups = 1;
    std::string placement = "across";
    std::int64_t sync_every = 1;
    std::string sync = "touched";
    bool sync_overlap = true;
    std::string moment_scale = "groups";
};

void add_group_options(CLI::App& app, Options& options, GroupFlags& flags);

/// \throws BadInput, for options without an effect too
void read_groups(const CLI::App& app, Options& options, const GroupFlags& flags);

/// As they are written into a report.
[[nodiscard]] nlohmann::json groups_json(const Options& options);

}  // namespace train_dlrm
