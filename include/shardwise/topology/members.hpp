// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>

#include "shardwise/core/config.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// A group of ranks as a value. Every group that a plan crosses is a progression, so a size and a stride say all.

namespace shardwise::inline SHARDWISE_ABI {

/// The groups of one kind: each has `size` ranks, `stride` apart, and every rank is in one. Their numbers are known at
/// run time, so that they multiply no instantiation. Ranks of another group than `me`'s have no place in its answers.
struct Members {
    int size = 1;
    int stride = 1;

    /// The first member of the group of `me`.
    [[nodiscard]] constexpr int base(int me) const noexcept {
        return me / (size * stride) * (size * stride) + me % stride;
    }
    /// The member with a number, in ascending order.
    [[nodiscard]] constexpr int member(int me, int number) const noexcept { return base(me) + number * stride; }
    /// The number of `rank` in its own group.
    [[nodiscard]] constexpr int index(int rank) const noexcept { return rank / stride % size; }
    /// The next hop of what wants to go home to `source`: the member that stands where `source` stands in its group.
    [[nodiscard]] constexpr int toward(int me, int source) const noexcept { return member(me, index(source)); }
    /// Whether two ranks are in one group.
    [[nodiscard]] constexpr bool together(int a, int b) const noexcept { return base(a) == base(b); }
    /// Of so many ranks, those with one index in their group, over all groups. The groups are neighbours (stride 1).
    [[nodiscard]] constexpr Members peers(int ranks) const noexcept { return {.size = ranks / size, .stride = size}; }

    friend constexpr bool operator==(const Members&, const Members&) = default;
};

/// The members of a group as a topology of their own, renumbered by their index: which of them share a host, and a
/// tower where the group is made of whole ones.
[[nodiscard]] constexpr Topology inside(const Topology& t, const Members& group) noexcept {
    if (group.size == t.ranks()) return t;
    const int on_a_host = std::clamp(t.ranks_per_host / group.stride, 1, group.size);
    const int hosts = group.size / on_a_host;
    const bool of_whole_towers = group.stride == 1 && hosts % t.hosts_per_tower == 0;
    return {.hosts = hosts, .ranks_per_host = on_a_host, .hosts_per_tower = of_whole_towers ? t.hosts_per_tower : 1};
}

}  // namespace shardwise::inline SHARDWISE_ABI
