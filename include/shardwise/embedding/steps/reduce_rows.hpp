// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/steps/row_exchange.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Gradients of copied rows summed over their copies, level by level of the tree: scatter by row inside hosts,
/// then across them, and gather back. Each row is summed once a level, and crosses hosts once each way.

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

template <class G>
inline constexpr bool is_tree_group =
    std::is_same_v<G, World> || std::is_same_v<G, OneHost> || std::is_same_v<G, Peers>;

/// A function, since Clang takes no member of a class in which an assertion fails.
template <class G>
constexpr bool check_tree_group() {
    static_assert(is_tree_group<G>,
                  "rows are reduced over World, OneHost or Peers: sums over any other group are no level of the tree");
    return true;
}

}  // namespace detail

/// The levels of the tree under a group: what the adjoint of Replicate<G> goes up and down again. None where the group
/// is no union of levels.
template <class G, class Wire, class Order>
struct ReduceRows {
    using type = std::enable_if_t<detail::check_tree_group<G>(), Plan<>>;
};
/// Host by host, then across hosts.
template <class Wire, class Order>
struct ReduceRows<World, Wire, Order> {
    using type = Plan<ScatterRows<OneHost, Self, false, Wire, Order>, ScatterRows<Peers, OneHost, true, Wire, Order>,
                      GatherRows<Peers, OneHost, true, Wire, Order>, GatherRows<OneHost, Self, false, Wire, Order>>;
};
/// Inside one host.
template <class Wire, class Order>
struct ReduceRows<OneHost, Wire, Order> {
    using type = Plan<ScatterRows<OneHost, Self, false, Wire, Order>, GatherRows<OneHost, Self, true, Wire, Order>>;
};
/// Across hosts.
template <class Wire, class Order>
struct ReduceRows<Peers, Wire, Order> {
    using type = Plan<ScatterRows<Peers, Self, false, Wire, Order>, GatherRows<Peers, Self, true, Wire, Order>>;
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps
