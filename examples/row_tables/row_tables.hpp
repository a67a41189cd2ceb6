// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "shardwise/planning/access_profile.hpp"
#include "shardwise/planning/row_distribution.hpp"

/// \file
/// Tables that the planning programs plan for: options that say how often rows are looked up.

namespace row_tables {

namespace sw = shardwise;

struct Options {
    std::vector<std::string> distributions;  ///< files, each a table
    std::vector<std::string> laws;           ///< each a table, behind those of files
    std::vector<std::string> names;          ///< (table) of these; the file or the law unless given
    std::string profile;                     ///< file of `access`, instead of these; empty: none
    sw::AccessProfile access;
    std::vector<int> dims;  ///< (table)
};

/// --distribution, --law, --profile, --names and --dim. \param dims  of --dim unless given; none: as of one element
void add_options(CLI::App& app, Options& options, const std::vector<int>& dims);

/// Checks what was parsed, reads the profile, and makes dims one a table. \throws BadInput for bad usage
void finish(Options& options);

/// A table of --distribution or --law, with its name.
struct Table {
    std::string name;
    sw::RowDistribution distribution;
    bool law = false;  ///< of --law
};

/// Those of files, then those of laws. What takes longer than two seconds says on standard error how far it is.
[[nodiscard]] std::vector<Table> read(const Options& options);

}  // namespace row_tables
