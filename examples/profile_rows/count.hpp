// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "options.hpp"
#include "shardwise/planning/access_profile.hpp"

/// \file
/// From files to profiles.

namespace profile_rows {

/// What the files hold.
/// What a cache of the hottest rows before the split is to samples.
struct CacheUse {
    std::int64_t rows = 0;
    std::int64_t samples = 0;            ///< that were looked at: those behind the split, where there is one
    std::int64_t hot = 0;                ///< of these, that have cached rows alone
    std::vector<std::int64_t> quarters;  ///< (quarter of the cache, the hottest first): samples with a row of it
};

struct Profiles {
    shardwise::AccessProfile before;                ///< with --split, of the samples before; otherwise of all
    std::optional<shardwise::AccessProfile> after;  ///< of the rest
    std::vector<CacheUse> caches;                   ///< (of --cache)
    double seconds = 0;                             ///< that it took to read and count
};

/// Reads all files, on the ranks that the options ask for, and counts. Shows how it goes on standard error.
/// \throws BadInput naming the file and what is wrong with it, or when no sample is behind the split
[[nodiscard]] Profiles count_rows(const Options& options);

}  // namespace profile_rows
