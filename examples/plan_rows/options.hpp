// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shardwise/planning/access_profile.hpp"
#include "shardwise/planning/flexshard.hpp"
#include "shardwise/planning/scaling.hpp"
#include "shardwise/sharding/row_reduction.hpp"

/// \file
/// What plan_rows is asked for.

namespace plan_rows {

namespace sw = shardwise;

struct Options {
    std::vector<std::string> distributions;  ///< files, each a table
    std::vector<std::string> laws;           ///< each a table, behind those of files
    std::vector<std::string> names;          ///< (table) of these; the file or the law unless given
    std::string profile;                     ///< file of `access`, instead of these; empty: none
    sw::AccessProfile access;
    std::vector<int> dims{256};  ///< (table), or one for all
    sw::Scaling scaling{.topology = {.hosts = 4, .ranks_per_host = 8}, .batch = 4096};
    std::int64_t chunk = 0;
    bool library = false;  ///< memory is this library's, not the paper's
    sw::FlexShardOptions plan;
    std::string out;                            ///< file for the row plan
    std::optional<sw::RowReduction> reduction;  ///< not given: whichever is expected to move less
    std::string svg;
    std::string json;
};

/// "dp,flex,row": the tiers of a plan, as --tiers takes them.
[[nodiscard]] std::string tiers_text(const sw::FlexShardOptions& plan);

/// \param text  of --help, when it is asked for: then nothing is returned \throws BadInput for bad usage
[[nodiscard]] std::optional<Options> parse_options(int argc, const char* const* argv, std::string& text);

}  // namespace plan_rows
