// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/config.hpp"

/// \file
/// The forms of the lanes between the steps of an embedding plan: types that carry no data. A step says by its
/// Out<Form> after which forms it may stand.

namespace shardwise::inline SHARDWISE_ABI {

/// The user's bags.
struct Bags {};
/// Ids by (feature, shard), still where the samples are.
struct ShardIds {};
/// Ids where their rows are; `Home` when that is also where the samples are. `Relays` says how vectors go home.
template <bool Home, class Relays>
struct OwnedIds {};
/// Vectors by (source, feature, shard), where the rows are.
template <class Relays>
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
/// What a lookup makes of ids; nothing where they are not with their rows, or where relays would not know how many
/// vectors there are.
template <class Form, bool Pooled>
struct LookedUp {};
template <class Relays, bool Pooled>
struct LookedUp<OwnedIds<true, Relays>, Pooled> {
    using type = HomeVectors;
};
template <class Relays, bool Pooled>
    requires(!Relays::any || Relays::counts == !Pooled)
struct LookedUp<OwnedIds<false, Relays>, Pooled> {
    using type = OwnedVectors<Relays>;
};
/// One result a feature.
struct Outputs {};

}  // namespace shardwise::inline SHARDWISE_ABI
