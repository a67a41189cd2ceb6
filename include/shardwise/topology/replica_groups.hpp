// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/topology/members.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// The world cut into groups of ranks, each of which holds every table.
/// (Two-dimensional sparse parallelism, sections 3.1 and 5)

namespace shardwise::inline SHARDWISE_ABI {

/// Which ranks make a group.
enum class GroupPlacement : std::uint8_t {
    across_hosts,  ///< neighbours: a group is whole hosts, or an equal part of one, and copies lie on other hosts
    inside_hosts   ///< every M-th rank: the M copies of a shard are neighbours on one host
};
/// "across" or "inside".
[[nodiscard]] inline std::string name_of(GroupPlacement placement) {
    return placement == GroupPlacement::across_hosts ? "across" : "inside";
}

/// M groups of N ranks each. A rank's number in its group is its index; the ranks with one index, one in each group,
/// hold the same rows: they are copies of each other.
struct ReplicaGroups {
    Topology world;  ///< all ranks
    Members group;   ///< of N ranks
    Members copies;  ///< of M ranks

    /// One group of all ranks.
    [[nodiscard]] static constexpr ReplicaGroups one(const Topology& world) noexcept {
        return {.world = world, .group = {.size = world.ranks(), .stride = 1}, .copies = {.size = 1, .stride = 1}};
    }
    [[nodiscard]] constexpr int count() const noexcept { return copies.size; }
    [[nodiscard]] constexpr int group_of(int rank) const noexcept { return copies.index(rank); }
    [[nodiscard]] constexpr int index_of(int rank) const noexcept { return group.index(rank); }
    /// The member of a group with an index.
    [[nodiscard]] constexpr int rank_of(int number, int index) const noexcept {
        return group.member(copies.member(0, number), index);
    }
    /// A group as a topology of its own: members by index, their hosts, and the world's towers where they fit.
    [[nodiscard]] constexpr Topology inside_group() const noexcept {
        Topology t = inside(world, group);
        t.hosts_per_tower = t.hosts % world.hosts_per_tower == 0 ? world.hosts_per_tower : 1;
        return t;
    }
    [[nodiscard]] constexpr Topology between_copies() const noexcept { return inside(world, copies); }
    /// The same with the copies as the groups; nobody has copies of those.
    [[nodiscard]] constexpr ReplicaGroups of_copies() const noexcept {
        return {.world = world, .group = copies, .copies = {.size = 1, .stride = 1}};
    }
    /// Ranks of the world that are a group of those of a group, by index.
    [[nodiscard]] constexpr Members in_world(const Members& inner) const noexcept {
        return {.size = inner.size, .stride = inner.stride * group.stride};
    }
    friend constexpr bool operator==(const ReplicaGroups&, const ReplicaGroups&) = default;
};

/// Whether a placement has groups of that number. Across hosts a group is whole hosts, or an equal part of one; inside
/// hosts the copies are ranks of one host.
[[nodiscard]] constexpr bool has_groups(const Topology& world, int count, GroupPlacement placement) noexcept {
    if (count < 1) return false;
    if (placement == GroupPlacement::inside_hosts) return world.ranks_per_host % count == 0;
    return world.hosts % count == 0 || (count % world.hosts == 0 && world.ranks() % count == 0);
}

/// The world in `count` groups.
/// \throws BadInput for a number that the placement does not have, naming those that it has
[[nodiscard]] inline ReplicaGroups replica_groups(const Topology& world, int count, GroupPlacement placement) {
    if (!has_groups(world, count, placement)) {
        std::string legal;
        for (int some = 1; some <= world.ranks(); ++some)
            if (has_groups(world, some, placement)) legal += (legal.empty() ? "" : ", ") + std::to_string(some);
        throw BadInput{
            concat({count, " groups ", name_of(placement), " hosts, of ", world.hosts, " hosts of ",
                    world.ranks_per_host, " ranks: ",
                    placement == GroupPlacement::inside_hosts ? "the copies of a shard are ranks of one host"
                                                              : "a group is whole hosts, or an equal part of one",
                    "; give one of ", legal})};
    }
    if (count == 1) return ReplicaGroups::one(world);
    const int size = world.ranks() / count;
    if (placement == GroupPlacement::inside_hosts)
        return {.world = world, .group = {.size = size, .stride = count}, .copies = {.size = count, .stride = 1}};
    return {.world = world, .group = {.size = size, .stride = 1}, .copies = {.size = count, .stride = size}};
}

}  // namespace shardwise::inline SHARDWISE_ABI
