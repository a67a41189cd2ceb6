// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "shardwise/planning/access_profile.hpp"

/// \file
/// Frequencies of rows, sorted (FlexShard, Figure 4).

namespace profile_rows {

/// An SVG, both axes logarithmic: of each table a curve, look-ups a sample (p) over the rows in the order of p.
[[nodiscard]] std::string picture(const shardwise::AccessProfile& profile, const std::string& title);

}  // namespace profile_rows
