// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/comm/wire.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/cost.hpp"
#include "shardwise/embedding/fold.hpp"
#include "shardwise/embedding/row_exchange.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Gradients of replicated rows summed over their replicas, level by level of the tree: scatter by row inside hosts,
/// then across them, and gather back. Each row is summed once a level, and crosses hosts once each way.

namespace shardwise::inline SHARDWISE_ABI {

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
template <class Wire, class Order>
struct ReduceRows<World, Wire, Order> {
    using Partial = detail::PartialSum<Wire, Order>;
    using type = Plan<ScatterRows<OneHost, Wire, Order>, ScatterRows<Peers, Wire, Order, Partial>,
                      GatherRows<Peers, Wire, Order, Partial>, GatherRows<OneHost, Wire, Order>>;
};
template <class Wire, class Order>
struct ReduceRows<OneHost, Wire, Order> {
    using Partial = detail::PartialSum<Wire, Order>;
    using type = Plan<ScatterRows<OneHost, Wire, Order>, GatherRows<OneHost, Wire, Order, Partial>>;
};
template <class Wire, class Order>
struct ReduceRows<Peers, Wire, Order> {
    using Partial = detail::PartialSum<Wire, Order>;
    using type = Plan<ScatterRows<Peers, Wire, Order>, GatherRows<Peers, Wire, Order, Partial>>;
};

/// Every member of G holds the rows: forward nothing, backward the sum over the members.
template <class G, class Wire = Fp32, class Order = Tree>
struct Replicate {
    template <class Form>
    using Out = Form;
    using Adjoint = typename ReduceRows<G, Wire, Order>::type;
    using Uses = boost::mp11::mp_list<>;
    static constexpr bool reads_state = false;
    static std::string name() { return std::string{"Replicate<"} + G::name() + ">"; }
    template <class V>
    static void run(StepEnv&, V&) {}
    static void shape(EmbeddingCost&) {}
};

}  // namespace shardwise::inline SHARDWISE_ABI
