// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Groups of ranks as maps. Each rank belongs to one group of a kind; a group is never an object, only functions of the
/// topology and a rank.

namespace shardwise::inline SHARDWISE_ABI {

/// A group policy: how many members the group of `me` has, who they are in ascending order, the next hop of a block
/// that wants to go home to `source` (the member that stands where the source stands in its own group, as far as this
/// group can tell), the topology of the members alone, whether they are neighbours in the numbering of ranks, and a
/// name.
template <class G>
concept Group = requires(const Topology& topology, int me, int index, int source) {
    { G::size(topology) } -> std::same_as<int>;
    { G::member(topology, me, index) } -> std::same_as<int>;
    { G::index(topology, me) } -> std::same_as<int>;
    { G::toward(topology, me, source) } -> std::same_as<int>;
    { G::inside(topology) } -> std::same_as<Topology>;
    { G::consecutive } -> std::convertible_to<bool>;
    { G::name() } -> std::convertible_to<std::string>;
};

/// All ranks; a block is home in one hop.
struct World {
    static std::string name() { return "World"; }
    static constexpr bool consecutive = true;
    static constexpr int size(const Topology& t) noexcept { return t.ranks(); }
    static constexpr int member(const Topology&, int, int index) noexcept { return index; }
    static constexpr int index(const Topology&, int me) noexcept { return me; }
    static constexpr int toward(const Topology&, int, int source) noexcept { return source; }
    static constexpr Topology inside(const Topology& t) noexcept { return t; }
};

namespace detail {

/// Neighbouring ranks, `Size::of(topology)` of them. A block goes to the member that has the source's index.
template <class Size>
struct Neighbours {
    static constexpr bool consecutive = true;
    static constexpr int size(const Topology& t) noexcept { return Size::of(t); }
    static constexpr int member(const Topology& t, int me, int index) noexcept {
        return me / size(t) * size(t) + index;
    }
    static constexpr int index(const Topology& t, int me) noexcept { return me % size(t); }
    static constexpr int toward(const Topology& t, int me, int source) noexcept {
        return member(t, me, index(t, source));
    }
    static constexpr Topology inside(const Topology& t) noexcept {
        return size(t) < t.ranks_per_host
                   ? Topology{.hosts = 1, .ranks_per_host = size(t)}
                   : Topology{.hosts = size(t) / t.ranks_per_host, .ranks_per_host = t.ranks_per_host};
    }
};
template <int K>
struct RanksOfHosts {
    static_assert(K >= 1, "a tower has at least one host");
    static constexpr int of(const Topology& t) noexcept { return K * t.ranks_per_host; }
};
struct RanksOfTower {
    static constexpr int of(const Topology& t) noexcept { return t.ranks_per_tower(); }
};
template <int M>
struct RanksOfSlice {
    static_assert(M >= 1, "the world is cut into at least one slice");
    static constexpr int of(const Topology& t) noexcept { return t.ranks() / M; }
};

}  // namespace detail

/// The ranks of K neighbouring hosts. K divides the number of hosts.
template <int K>
struct Hosts : detail::Neighbours<detail::RanksOfHosts<K>> {
    static std::string name() { return K == 1 ? "Host" : "Hosts<" + std::to_string(K) + ">"; }
};
/// The ranks of my tower: of as many neighbouring hosts as the topology says.
struct OneTower : detail::Neighbours<detail::RanksOfTower> {
    static std::string name() { return "Tower"; }
};
/// The ranks of my host.
using OneHost = Hosts<1>;

/// The ranks of my slice, when the world is cut into M equal ones: all that one replica of a sharded table takes. M
/// divides the number of hosts, or is a multiple of it that divides the number of ranks.
template <int M>
struct Slices : detail::Neighbours<detail::RanksOfSlice<M>> {
    static std::string name() { return "Slices<" + std::to_string(M) + ">"; }
};

/// The ranks with one index inside their G, over all G's. A block goes to the rank of the source's G that has my index.
template <class G>
struct PeersOf {
    using across = G;  ///< whose members met before
    static_assert(G::consecutive,
                  "PeersOf<> takes a group of neighbouring ranks: World, Hosts<>, OneTower or Slices<>");
    static std::string name() { return G::name() == "Host" ? "Peers" : "PeersOf<" + G::name() + ">"; }
    static constexpr bool consecutive = false;
    static constexpr int size(const Topology& t) noexcept { return t.ranks() / G::size(t); }
    static constexpr int member(const Topology& t, int me, int index) noexcept {
        return index * G::size(t) + G::index(t, me);
    }
    static constexpr int index(const Topology& t, int me) noexcept { return me / G::size(t); }
    static constexpr int toward(const Topology& t, int me, int source) noexcept {
        return member(t, me, index(t, source));
    }
    static constexpr Topology inside(const Topology& t) noexcept {
        return G::size(t) < t.ranks_per_host
                   ? Topology{.hosts = t.hosts, .ranks_per_host = t.ranks_per_host / G::size(t)}
                   : Topology{.hosts = size(t), .ranks_per_host = 1};
    }
};
/// The ranks with my index on every host.
using Peers = PeersOf<OneHost>;
/// The ranks that have the same shard when M replicas of every table lie on M slices of the world.
template <int M>
using Replicas = PeersOf<Slices<M>>;

/// A G inside an H: the group that G makes of the ranks of H alone. Within<Peers, Hosts<2>>: my index on the hosts of
/// my tower.
template <class G, class H>
struct Within {
    static std::string name() { return "Within<" + G::name() + ", " + H::name() + ">"; }
    static constexpr bool consecutive = G::consecutive && H::consecutive;
    static constexpr int size(const Topology& t) noexcept { return G::size(H::inside(t)); }
    static constexpr int member(const Topology& t, int me, int index) noexcept {
        return H::member(t, me, G::member(H::inside(t), H::index(t, me), index));
    }
    static constexpr int index(const Topology& t, int me) noexcept { return G::index(H::inside(t), H::index(t, me)); }
    static constexpr int toward(const Topology& t, int me, int source) noexcept {
        return H::member(t, me, G::toward(H::inside(t), H::index(t, me), H::index(t, source)));
    }
    static constexpr Topology inside(const Topology& t) noexcept { return G::inside(H::inside(t)); }
};

}  // namespace shardwise::inline SHARDWISE_ABI
