// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/plan/cost.hpp"
#include "shardwise/plan/cost_walk.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// The expectation reader: bytes and messages of a batch in expectation, step by step, without batches or a
/// communicator.

namespace shardwise::inline SHARDWISE_ABI {

/// Traffic from each rank to each rank, in expectation.
using ExpectedTraffic = TrafficMatrixOf<double>;
/// What a segment moves, in expectation.
using ExpectedSegment = SegmentCostOf<double>;

/// Walks all segments of a program. Adds what the steps' buffers need for the expected sizes to tallies, one a rank
/// from `first` on. Not collective; the same on every rank.
/// \param lanes_at  as `cost_at` of predict(), of the domain's Expectation
[[nodiscard]] std::vector<ExpectedSegment> expect(const Program& program, const Topology& topology,
                                                  const std::function<void*(const BranchPath&)>& lanes_at,
                                                  std::span<MemoryTally> tallies = {}, int first = 0);
/// The same. \param tree  the domain's CostTree of its Expectation
template <class Expectation>
[[nodiscard]] std::vector<ExpectedSegment> expect(const Program& program, const Topology& topology,
                                                  CostTree<Expectation>& tree, std::span<MemoryTally> tallies = {},
                                                  int first = 0) {
    return expect(
        program, topology, [&](const BranchPath& branch) -> void* { return &tree.at(branch); }, tallies, first);
}

/// tally_messages() of an expected program: adds the needs of a flight's message buffers on `rank`.
void tally_messages(const std::vector<ExpectedSegment>& costs, const Topology& topology, int rank, MemoryTally& tally);

/// The nearest whole bytes: what describe(), seconds() and rounds_of() take.
[[nodiscard]] std::vector<SegmentCost> rounded(const std::vector<ExpectedSegment>& costs);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/plan/expect.ipp"
#endif
