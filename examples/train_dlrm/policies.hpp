// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <optional>
#include <type_traits>

#include <boost/mp11.hpp>

#include "embedding.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/adagrad.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"
#include "shardwise/tower/any_module.hpp"

/// \file
/// The policies of every axis, and the compositions that this program has: their product, less what makes no sense.

namespace train_dlrm {

namespace mp = boost::mp11;

using Optimizers =
    mp::mp_list<sw::Sgd, sw::Adagrad, sw::RowwiseAdagrad<>, sw::RowwiseAdagrad<sw::MeanOfSquares>, sw::Adam>;
using Poolings = mp::mp_list<sw::Sum, sw::Mean>;
using Orders = mp::mp_list<sw::WideTree, sw::Tree, sw::Sample>;
using Wires = mp::mp_list<sw::Fp32, sw::Bf16>;
using MixedTables = sw::Mixed<sw::DP, sw::Table, sw::Row>;
using Collectives = mp::mp_list<sw::Flat, sw::TwoStage, sw::Hierarchical>;
using TowerModules = mp::mp_list<sw::PassThrough, sw::AnyModule>;
using RelayedOptimizers = mp::mp_list<sw::Sgd, sw::RowwiseAdagrad<>, sw::Adam>;
using RelayedOrders = mp::mp_list<sw::WideTree, sw::Tree>;
using Shardings = mp::mp_list<sw::Row, sw::Col<>, sw::Table, sw::DP, MixedTables>;

template <class S, class C, class O, class P, class Order, class W, class M>
struct Composition {
    // where all rows are replicated, gradients alone travel
    using Wire = std::conditional_t<std::is_same_v<S, sw::DP>, sw::Wire<sw::Fp32, W>, sw::Wire<W>>;
    using Layer = sw::EmbeddingLayer<sw::Sharding<S>, sw::Collective<C>, sw::Optimizer<O>, sw::Pooling<P>,
                                     sw::Order<Order>, Wire, sw::Tower<M>>;
    static constexpr bool has_module = std::is_same_v<M, sw::AnyModule>;
    static Policies names() {
        return {.sharding = S::name,
                .collective = C::name,
                .optimizer = O::name,
                .pooling = P::name,
                .order = Order::name,
                .wire = W::name,
                .tower = M::name};
    }
};

template <class S>
inline constexpr bool replicates = S::replicated;
template <class... S>
inline constexpr bool replicates<sw::Mixed<S...>> = (S::replicated || ...);

/// Whether vectors of a sharding travel, and whether they are parts of sums.
template <class S>
inline constexpr bool sends_vectors = !std::is_same_v<S, sw::DP>;
template <class S>
inline constexpr bool sends_parts = std::is_same_v<S, sw::Row> || std::is_same_v<S, MixedTables>;

/// Whether what a sharding learns by, and in which order, goes with a collective: over relays this program has the
/// optimizers and orders that its users train with, since nothing else of either changes how vectors travel.
template <class C, class O, class Order>
inline constexpr bool trains_over = std::is_same_v<C, sw::Flat> || (mp::mp_contains<RelayedOptimizers, O>::value &&
                                                                    mp::mp_contains<RelayedOrders, Order>::value);

/// Whether a sharding goes with a collective and a module.
template <class S, class C, class M>
inline constexpr bool goes_with =
    std::is_same_v<M, sw::AnyModule>
        ? std::is_same_v<C, sw::Hierarchical>&& sends_vectors<S> && !std::is_same_v<S, MixedTables>
        : std::is_same_v<C, sw::Flat> || (std::is_same_v<C, sw::TwoStage> ? sends_parts<S> : sends_vectors<S>);

/// Whether this program has the composition; check_policies says the same in words.
template <class C>
struct IsBuilt;
template <class S, class C, class O, class P, class Order, class W, class M>
struct IsBuilt<Composition<S, C, O, P, Order, W, M>> {
    static constexpr bool by_sample = std::is_same_v<Order, sw::Sample>;
    static constexpr bool pooling = std::is_same_v<M, sw::PassThrough> || std::is_same_v<P, sw::Sum>;
    static constexpr bool value =
        goes_with<S, C, M> && pooling && trains_over<C, O, Order> && (!by_sample || (!replicates<S> && W::exact));
};

template <class S, class C, class M>
using Compositions = mp::mp_copy_if<
    mp::mp_product<Composition, mp::mp_list<S>, mp::mp_list<C>, Optimizers, Poolings, Orders, Wires, mp::mp_list<M>>,
    IsBuilt>;

/// The layer with sharding S, collective C, module M and the rest of `policies`; none where it is not built. Each S, C
/// and M that go together have a translation unit of their own.
template <class S, class C, class M>
[[nodiscard]] std::unique_ptr<sw::LayerBase> make_composition(const Policies& policies, sw::CommunicatorRef comm,
                                                              const std::vector<sw::TableConfig>& tables,
                                                              const sw::LayerOptions& options,
                                                              const sw::AnyModule::Config& module);
/// The same layer on paper.
template <class S, class C, class M>
[[nodiscard]] std::optional<sw::LayerBlueprint> draw_composition(const Policies& policies, const sw::Topology& topology,
                                                                 const std::vector<sw::TableConfig>& tables,
                                                                 const sw::Towers& towers,
                                                                 const sw::AnyModule::Config& module);

}  // namespace train_dlrm
