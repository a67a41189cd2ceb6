// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/plan/cost.hpp"
#include "shardwise/plan/program.hpp"

/// \file
/// The describe reader: a program as text for a terminal, and as a Mermaid diagram for documents.

namespace shardwise::inline SHARDWISE_ABI {

/// One line a step, segment by segment, the derived backward plan after the plan, where it has one; with `costs` (from
/// predict, over the whole program) the bytes of each exchange, payload + control, summed over all ranks. `branches`
/// names the plans inside.
[[nodiscard]] std::string describe(const Program& program, const std::vector<std::string>& branches = {},
                                   const std::vector<SegmentCost>& costs = {});

/// A Mermaid flow chart: a subgraph a segment, an arrow that is labelled where a round leaves.
[[nodiscard]] std::string describe_mermaid(const Program& program, const std::vector<std::string>& branches = {});

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/plan/describe.ipp"
#endif
