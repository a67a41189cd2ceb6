// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/replica_groups.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// A program on a topology, worked out once for all flights of a rank: whom each step crosses, and when all ranks know
/// of each other's errors.

namespace shardwise::inline SHARDWISE_ABI {

/// To whom of the other groups a round tells errors, in messages of nothing but an envelope.
enum class Witnesses : std::uint8_t {
    none,
    copies,  ///< the ranks with my index
    peers    ///< those, and the ranks with the indices of my peers in the round
};

/// What a segment's round does for errors. An error word rides in every message and is or-ed on, so this follows from
/// who exchanges with whom.
struct Agreement {
    bool opens = false;   ///< it is the first round since errors were last agreed on
    bool agrees = false;  ///< once it is complete, every rank knows every error noted before the one that opens
    Witnesses witnesses = Witnesses::none;

    friend bool operator==(const Agreement&, const Agreement&) = default;
};

/// What each segment of a program does for errors on this topology. Pure: the same on all ranks. The plan and its
/// adjoint each begin anew. Costs ranks^3 / 64 steps a round where no exchange crosses the world.
///
/// With several groups of that topology, errors of one are those of all by the end of the plan, and in its adjoint as
/// soon as all ranks of a group know of each other's: one round of each has witnesses, the one with the fewest.
[[nodiscard]] std::vector<Agreement> agreements(const Program& program, const Topology& topology, int groups = 1);

/// The witnesses of a rank in a round: ranks of the world. \param topology  a group's
[[nodiscard]] std::vector<int> witnesses_of(const Segment& round, Witnesses witnesses, const Topology& topology,
                                            const ReplicaGroups& groups, int rank);

/// A step where it runs.
struct PlacedStep {
    const Instruction* step = nullptr;
    Members group;
    Members under;
    std::size_t post = 0;  ///< of an exchange, its number among all of the program
    bool looks_up = false;
};
/// One segment of an itinerary.
struct Stage {
    std::vector<PlacedStep> local;
    std::vector<PlacedStep> posts;
    std::vector<int> to;         ///< the ranks that this one sends a message to, ascending
    std::vector<int> from;       ///< and those that it expects one of: as `to`, but in half a flight
    bool posts_look_up = false;  ///< some of them do, as they pack
    std::vector<int> witnesses;  ///< ranks of the world, in other groups: an envelope goes to each, and comes from each
    Agreement agreement;
};

/// The way of one rank through a program. Refers to the program.
class Itinerary {
  public:
    /// \param topology  the communicator's, with the towers that the plan's groups see
    Itinerary(const Program& program, const Topology& topology, int rank)
        : Itinerary{program, topology, ReplicaGroups::one(topology), rank} {}
    /// In one of several groups. All that steps see are ranks of the group, by index.
    /// \param topology  a group's \param rank  of the world
    Itinerary(const Program& program, const Topology& topology, const ReplicaGroups& groups, int rank);

    [[nodiscard]] const Program& program() const noexcept { return *program_; }
    [[nodiscard]] const Topology& topology() const noexcept { return topology_; }
    [[nodiscard]] const ReplicaGroups& groups() const noexcept { return groups_; }
    /// In the group, as peers are.
    [[nodiscard]] int rank() const noexcept { return rank_; }
    /// The rank of the communicator that a rank of the group is.
    [[nodiscard]] int in_world(int peer) const noexcept { return groups_.group.member(in_world_, peer); }
    [[nodiscard]] const std::vector<Stage>& stages() const noexcept { return stages_; }

    /// The two halves of a flight through a program whose rounds are a request and an answer, and that learns nothing.
    /// Errors stay on the rank that noted them. One half asks for its own batch: it sends the first round, expects the
    /// second, and goes on to the end.
    [[nodiscard]] Itinerary asking() const;
    /// The other answers some ranks, for which it needs no batch of its own: it expects the first round, and sends the
    /// second.
    [[nodiscard]] Itinerary answering(const std::vector<int>& peers) const;
    /// Errors stay on the rank that noted them.
    [[nodiscard]] Itinerary alone() const;
    /// Whether ranks agree on errors somewhere.
    [[nodiscard]] bool agrees() const noexcept;

  private:
    const Program* program_;
    Topology topology_;
    ReplicaGroups groups_;
    int in_world_;  // this rank
    int rank_;
    std::vector<Stage> stages_;  // (segment)
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/plan/itinerary.ipp"
#endif
