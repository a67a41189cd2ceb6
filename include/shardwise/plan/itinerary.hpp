// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// A program on a topology, worked out once for all flights of a rank: whom each step crosses, and when all ranks know
/// of each other's errors.

namespace shardwise::inline SHARDWISE_ABI {

/// What a segment's round does for errors. An error word rides in every message and is or-ed on, so this follows from
/// who exchanges with whom.
struct Agreement {
    bool opens = false;   ///< it is the first round since errors were last agreed on
    bool agrees = false;  ///< once it is complete, every rank knows every error noted before the one that opens
};

/// What each segment of a program does for errors on this topology. Pure: the same on all ranks. The plan and its
/// adjoint each begin anew. Costs ranks^3 / 64 steps a round where no exchange crosses the world.
[[nodiscard]] std::vector<Agreement> agreements(const Program& program, const Topology& topology);

/// A step where it runs.
struct PlacedStep {
    const Instruction* step = nullptr;
    Members group;
    Members under;
    std::size_t post = 0;  ///< of an exchange, its number among all of the program
};
/// One segment of an itinerary.
struct Stage {
    std::vector<PlacedStep> local;
    std::vector<PlacedStep> posts;
    std::vector<int> peers;  ///< the ranks that this one exchanges a message with, ascending
    Agreement agreement;
};

/// The way of one rank through a program. Refers to the program.
class Itinerary {
  public:
    /// \param topology  the communicator's, with the towers that the plan's groups see
    Itinerary(const Program& program, const Topology& topology, int rank);

    [[nodiscard]] const Program& program() const noexcept { return *program_; }
    [[nodiscard]] const Topology& topology() const noexcept { return topology_; }
    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] const std::vector<Stage>& stages() const noexcept { return stages_; }

  private:
    const Program* program_;
    Topology topology_;
    int rank_;
    std::vector<Stage> stages_;  // (segment)
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/plan/itinerary.ipp"
#endif
