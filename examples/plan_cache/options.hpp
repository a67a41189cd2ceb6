// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "row_tables.hpp"
#include "shardwise/planning/cache_sizing.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// What plan_cache is asked for.

namespace plan_cache {

namespace sw = shardwise;

struct Options {
    row_tables::Options tables;
    bool dims_given = false;
    std::int64_t batch = 0;                   ///< 0: not given
    std::optional<sw::CacheSetting> setting;  ///< a cache is to be sized
    bool least_batch_given = false;
    std::vector<std::string> runs;  ///< two reports, from which the memory of a sample is taken; none: it was given
    std::optional<std::int64_t> cached;    ///< rows that are to be cached; not given: the best number
    std::optional<sw::Topology> topology;  ///< of those that take the plan; not given: it does not say what steps touch
    std::string out;                       ///< file for the row plan
    std::string replay;                    ///< file of a trace, instead of tables
    std::vector<std::int64_t> sizes;       ///< of caches to replay
    std::uint64_t seed = 0;
    std::string svg;
    std::string json;
};

/// The tables of the options. \throws BadInput for probabilities that are none
[[nodiscard]] std::vector<sw::CacheTable> tables_of(const Options& options);

/// \param text  of --help, when it is asked for: then nothing is returned \throws BadInput for bad usage
[[nodiscard]] std::optional<Options> parse_options(int argc, const char* const* argv, std::string& text);

}  // namespace plan_cache
