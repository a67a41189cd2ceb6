// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "row_tables.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/embedding/runtime/layer_groups.hpp"
#include "shardwise/planning/group_choice.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// What plan_groups is asked for.

namespace plan_groups {

namespace sw = shardwise;

struct Options {
    row_tables::Options tables;
    sw::Topology topology{.hosts = 2, .ranks_per_host = 8};
    std::int64_t batch = 0;  ///< samples a rank
    sw::LayerNames names;
    sw::GroupSetting setting;
    std::vector<sw::GroupOptions> ways;
    std::string svg;
    std::string json;
};

/// The library's policies, and blocks of columns placed by load: col1, col2, col4, col8, col16.
[[nodiscard]] sw::KnownPolicies policies();

/// \param text  of --help, when it is asked for: then nothing is returned \throws BadInput for bad usage
[[nodiscard]] std::optional<Options> parse_options(int argc, const char* const* argv, std::string& text);

}  // namespace plan_groups
