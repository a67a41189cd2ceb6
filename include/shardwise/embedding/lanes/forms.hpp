// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include "shardwise/core/config.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// The forms of the lanes between the steps of an embedding plan: types that carry no data. A step says by its
/// Out<Form> after which forms it may stand.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// Vectors go straight home.
struct NoRelays {
    static constexpr bool any = false;
    static constexpr bool told = false;
    using group = Self;
};
/// Vectors go to the member of G in which the owner of the rows is that has the source's index, and from there home.
/// \tparam Told  relays are told how many vectors there are: those of sequences cannot know
template <Group G, bool Told>
struct RelaysIn {
    static constexpr bool any = true;
    static constexpr bool told = Told;
    using group = G;
};

/// Vectors go straight home, to ranks that did not ask for them: each owner was given all ranks' ids.
struct Unasked {};

/// The user's bags.
struct Bags {};
/// Ids by (feature, shard), still where the samples are; their rows are in the group Home.
template <class Home>
struct ShardIds {};
/// Ids where their rows are, in the group Home. `Relays` says how vectors go home.
template <class Home, class Relays = NoRelays>
struct OwnedIds {};
/// Vectors by (source, feature, shard), where the rows are.
template <class Home, class Relays>
struct OwnedVectors {};
/// Vectors by (source, feature, shard), on a rank of G between the rows and the samples.
template <class G>
struct RelayedVectors {};
/// One vector a sample, of all features of the tower G side by side, where RelayedVectors<G> were.
template <class G>
struct TowerVectors {};
/// What a module made of them, there.
template <class G>
struct ModuleVectors {};
/// Vectors by (feature, shard), where the samples are.
struct HomeVectors {};
/// What the modules made, by tower, where the samples are.
struct HomeTowers {};
/// One result a feature.
struct Outputs {};

namespace detail {

/// What a lookup makes of ids; nothing where they are not with their rows, or where relays would not know how many
/// vectors there are.
template <class Form, bool Pooled>
struct LookedUp {};
template <class Home, bool Pooled>
struct LookedUp<OwnedIds<Home, NoRelays>, Pooled> {
    using type = OwnedVectors<Home, NoRelays>;
};
template <bool Pooled>
struct LookedUp<OwnedIds<Self, NoRelays>, Pooled> {
    using type = HomeVectors;
};
template <class Home>
struct LookedUp<OwnedIds<Home, Unasked>, true> {
    using type = OwnedVectors<Home, Unasked>;
};
template <>
struct LookedUp<OwnedIds<Self, Unasked>, true> {
    using type = HomeVectors;
};
template <class G, bool Told, bool Pooled>
    requires(Told == !Pooled)
struct LookedUp<OwnedIds<World, RelaysIn<G, Told>>, Pooled> {
    using type = OwnedVectors<World, RelaysIn<G, Told>>;
};

/// The form of the lanes after a hop inside H; none where vectors are not on their way there.
template <class H, class Form, bool ToRelays>
struct AfterHop {};
template <class Home>
struct AfterHop<Home, OwnedVectors<Home, NoRelays>, false> {
    using type = HomeVectors;
};
template <class G, bool Told>
struct AfterHop<G, OwnedVectors<World, RelaysIn<G, Told>>, true> {
    using type = RelayedVectors<G>;
};
template <class H, class G>
    requires std::is_same_v<typename H::across, G>
struct AfterHop<H, RelayedVectors<G>, false> {
    using type = HomeVectors;
};
template <class H, class G>
    requires std::is_same_v<typename H::across, G>
struct AfterHop<H, ModuleVectors<G>, false> {
    using type = HomeTowers;
};

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI::steps
