// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "row_tables.hpp"
#include "shardwise/planning/flexshard.hpp"
#include "shardwise/planning/scaling.hpp"
#include "shardwise/sharding/row_reduction.hpp"

/// \file
/// What plan_rows is asked for.

namespace plan_rows {

namespace sw = shardwise;

struct Options {
    row_tables::Options tables;
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
