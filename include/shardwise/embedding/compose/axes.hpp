// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/comm/wire.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/device.hpp"
#include "shardwise/embedding/compose/policies.hpp"
#include "shardwise/embedding/compose/refusals.hpp"
#include "shardwise/embedding/kernels/fold.hpp"
#include "shardwise/embedding/lanes/pooling.hpp"
#include "shardwise/embedding/lanes/tower_module.hpp"
#include "shardwise/embedding/runtime/layer_groups.hpp"
#include "shardwise/optimizer/moment_scale.hpp"
#include "shardwise/optimizer/optimizer.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/flex.hpp"
#include "shardwise/sharding/policy.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/topology/replica_groups.hpp"

/// \file
/// One descriptor an axis: how it is written, what it takes, what it is without being asked, and the sentence for
/// anything else.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// The axis that a policy of a layer belongs to; void for what is none.
template <class P>
struct AxisOf {
    using type = void;
};

/// True for what Sharding<> takes.
template <class S>
inline constexpr bool is_sharding = ShardingPolicy<S>;
template <class... S>
inline constexpr bool is_sharding<Mixed<S...>> =
    sizeof...(S) > 0 && (ShardingPolicy<S> && ...) && boost::mp11::mp_is_set<boost::mp11::mp_list<S...>>::value;
/// The orders of tiers that there are: from the most copies to one.
using TierOrders = boost::mp11::mp_list<Tiered<DP, Flex, Row>, Tiered<DP, Row>, Tiered<Flex, Row>>;
template <class S>
inline constexpr bool is_tiered = false;
template <class... S>
inline constexpr bool is_tiered<Tiered<S...>> = true;
template <class... S>
inline constexpr bool is_sharding<Tiered<S...>> = boost::mp11::mp_contains<TierOrders, Tiered<S...>>::value;
template <class S>
inline constexpr bool has_tiers_inside = false;
template <class... S>
inline constexpr bool has_tiers_inside<Mixed<S...>> = (is_tiered<S> || ...);
/// A home of one rank has nothing to split a table over.
template <class S>
inline constexpr bool is_whole = !std::is_same_v<HomeOf<S>, Self> || S::splits == Splits::nothing;
template <class... S>
inline constexpr bool is_whole<Mixed<S...>> = (is_whole<S> && ...);
template <class... S>
inline constexpr bool is_whole<Tiered<S...>> = true;

template <class T, class... Known>
inline constexpr bool is_one_of = (std::is_same_v<T, Known> || ...);

/// The MomentScale<c> that a rule's type says, as a list.
template <class Rule>
struct ScalesInRule {
    using type = boost::mp11::mp_list<>;
};
template <class Rule>
    requires(Rule::Scale::is_given)
struct ScalesInRule<Rule> {
    using type = boost::mp11::mp_list<typename Rule::Scale>;
};

/// What Optimizer<> says: its rule, and its scale of moments.
template <class T>
struct OptimizerParts {
    static constexpr bool rule = false;
    static constexpr bool known = false;
};
template <class Rule, class... Said>
struct OptimizerParts<Optimizer<Rule, Said...>> {
    using type = Rule;
    using scales_said = boost::mp11::mp_append<boost::mp11::mp_list<Said...>, typename ScalesInRule<Rule>::type>;
    using scale = boost::mp11::mp_front<boost::mp11::mp_push_back<scales_said, MomentScale<>>>;
    static constexpr bool rule = SparseOptimizer<Rule>;
    static constexpr bool scales = boost::mp11::mp_size<scales_said>::value <= 1 && (is_moment_scale<Said> && ...);
    static constexpr bool known = rule && scales && (sizeof...(Said) == 0 || ScaledMoment<Rule>);
};

/// The k of BoundedLag<k>.
template <class T>
inline constexpr int bound_of = -1;
template <int K>
inline constexpr int bound_of<BoundedLag<K>> = K;
template <class T>
inline constexpr bool is_bounded = false;
template <int K>
inline constexpr bool is_bounded<BoundedLag<K>> = true;

template <class T>
inline constexpr std::int64_t steps_of = 0;
template <std::int64_t N>
inline constexpr std::int64_t steps_of<SyncEvery<N>> = N;
template <class T>
inline constexpr bool is_sync_every = false;
template <std::int64_t N>
inline constexpr bool is_sync_every<SyncEvery<N>> = true;

/// What Groups<> says.
template <class T>
struct GroupsParts {
    static constexpr int count = -1;
    static constexpr bool options = true, steps = true, bare = true, bare_but_placement = true, known = false;
};
template <int M, class... O>
struct GroupsParts<Groups<M, O...>> {
    static constexpr int across = (0 + ... + int{std::is_same_v<O, AcrossHosts>});
    static constexpr int inside = (0 + ... + int{std::is_same_v<O, InsideHosts>});
    static constexpr int every = (0 + ... + int{is_sync_every<O>});
    static constexpr int touched = (0 + ... + int{std::is_same_v<O, TouchedRows>});
    static constexpr int all = (0 + ... + int{std::is_same_v<O, AllRows>});

    static constexpr int count = M;
    static constexpr bool options = across + inside <= 1 && every <= 1 && touched + all <= 1 &&
                                    across + inside + every + touched + all == sizeof...(O);
    static constexpr bool steps = ((!is_sync_every<O> || steps_of<O> > 0) && ...);
    static constexpr bool bare = sizeof...(O) == 0;
    static constexpr bool bare_but_placement = every + touched + all == 0;
    static constexpr bool known = count >= 0 && options && steps && (count > 1 || bare);

    static constexpr GroupOptions values() {
        GroupOptions o{.count = M};
        if (across + inside > 0) o.placement = inside > 0 ? GroupPlacement::inside_hosts : GroupPlacement::across_hosts;
        if (every > 0) o.sync_every = (std::int64_t{0} + ... + steps_of<O>);
        if (touched + all > 0) o.rows = all > 0 ? SyncRows::all : SyncRows::touched;
        return o;
    }
};

}  // namespace detail

/// Where rows and columns live: Sharding<>.
struct ShardingAxis {
    using fallback = Row;
    template <class T>
    static constexpr bool knows = detail::is_sharding<T>;
    template <class T>
    static constexpr bool check() {
        static_assert(!detail::is_tiered<T> || knows<T>, SHARDWISE_TIER_ORDERS);
        static_assert(!detail::has_tiers_inside<T>, SHARDWISE_TIERED_IN_MIXED);
        static_assert(knows<T> || detail::is_tiered<T> || detail::has_tiers_inside<T>,
                      "Sharding<> takes Row, Col<>, Col<Factor>, Table, DP, Flex, a ShardingPolicy of your own, "
                      "Mixed<> of several of them, each once, or Tiered<>");
        if constexpr (knows<T>)
            static_assert(detail::is_whole<T>,
                          "a ShardingPolicy whose home is one rank keeps whole tables on every rank: its splits is "
                          "Splits::nothing");
        return true;
    }
};
/// How looked-up vectors travel: Collective<>.
struct CollectiveAxis {
    using fallback = Flat;
    using values = boost::mp11::mp_list<Flat, TwoStage, Hierarchical, BoundedLag<>>;
    template <class T>
    static constexpr bool knows = boost::mp11::mp_contains<values, T>::value || detail::bound_of<T> >= 0;
    template <class T>
    static constexpr bool check() {
        static_assert(knows<T> || !detail::is_bounded<T>, "BoundedLag<k> takes a k of 0 or more, or none");
        static_assert(knows<T> || detail::is_bounded<T>,
                      "Collective<> takes Flat, TwoStage, Hierarchical or BoundedLag<k>");
        return true;
    }
};
/// How rows learn: Optimizer<>.
struct OptimizerAxis {
    using fallback = Optimizer<RowwiseAdagrad<>>;
    template <class T>
    static constexpr bool knows = detail::OptimizerParts<T>::known;
    template <class T>
    static constexpr bool check() {
        using Parts = detail::OptimizerParts<T>;
        static_assert(
            Parts::rule,
            "Optimizer<> takes a SparseOptimizer: Sgd, Adagrad, RowwiseAdagrad<>, Adam, RmsProp, Frozen, or a "
            "struct of your own with all that optimizer/optimizer.hpp asks for");
        if constexpr (Parts::rule) {
            static_assert(Parts::scales, "beside its rule Optimizer<> takes one MomentScale<c>, said once");
            static_assert(!Parts::scales || Parts::known,
                          "MomentScale<c> divides a moment, and this optimizer has none that it divides: leave it out");
        }
        return true;
    }
};
/// Replica groups of ranks: Groups<>.
struct GroupsAxis {
    using fallback = Groups<>;
    template <class T>
    static constexpr bool knows = detail::GroupsParts<T>::known;
    template <class T>
    static constexpr bool check() {
        using Parts = detail::GroupsParts<T>;
        static_assert(Parts::count >= 0,
                      "Groups<M> takes a number of groups, 1 or more, or nothing: as LayerOptions say");
        static_assert(Parts::options,
                      "after its number Groups<> takes AcrossHosts or InsideHosts, SyncEvery<n>, and TouchedRows or "
                      "AllRows, each at most once");
        static_assert(Parts::steps, "SyncEvery<n> takes a positive number of steps");
        static_assert(Parts::count > 1 || Parts::bare,
                      "a placement, SyncEvery<n> or a choice of synced rows has no effect where there is one group: "
                      "give Groups<M, ...> more, or say them in LayerOptions::groups");
        return true;
    }
};
/// What a lookup returns: Pooling<>.
struct PoolingAxis {
    using fallback = Sum;
    using values = boost::mp11::mp_list<Sum, Mean, None, ByTable>;
    template <class T>
    static constexpr bool knows = boost::mp11::mp_contains<values, T>::value;
    template <class T>
    static constexpr bool check() {
        static_assert(knows<T>, "Pooling<> takes Sum, Mean or None, or ByTable where each table says it");
        return true;
    }
};
/// What a batch asks for: Requests<>.
struct RequestsAxis {
    using fallback = Raw;
    using values = boost::mp11::mp_list<Raw, Coalesced>;
    template <class T>
    static constexpr bool knows = boost::mp11::mp_contains<values, T>::value;
    template <class T>
    static constexpr bool check() {
        static_assert(knows<T>, "Requests<> takes Raw or Coalesced");
        return true;
    }
};
/// Where the ids of a batch are: Ids<>.
struct IdsAxis {
    using fallback = AtSample;
    using values = boost::mp11::mp_list<AtSample, AtOwner>;
    template <class T>
    static constexpr bool knows = boost::mp11::mp_contains<values, T>::value;
    template <class T>
    static constexpr bool check() {
        static_assert(knows<T>, "Ids<> takes AtSample or AtOwner");
        return true;
    }
};
/// How gradients are summed: Order<>.
struct OrderAxis {
    using fallback = Tree;
    using values = boost::mp11::mp_list<Tree, WideTree, Sample>;
    template <class T>
    static constexpr bool knows = boost::mp11::mp_contains<values, T>::value;
    template <class T>
    static constexpr bool check() {
        static_assert(knows<T>, "Order<> takes Tree, WideTree or Sample");
        return true;
    }
};
/// The precision of vectors on the wire: Wire<>.
struct WireAxis {
    using fallback = Wire<Fp32>;
    template <class T>
    static constexpr bool knows = (WireCodec<typename T::forward> && WireCodec<typename T::backward>);
    template <class T>
    static constexpr bool check() {
        static_assert(knows<T>, "Wire<> takes Fp32, Bf16 or a WireCodec of your own");
        return true;
    }
};
/// What towers do with vectors: Tower<>.
struct TowerAxis {
    using fallback = PassThrough;
    template <class T>
    static constexpr bool knows = std::is_same_v<T, PassThrough> || TowerModule<T>;
    template <class T>
    static constexpr bool check() {
        static_assert(knows<T>, "Tower<> takes PassThrough, Dot, Cross or a TowerModule of your own");
        return true;
    }
};
/// Where tables and kernels live: Device<>.
struct DeviceAxis {
    using fallback = Host;
    using values = boost::mp11::mp_list<Host, Cuda>;
    template <class T>
    static constexpr bool knows = boost::mp11::mp_contains<values, T>::value;
    template <class T>
    static constexpr bool check() {
        static_assert(knows<T>, "Device<> takes Host or Cuda");
        if constexpr (knows<T>)
            static_assert(std::is_same_v<T, Host>,
                          "Device<Cuda> needs a communicator for device memory: use Device<Host>, or the kernels of "
                          "embedding/kernels/lookup.cuh by hand");
        return true;
    }
};
/// The type of elements: Element<>.
struct ElementAxis {
    using fallback = float;
    template <class T>
    static constexpr bool knows = std::is_same_v<T, float>;
    template <class T>
    static constexpr bool check() {
        static_assert(knows<T>, "Element<> takes float in this version");
        return true;
    }
};

/// All axes of an embedding layer.
using Axes = boost::mp11::mp_list<ShardingAxis, CollectiveAxis, OptimizerAxis, GroupsAxis, PoolingAxis, RequestsAxis,
                                  IdsAxis, OrderAxis, WireAxis, TowerAxis, DeviceAxis, ElementAxis>;

namespace detail {

template <class S>
struct AxisOf<Sharding<S>> {
    using type = ShardingAxis;
};
template <class C>
struct AxisOf<Collective<C>> {
    using type = CollectiveAxis;
};
template <class... O>
struct AxisOf<Optimizer<O...>> {
    using type = OptimizerAxis;
};
template <int M, class... O>
struct AxisOf<Groups<M, O...>> {
    using type = GroupsAxis;
};
template <class P>
struct AxisOf<Pooling<P>> {
    using type = PoolingAxis;
};
template <class R>
struct AxisOf<Requests<R>> {
    using type = RequestsAxis;
};
template <class I>
struct AxisOf<Ids<I>> {
    using type = IdsAxis;
};
template <class O>
struct AxisOf<Order<O>> {
    using type = OrderAxis;
};
template <class F, class B>
struct AxisOf<Wire<F, B>> {
    using type = WireAxis;
};
template <class M>
struct AxisOf<Tower<M>> {
    using type = TowerAxis;
};
template <class D>
struct AxisOf<Device<D>> {
    using type = DeviceAxis;
};
template <class T>
struct AxisOf<Element<T>> {
    using type = ElementAxis;
};

/// What a layer's policies say about one axis.
template <class Axis, class... Policies>
struct OnAxis {
    template <class P>
    using Is = std::is_same<typename AxisOf<P>::type, Axis>;
    struct Fallback {
        using type = typename Axis::fallback;
    };
    using found = boost::mp11::mp_copy_if<boost::mp11::mp_list<Policies...>, Is>;
    static constexpr bool at_most_one = boost::mp11::mp_size<found>::value <= 1;
    using asked = typename boost::mp11::mp_front<boost::mp11::mp_push_back<found, Fallback>>::type;
    static constexpr bool known = Axis::template knows<asked>;
    /// What is rejected is a fallback for all that follows, so that there is one error.
    using type = std::conditional_t<known, asked, typename Axis::fallback>;
};

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
