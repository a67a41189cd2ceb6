// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/forms.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Ranks that pass vectors on: who they are, and what they pass on.

namespace shardwise::inline SHARDWISE_ABI {

/// Vectors go straight home.
struct NoRelays {
    static constexpr bool any = false;
    static constexpr bool counts = false;
};
/// Vectors go to the member of G in which the owner of the rows is that has the source's index, and from there home.
/// \tparam Told  relays are told how many vectors there are: those of sequences cannot know
template <Group G, bool Told>
struct RelaysIn {
    static constexpr bool any = true;
    static constexpr bool counts = Told;
    /// Calls use(BlockPlace) for the blocks whose vectors `relay` passes on.
    template <class Use>
    static void for_blocks(const Placement& placement, int relay, Use use) {
        for (int f = 0; f < static_cast<int>(placement.features.size()); ++f)
            for (int s = 0; s < static_cast<int>(placement.table_of(f).shards.size()); ++s) {
                const BlockPlace place{.feature = f, .shard = s};
                const int owner = placement.shard(place).owner;
                if (G::member(placement.topology, relay, 0) == G::member(placement.topology, owner, 0)) use(place);
            }
    }
    /// Whether `relay` passes on vectors to `source`.
    static bool relays(const Topology& topology, int relay, int source) {
        return G::toward(topology, relay, source) == relay;
    }
};

/// The form of the lanes after a hop inside H; none where vectors are not on their way there.
template <class H, class Form>
struct AfterHop {};
template <>
struct AfterHop<World, OwnedVectors<NoRelays>> {
    using type = HomeVectors;
};
template <class G, bool Told>
struct AfterHop<G, OwnedVectors<RelaysIn<G, Told>>> {
    using type = RelayedVectors<G>;
};
template <class H, class G>
    requires std::is_same_v<typename H::across, G>
struct AfterHop<H, RelayedVectors<G>> {
    using type = HomeVectors;
};
template <class H, class G>
    requires std::is_same_v<typename H::across, G>
struct AfterHop<H, ModuleVectors<G>> {
    using type = HomeTowers;
};

}  // namespace shardwise::inline SHARDWISE_ABI
