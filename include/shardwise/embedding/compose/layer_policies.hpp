// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/compose/axes.hpp"
#include "shardwise/embedding/compose/named_axes.hpp"
#include "shardwise/embedding/compose/policies.hpp"
#include "shardwise/embedding/compose/refusals.hpp"
#include "shardwise/embedding/steps/row_exchange.hpp"
#include "shardwise/sharding/policy.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// The policies of a layer, every axis settled, and what makes no sense rejected.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

template <class S>
struct ShardingsOf {
    using type = boost::mp11::mp_list<S>;
};
template <class... S>
struct ShardingsOf<Mixed<S...>> {
    using type = boost::mp11::mp_list<S...>;
};
template <class... S>
struct ShardingsOf<Tiered<S...>> {
    using type = boost::mp11::mp_list<S...>;
};
template <class S>
using LivesInWorld = std::is_same<HomeOf<S>, World>;
template <class S>
using LivesInSelf = std::is_same<HomeOf<S>, Self>;
template <class S>
using SplitsRows = std::bool_constant<S::splits == Splits::rows && LivesInWorld<S>::value>;

/// The poolings of the plans that each sharding policy has.
template <class P>
struct PoolsOf {
    using type = boost::mp11::mp_list<P>;
    static constexpr bool pooled = P::pooled;
};
/// Vectors of a plan whose tables say whether they are sums or means.
struct SumOrMean {
    static constexpr const char* name = "pooled";
    static constexpr bool pooled = true;
};
template <>
struct PoolsOf<ByTable> {
    using type = boost::mp11::mp_list<SumOrMean, None>;
    static constexpr bool pooled = true;
};

template <class S>
inline constexpr bool is_mixed = false;
template <class... S>
inline constexpr bool is_mixed<Mixed<S...>> = true;

/// What the refusals look at.
template <class Sharding, class Collective, class Pooling, class Requests, class Order, class Forward, class Module,
          class Rule = RowwiseAdagrad<>, class IdsAt = AtSample>
constexpr LayerFacts facts_of() {
    using Shardings = typename ShardingsOf<Sharding>::type;
    using Way = LayerFacts::Way;
    LayerFacts f;
    f.way = std::is_same_v<Collective, TwoStage>       ? Way::two_stage
            : std::is_same_v<Collective, Hierarchical> ? Way::hierarchical
                                                       : Way::flat;
    f.mixed = is_mixed<Sharding>;
    f.tiered = is_tiered<Sharding>;
    f.any_copies = !boost::mp11::mp_all_of<Shardings, LivesInWorld>::value;
    f.none_travels = boost::mp11::mp_all_of<Shardings, LivesInSelf>::value;
    f.none_crosses = !boost::mp11::mp_any_of<Shardings, LivesInWorld>::value;
    f.sums_parts = PoolsOf<Pooling>::pooled && boost::mp11::mp_any_of<Shardings, SplitsRows>::value;
    f.module = !std::is_same_v<Module, PassThrough>;
    f.only_sums = std::is_same_v<Pooling, Sum>;
    f.coalesced = std::is_same_v<Requests, Coalesced>;
    f.by_sample = std::is_same_v<Order, Sample>;
    f.exact_forward = Forward::exact;
    f.sequences = std::is_same_v<Pooling, None> || std::is_same_v<Pooling, ByTable>;
    f.at_owner = std::is_same_v<IdsAt, AtOwner>;
    f.bounded = is_bounded<Collective>;
    f.learns = rule_learns<Rule>;
    return f;
}

}  // namespace detail

/// What the policies of a layer say, axis by axis: each policy given, or what the axis falls back to.
template <class... Policies>
struct LayerPolicies {
  private:
    template <class Axis>
    using On = detail::OnAxis<Axis, Policies...>;
    using AskedModule = typename On<TowerAxis>::type;

  public:
    using sharding = typename On<ShardingAxis>::type;
    using collective = typename On<CollectiveAxis>::type;
    using optimizer = detail::OptimizerParts<typename On<OptimizerAxis>::type>;
    using rule = typename optimizer::type;
    using moment_scale = typename optimizer::scale;
    using groups = detail::GroupsParts<typename On<GroupsAxis>::type>;
    using pooling = typename On<PoolingAxis>::type;
    using requests = typename On<RequestsAxis>::type;
    using ids = typename On<IdsAxis>::type;
    using order = typename On<OrderAxis>::type;
    using wire = typename On<WireAxis>::type;
    using module = std::conditional_t<std::is_same_v<collective, Hierarchical> && !detail::is_tiered<sharding>,
                                      AskedModule, PassThrough>;

    /// The sharding policies, and the poolings: a plan each, of which a layer with several has a Together.
    using shardings = typename detail::ShardingsOf<sharding>::type;
    static constexpr bool coalesced = std::is_same_v<requests, Coalesced>;
    using pools = typename detail::PoolsOf<std::conditional_t<coalesced, None, pooling>>::type;
    static constexpr bool tiered = detail::is_tiered<sharding>;
    static constexpr bool mixed = detail::is_mixed<sharding>;
    static constexpr bool has_module = !std::is_same_v<module, PassThrough>;
    /// What gradients are called on the wire: of coalesced requests they are partial sums.
    using gradient_wire =
        std::conditional_t<coalesced, steps::PartialSums<typename wire::backward, order>, typename wire::backward>;

    static constexpr LayerFacts facts = detail::facts_of<sharding, collective, pooling, requests, order,
                                                         typename wire::forward, AskedModule, rule, ids>();

    /// Plans are given ids at the owners of their rows; what is refused is not composed any further.
    static constexpr bool at_owner = facts.at_owner && refusal(facts) == nullptr;

  private:
    template <class... A>
    static constexpr bool check_all(boost::mp11::mp_list<A...>) {
        return (A::template check<typename On<A>::asked>() && ...);
    }

    // Assertions come last: Clang does not see the members behind one that fails.
    static_assert((detail::has_its_axis<Policies>() && ...));
    static_assert(
        (!detail::is_no_policy<Policies>() && ...),
        "EmbeddingLayer takes policies only: Sharding<>, Collective<>, Optimizer<>, Groups<>, Pooling<>, Requests<>, "
        "Ids<>, Order<>, Wire<>, Tower<>, Device<>, Element<>");
#define SHARDWISE_ONCE(axis)                   \
    static_assert(On<axis##Axis>::at_most_one, \
                  #axis "<> is given twice: an embedding layer takes at most one policy of each axis");
    SHARDWISE_AXES(SHARDWISE_ONCE)
#undef SHARDWISE_ONCE
    static_assert(check_all(Axes{}));
    static_assert(groups::count == 0 || !moment_scale::is_given ||
                      (groups::count == 1 ? moment_scale::value == 1.0F : moment_scale::value <= groups::count),
                  "MomentScale<c> takes a c of at most the number of groups, and without groups 1");
    static_assert(!rule_learns<rule> || detail::bound_of<collective> <= 0,
                  "where rows learn, others would look up rows that are yet to be updated: BoundedLag<k> with a k "
                  "above 0 needs Optimizer<Frozen>");
    static_assert(
        rule_learns<rule> || groups::bare_but_placement,
        "SyncEvery<n> and a choice of synced rows have no effect where the optimizer is Frozen: leave them out");
#define SHARDWISE_REFUSE(condition, sentence) static_assert(!detail::is_refused_by(facts, sentence), sentence);
    SHARDWISE_REFUSALS(SHARDWISE_REFUSE)
#undef SHARDWISE_REFUSE
};

}  // namespace shardwise::inline SHARDWISE_ABI
