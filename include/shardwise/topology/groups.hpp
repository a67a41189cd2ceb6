// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>

#include "shardwise/core/config.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Groups of ranks as maps. Each rank belongs to one group of a kind; a group is never an object, only functions of the
/// topology and a rank.

namespace shardwise::inline SHARDWISE_ABI {

/// A group policy: how many members the group of `me` has, who they are in ascending order, and the next hop of a block
/// that wants to go home to `source`.
template <class G>
concept Group = requires(const Topology& topology, int me, int index, int source) {
    { G::size(topology) } -> std::same_as<int>;
    { G::member(topology, me, index) } -> std::same_as<int>;
    { G::index(topology, me) } -> std::same_as<int>;
    { G::toward(topology, me, source) } -> std::same_as<int>;
};

/// All ranks; a block is home in one hop.
struct World {
    static constexpr int size(const Topology& t) noexcept { return t.ranks(); }
    static constexpr int member(const Topology&, int, int index) noexcept { return index; }
    static constexpr int index(const Topology&, int me) noexcept { return me; }
    static constexpr int toward(const Topology&, int, int source) noexcept { return source; }
};

/// The ranks of K neighbouring hosts (a tower; Hosts<1> is one host). A block goes to the rank of this tower that has
/// the source's index in its own tower. K divides the number of hosts.
template <int K>
struct Hosts {
    static_assert(K >= 1, "a tower has at least one host");
    static constexpr int size(const Topology& t) noexcept { return K * t.ranks_per_host; }
    static constexpr int member(const Topology& t, int me, int index) noexcept {
        return me / size(t) * size(t) + index;
    }
    static constexpr int index(const Topology& t, int me) noexcept { return me % size(t); }
    static constexpr int toward(const Topology& t, int me, int source) noexcept {
        return member(t, me, index(t, source));
    }
};

/// The ranks with one index inside their G, over all G's. A block goes to the rank of the source's G that has my index.
template <class G>
struct PeersOf {
    static constexpr int size(const Topology& t) noexcept { return t.ranks() / G::size(t); }
    static constexpr int member(const Topology& t, int me, int index) noexcept {
        return index * G::size(t) + G::index(t, me);
    }
    static constexpr int index(const Topology& t, int me) noexcept { return me / G::size(t); }
    static constexpr int toward(const Topology& t, int me, int source) noexcept {
        return member(t, me, index(t, source));
    }
};

/// The ranks of my host.
using OneHost = Hosts<1>;
/// The ranks with my index on every host.
using Peers = PeersOf<OneHost>;

}  // namespace shardwise::inline SHARDWISE_ABI
