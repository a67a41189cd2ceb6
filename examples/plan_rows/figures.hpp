// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "options.hpp"
#include "result.hpp"

/// \file
/// Figures 3 and 5 of FlexShard, as a picture.

namespace plan_rows {

/// An SVG of two panels: what a row costs in DP over what it costs in Row, by p (Figure 3); and memory against
/// communication as ever more rows of these tables are DP instead of Row, with the points A to D (Figure 5).
[[nodiscard]] std::string figures(const Result& result, const Options& o);

}  // namespace plan_rows
