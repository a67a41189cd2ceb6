// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>

#include "options.hpp"
#include "shardwise/planning/access_profile.hpp"

/// \file
/// From files to profiles.

namespace profile_rows {

/// What the files hold.
struct Profiles {
    shardwise::AccessProfile before;                ///< with --split, of the samples before; otherwise of all
    std::optional<shardwise::AccessProfile> after;  ///< of the rest
    double seconds = 0;                             ///< that it took to read and count
};

/// Reads all files, on the ranks that the options ask for, and counts. Shows how it goes on standard error.
/// \throws BadInput naming the file and what is wrong with it, or when no sample is behind the split
[[nodiscard]] Profiles count_rows(const Options& options);

}  // namespace profile_rows
