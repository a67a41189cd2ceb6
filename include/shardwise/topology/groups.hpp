// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <string>
#include <type_traits>

#include "shardwise/core/config.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/topology/members.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Names of groups. A plan says by a type whom an exchange crosses; who that is on a topology is a value, Members.

namespace shardwise::inline SHARDWISE_ABI {

/// A name for a kind of group: `of(topology)` says who the members are, `name()` what people call them.
template <class G>
concept Group = requires(const Topology& topology) {
    { G::of(topology) } -> std::same_as<Members>;
    { G::name() } -> std::convertible_to<std::string>;
};

/// All ranks; a block is home in one hop.
struct World {
    static std::string name() { return "World"; }
    static constexpr Members of(const Topology& t) noexcept { return {.size = t.ranks(), .stride = 1}; }
};

/// Each rank alone.
struct Self {
    static std::string name() { return "Self"; }
    static constexpr Members of(const Topology&) noexcept { return {}; }
};

/// The ranks of K neighbouring hosts. K divides the number of hosts.
template <int K>
struct Hosts {
    static_assert(K >= 1, "a tower has at least one host");
    static std::string name() { return K == 1 ? "Host" : "Hosts<" + std::to_string(K) + ">"; }
    static constexpr Members of(const Topology& t) noexcept { return {.size = K * t.ranks_per_host, .stride = 1}; }
};
/// The ranks of my host.
using OneHost = Hosts<1>;

/// The ranks of my tower: of as many neighbouring hosts as the topology says.
struct OneTower {
    static std::string name() { return "Tower"; }
    static constexpr Members of(const Topology& t) noexcept { return {.size = t.ranks_per_tower(), .stride = 1}; }
};

namespace detail {

/// Whether a group's members are neighbours in the numbering of ranks; users' groups may say so, too.
template <class G>
inline constexpr bool is_consecutive = requires {
    requires G::consecutive;
};
template <>
inline constexpr bool is_consecutive<World> = true;
template <>
inline constexpr bool is_consecutive<Self> = true;
template <>
inline constexpr bool is_consecutive<OneTower> = true;
template <int K>
inline constexpr bool is_consecutive<Hosts<K>> = true;

}  // namespace detail

/// The ranks with one index inside their G, over all G's. A block goes to the rank of the source's G that has my index.
template <class G>
struct PeersOf {
    using across = G;  ///< whose members met before
    static_assert(detail::is_consecutive<G>,
                  "PeersOf<> takes a group of neighbouring ranks: World, Self, Hosts<> or OneTower");
    static std::string name() { return G::name() == "Host" ? "Peers" : "PeersOf<" + G::name() + ">"; }
    static constexpr Members of(const Topology& t) noexcept { return G::of(t).peers(t.ranks()); }
};
/// The ranks with my index on every host.
using Peers = PeersOf<OneHost>;

/// A G inside an H: the group that G makes of the ranks of H alone. Within<Peers, Hosts<2>>: my index on the hosts of
/// my tower.
template <class G, class H>
struct Within {
    static std::string name() { return concat({"Within<", G::name(), ", ", H::name(), ">"}); }
    static constexpr bool consecutive = detail::is_consecutive<G> && detail::is_consecutive<H>;
    static constexpr Members of(const Topology& t) noexcept {
        const Members outer = H::of(t);
        const Members inner = G::of(shardwise::inside(t, outer));
        return {.size = inner.size, .stride = inner.stride * outer.stride};
    }
};

namespace detail {

template <class Home>
struct Copies {
    using type = PeersOf<Home>;
};
template <>
struct Copies<Self> {
    using type = World;
};
template <>
struct Copies<World> {
    using type = Self;
};

}  // namespace detail

/// Who has the same rows when one copy of a table lies in `Home`: the peers of that group. Self where there is one
/// copy.
template <class Home>
using CopiesOf = typename detail::Copies<Home>::type;

}  // namespace shardwise::inline SHARDWISE_ABI
