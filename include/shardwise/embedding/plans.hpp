// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/apply_module.hpp"
#include "shardwise/embedding/exchange_ids.hpp"
#include "shardwise/embedding/exchange_vectors.hpp"
#include "shardwise/embedding/join.hpp"
#include "shardwise/embedding/lanes.hpp"
#include "shardwise/embedding/lookup.hpp"
#include "shardwise/embedding/policies.hpp"
#include "shardwise/embedding/reduce_rows.hpp"
#include "shardwise/embedding/split.hpp"
#include "shardwise/embedding/sum_shards.hpp"
#include "shardwise/embedding/tower_module.hpp"
#include "shardwise/embedding/transpose.hpp"
#include "shardwise/embedding/update.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/plan/check.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Policies become a plan: one metafunction an axis, no class a combination.

namespace shardwise::inline SHARDWISE_ABI {

/// The types that the steps of embedding plans work on.
struct EmbeddingDomain {
    using Lanes = shardwise::Lanes;
    using Cost = EmbeddingCost;
};

/// The policies of a layer, every axis settled, and what makes no sense rejected.
template <class... Policies>
struct LayerPolicies {
  private:
    using AskedCollective = typename detail::AxisValue<detail::IsCollective, Collective<Flat>, Policies...>::type;
    using AskedSharding = typename detail::AxisValue<detail::IsSharding, Sharding<Row>, Policies...>::type;
    using AskedRule = typename detail::AxisValue<detail::IsOptimizer, Optimizer<RowwiseAdagrad<>>, Policies...>::type;
    using AskedPooling = typename detail::AxisValue<detail::IsPooling, Pooling<Sum>, Policies...>::type;
    using AskedOrder = typename detail::AxisValue<detail::IsOrder, Order<Tree>, Policies...>::type;
    using AskedWire = typename detail::AxisValue<detail::IsWire, Wire<Fp32>, Policies...>::type;
    using AskedModule = typename detail::AxisValue<detail::IsTower, Tower<PassThrough>, Policies...>::type;
    using AskedDevice = typename detail::AxisValue<detail::IsDevice, Device<Host>, Policies...>::type;

    static constexpr bool one_each =
        detail::at_most_one<detail::IsSharding, Policies...> &&
        detail::at_most_one<detail::IsCollective, Policies...> &&
        detail::at_most_one<detail::IsOptimizer, Policies...> && detail::at_most_one<detail::IsPooling, Policies...> &&
        detail::at_most_one<detail::IsOrder, Policies...> && detail::at_most_one<detail::IsWire, Policies...> &&
        detail::at_most_one<detail::IsTower, Policies...> && detail::at_most_one<detail::IsDevice, Policies...> &&
        detail::at_most_one<detail::IsElement, Policies...>;
    static constexpr bool knows_sharding = detail::is_sharding<AskedSharding>;
    static constexpr bool knows_collective = detail::is_one_of<AskedCollective, Flat, TwoStage, Hierarchical>;
    static constexpr bool knows_rule = SparseOptimizer<AskedRule>;
    static constexpr bool knows_pooling = detail::is_one_of<AskedPooling, Sum, Mean, None>;
    static constexpr bool knows_order = detail::is_one_of<AskedOrder, Tree, WideTree, Sample>;
    static constexpr bool knows_wire =
        WireCodec<typename AskedWire::forward> && WireCodec<typename AskedWire::backward>;
    static constexpr bool knows_module = std::is_same_v<AskedModule, PassThrough> || TowerModule<AskedModule>;
    static constexpr bool knows_device = detail::is_one_of<AskedDevice, Host, Cuda>;

  public:
    // What is rejected below becomes a default here, so that it is one error.
    using sharding = std::conditional_t<knows_sharding, AskedSharding, Row>;
    using collective = std::conditional_t<knows_collective, AskedCollective, Flat>;
    using rule = std::conditional_t<knows_rule, AskedRule, RowwiseAdagrad<>>;
    using pooling = std::conditional_t<knows_pooling, AskedPooling, Sum>;
    using order = std::conditional_t<knows_order, AskedOrder, Tree>;
    using wire = std::conditional_t<knows_wire, AskedWire, Wire<Fp32>>;
    using module =
        std::conditional_t<knows_module && std::is_same_v<collective, Hierarchical>, AskedModule, PassThrough>;
    using device = std::conditional_t<knows_device, AskedDevice, Host>;
    using element = typename detail::AxisValue<detail::IsElement, Element<float>, Policies...>::type;

  private:
    template <class S>
    struct ListOf {
        using type = boost::mp11::mp_list<S>;
    };
    template <class... S>
    struct ListOf<Mixed<S...>> {
        using type = boost::mp11::mp_list<S...>;
    };
    template <class S>
    using IsReplicated = std::bool_constant<S::replicated>;
    template <class S>
    using SplitsRows = std::bool_constant<!S::replicated && S::splits == Splits::rows>;
    template <class S>
    using KeepsReplicasWhole = std::bool_constant<!S::replicated || S::splits == Splits::nothing>;

  public:
    /// The sharding policies, one a branch.
    using shardings = typename ListOf<sharding>::type;
    static constexpr bool mixed = !std::is_same_v<shardings, boost::mp11::mp_list<sharding>>;
    static constexpr bool has_module = !std::is_same_v<module, PassThrough>;
    static constexpr bool any_replicated = boost::mp11::mp_any_of<shardings, IsReplicated>::value;
    static constexpr bool any_partial_sums = pooling::pooled && boost::mp11::mp_any_of<shardings, SplitsRows>::value;
    static constexpr bool all_replicated = boost::mp11::mp_all_of<shardings, IsReplicated>::value;

    // Assertions come last: Clang does not see the members behind one that fails.
    static_assert(
        (detail::IsPolicy<Policies>::value && ...),
        "EmbeddingLayer takes policies only: Sharding<>, Collective<>, Optimizer<>, Pooling<>, Order<>, Wire<>, "
        "Tower<>, Device<>, Element<>");
    static_assert(one_each, "an embedding layer takes at most one policy of each axis");
    static_assert(knows_sharding,
                  "Sharding<> takes Row, Col<>, Col<Factor>, Table, DP, a ShardingPolicy of your own, or Mixed<> of "
                  "several of them, "
                  "each once");
    static_assert(boost::mp11::mp_all_of<shardings, KeepsReplicasWhole>::value,
                  "a ShardingPolicy whose rows are replicated keeps whole tables on every rank: its splits is "
                  "Splits::nothing");
    static_assert(SparseOptimizer<AskedRule>,
                  "Optimizer<> takes a SparseOptimizer: Sgd, Adagrad, RowwiseAdagrad<>, Adam, or a struct of your own "
                  "with all that optimizer/optimizer.hpp asks for");
    static_assert(knows_pooling, "Pooling<> takes Sum, Mean or None");
    static_assert(knows_order, "Order<> takes Tree, WideTree or Sample");
    static_assert(knows_wire, "Wire<> takes Fp32, Bf16 or a WireCodec of your own");
    static_assert(knows_device, "Device<> takes Host or Cuda");
    static_assert(knows_collective, "Collective<> takes Flat, TwoStage or Hierarchical");
    static_assert(
        !std::is_same_v<collective, TwoStage> || any_partial_sums || all_replicated,
        "Collective<TwoStage> sums the parts of a bag on each host before they cross: it needs a sharding that "
        "splits rows (Row) and Pooling<Sum> or Pooling<Mean>; otherwise use Collective<Flat>");
    static_assert(std::is_same_v<collective, Flat> || !all_replicated,
                  "no vector travels where all rows are replicated: use Collective<Flat>");
    static_assert(knows_module, "Tower<> takes PassThrough, Dot, Cross or a TowerModule of your own");
    static_assert(!knows_module || std::is_same_v<AskedModule, module>,
                  "a tower's module works where the vectors of all its features meet: Tower<> needs "
                  "Collective<Hierarchical>");
    static_assert(!has_module || !mixed,
                  "a tower's module takes all features of the tower, and the policies of a Mixed layer travel apart: "
                  "Tower<> needs one sharding policy for all tables");
    static_assert(!has_module || mixed || std::is_same_v<pooling, Sum>,
                  "a tower's module takes sums: relays know no lengths, so Tower<> needs Pooling<Sum> (for means, give "
                  "each id of a bag the weight 1 / length)");
    static_assert(std::is_same_v<device, Host>,
                  "Device<Cuda> needs a communicator for device memory: use Device<Host>, or the kernels of "
                  "embedding/lookup.cuh by hand");
    static_assert(std::is_same_v<element, float>, "Element<> takes float in this version");
    static_assert(
        !(any_replicated && std::is_same_v<order, Sample>),
        "Order<Sample> needs every contribution at one owner, and replicated rows (DP) are summed on each rank "
        "first: use Order<Tree> or Order<WideTree>, or Row, Col<> or Table");
    static_assert(
        !(all_replicated && !std::is_same_v<typename wire::forward, Fp32>),
        "the forward wire has no effect where all rows are replicated, since no vector travels: use Wire<Fp32, "
        "...>");
};

namespace detail {

/// How vectors come home, and what the ids must bring for it.
template <class Collective, class P, class S>
struct WayHome {
    using ids = ExchangeIds<>;
    using type = Plan<ExchangeVectors<World, typename P::wire::forward, typename P::wire::backward>>;
    using norms_in = World;
};
/// What a relay in G does with vectors: sums parts, and applies the tower's module.
template <class G, class M>
struct AtRelay {
    using type = Plan<Transpose<G>, Apply<G, M>>;
};
template <class G>
struct AtRelay<G, PassThrough> {
    using type = Plan<>;
};
/// Over a relay in G. \tparam PartialSums  the relay sums them
template <class G, class P, bool PartialSums>
struct WayOverRelays {
    template <class H>
    using Hop = ExchangeVectors<H, typename P::wire::forward, typename P::wire::backward>;
    using ids = ExchangeIds<RelaysIn<G, !P::pooling::pooled>>;
    using type = Splice<Plan<Hop<G>>, std::conditional_t<PartialSums, Plan<SumShards<G>>, Plan<>>,
                        typename AtRelay<G, typename P::module>::type, Plan<Hop<PeersOf<G>>>>;
    using norms_in = G;
};
template <class P, class S>
inline constexpr bool has_partial_sums = (S::splits == Splits::rows) && P::pooling::pooled;
template <class P, class S>
struct WayHome<Hierarchical, P, S> : WayOverRelays<OneTower, P, has_partial_sums<P, S>> {};
template <class P, class S>
struct WayHome<TwoStage, P, S>
    : std::conditional_t<has_partial_sums<P, S>, WayOverRelays<OneHost, P, true>, WayHome<Flat, P, S>> {};

template <class P, class S>
struct BranchPlan {
    using rule = typename P::rule;
    using pooling = typename P::pooling;
    using way = WayHome<typename P::collective, P, S>;
    // blocks that are placed by load may lie in several towers
    using norms_in = std::conditional_t<PlacesByLoad<S> && !P::has_module, World, typename way::norms_in>;
    using norms = std::conditional_t<rule::needs_row_norm && S::splits == Splits::columns,
                                     RowNorms<typename P::order, norms_in>, NoRowNorms>;
    using parameters = Parameters<rule, typename P::order, norms>;

    using owned = Splice<Plan<Split<S, pooling>, typename way::ids, parameters, Lookup<pooling>>, typename way::type,
                         Plan<std::conditional_t<P::has_module, JoinTowers, Join<S, pooling>>>>;
    using replicated =
        Plan<Split<S, pooling>, parameters, Replicate<World, typename P::wire::backward, typename P::order>,
             Lookup<pooling>, Join<S, pooling>>;
    using agreeing =
        Plan<Split<S, pooling>, Agree, parameters, Replicate<World, typename P::wire::backward, typename P::order>,
             Lookup<pooling>, Join<S, pooling>>;
    using type = std::conditional_t<!S::replicated, owned, std::conditional_t<P::all_replicated, agreeing, replicated>>;
};

template <class P, class Shardings>
struct LayerPlan;
template <class P, class... S>
struct LayerPlan<P, boost::mp11::mp_list<S...>> {
    using type = Plan<Together<typename BranchPlan<P, S>::type...>>;
};
template <class P, class S, bool Mixed>
struct PlanOf {
    using type = typename BranchPlan<P, S>::type;
};
template <class P, class S>
struct PlanOf<P, S, true> {
    using type = typename LayerPlan<P, typename P::shardings>::type;
};

}  // namespace detail

/// The forward plan of a layer with these policies (a LayerPolicies).
template <class P>
using PlanOf = typename detail::PlanOf<P, typename P::sharding, P::mixed>::type;

}  // namespace shardwise::inline SHARDWISE_ABI
