// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/compose/layer_policies.hpp"
#include "shardwise/embedding/steps/agree.hpp"
#include "shardwise/embedding/steps/apply_module.hpp"
#include "shardwise/embedding/steps/coalesce.hpp"
#include "shardwise/embedding/steps/exchange_answers.hpp"
#include "shardwise/embedding/steps/exchange_ids.hpp"
#include "shardwise/embedding/steps/exchange_vectors.hpp"
#include "shardwise/embedding/steps/fork_tables.hpp"
#include "shardwise/embedding/steps/fork_tiers.hpp"
#include "shardwise/embedding/steps/join.hpp"
#include "shardwise/embedding/steps/join_towers.hpp"
#include "shardwise/embedding/steps/lookup.hpp"
#include "shardwise/embedding/steps/owner_split.hpp"
#include "shardwise/embedding/steps/parameters.hpp"
#include "shardwise/embedding/steps/split.hpp"
#include "shardwise/embedding/steps/sum_shards.hpp"
#include "shardwise/embedding/steps/transpose.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Policies become a plan: one metafunction an axis, no class a combination.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// How vectors come home to samples in Home, and what the ids must bring for it.
/// \tparam Parts  they are partial sums \tparam Sequences  relays cannot know how many there are
template <class Collective, class P, class Home, bool Parts, bool Sequences>
struct WayHome {
    using relays = steps::NoRelays;
    using type = Plan<steps::ExchangeVectors<Home, typename P::wire::forward, typename P::gradient_wire>>;
    using norms_in = Home;
};
/// Where every rank has all rows.
template <class Collective, class P, bool Parts, bool Sequences>
struct WayHome<Collective, P, Self, Parts, Sequences> {
    using relays = steps::NoRelays;
    using type = Plan<>;
    using norms_in = Self;
};
/// What a relay in G does with vectors of whole sums: applies the tower's module.
template <class G, class M>
struct AtRelay {
    using type = Plan<steps::Transpose<G>, steps::Apply<G, M>>;
};
template <class G>
struct AtRelay<G, PassThrough> {
    using type = Plan<>;
};
template <class G, class P, bool Parts, bool Sequences>
struct WayOverRelays {
    using forward = typename P::wire::forward;
    using backward = typename P::gradient_wire;
    using relays = steps::RelaysIn<G, Sequences>;
    using type = Splice<Plan<steps::ExchangeVectors<G, forward, backward, true>>,
                        std::conditional_t<Parts, Plan<steps::SumShards<G>>, Plan<>>,
                        typename AtRelay<G, typename P::module>::type,
                        Plan<steps::ExchangeVectors<PeersOf<G>, forward, backward>>>;
    using norms_in = G;
};
template <class P, bool Parts, bool Sequences>
struct WayHome<Hierarchical, P, World, Parts, Sequences> : WayOverRelays<OneTower, P, Parts, Sequences> {};
template <class P, bool Sequences>
struct WayHome<TwoStage, P, World, true, Sequences> : WayOverRelays<OneHost, P, true, Sequences> {};

/// How a plan's ids come to their rows, its first step, and how vectors come home.
template <class P, class S, class Way>
struct IdsToRows {
    using Home = HomeOf<S>;
    using first = steps::Split<S>;
    using type = Splice<Plan<first>, std::conditional_t<std::is_same_v<Home, Self>, Plan<>,
                                                        Plan<steps::ExchangeIds<Home, typename Way::relays>>>>;
    using home = typename Way::type;
};
template <class P, class S, class Way>
    requires(P::at_owner)
struct IdsToRows<P, S, Way> {
    using Home = HomeOf<S>;
    using first = steps::OwnerSplit<S>;
    using type = Plan<first>;
    using home =
        std::conditional_t<std::is_same_v<Home, Self>, Plan<>,
                           Plan<steps::ExchangeAnswers<Home, typename P::wire::forward, typename P::gradient_wire>>>;
};

/// Whether a policy sees all tables before it places one; policies known by name say so.
template <class S>
inline constexpr bool places_together = MapsTogether<S> || requires {
    requires S::together;
};

/// A plan of tables that policy S places and Pool pools.
template <class P, class S, class Pool>
struct TablesPlan {
    using Home = HomeOf<S>;
    static constexpr bool in_world = std::is_same_v<Home, World>;
    using Way = WayHome<typename P::collective, P, Home, S::splits == Splits::rows && Pool::pooled, !Pool::pooled>;

    using Ids = IdsToRows<P, S, Way>;
    /// Where no plan of the layer crosses the world with its ids, errors are agreed on before anything is looked up.
    using agree = std::conditional_t<P::facts.none_crosses && !P::facts.errors_stay(),
                                     Plan<steps::Agree<CopiesOf<Home>>>, Plan<>>;
    /// Blocks that are placed together may lie in several towers.
    using norms_in =
        std::conditional_t<places_together<S> && in_world && !P::has_module, World, typename Way::norms_in>;
    using parameters =
        steps::Parameters<typename P::rule, typename P::order,
                          std::conditional_t<P::rule::needs_row_norm && S::splits == Splits::columns, norms_in, void>>;
    using copies =
        std::conditional_t<in_world, Plan<>,
                           Plan<steps::Replicate<CopiesOf<Home>, typename P::wire::backward, typename P::order>>>;
    using type =
        Splice<typename Ids::type, agree, Plan<parameters>, copies, Plan<steps::Lookup<Pool::pooled>>,
               typename Ids::home,
               Plan<std::conditional_t<P::has_module, steps::JoinTowers, steps::Join<S, Pool, typename Ids::first>>>>;
};

/// Tiers sum, and the merge behind them divides.
template <class Pool>
struct PoolOfTier {
    using type = Pool;
};
template <>
struct PoolOfTier<Mean> {
    using type = Sum;
};

template <class P, class Pairs>
struct LayerPlan;
template <class P, class S, class Pool>
    requires(!P::tiered)
struct LayerPlan<P, boost::mp11::mp_list<boost::mp11::mp_list<S, Pool>>> {
    using type = typename TablesPlan<P, S, Pool>::type;
};
template <class P, class... S, class... Pool>
requires P::tiered struct LayerPlan<P, boost::mp11::mp_list<boost::mp11::mp_list<S, Pool>...>> {
    using type = Plan<Together<steps::ForkTiers, steps::MergeTiers,
                               typename TablesPlan<P, S, typename PoolOfTier<Pool>::type>::type...>>;
};
template <class P, class... S, class... Pool>
    requires(sizeof...(S) > 1 && !P::tiered)
struct LayerPlan<P, boost::mp11::mp_list<boost::mp11::mp_list<S, Pool>...>> {
    using type = Plan<Together<steps::ForkTables, steps::MergeTables, typename TablesPlan<P, S, Pool>::type...>>;
};

/// The plan of all tables, of bags; of lists of distinct ids, where requests are coalesced.
template <class P>
using PlanOfTables =
    typename LayerPlan<P,
                       boost::mp11::mp_product<boost::mp11::mp_list, typename P::shardings, typename P::pools>>::type;
template <class P>
struct RequestsPlan {
    using type = PlanOfTables<P>;
};
template <class P>
requires P::coalesced struct RequestsPlan<P> {
    using type = Plan<Together<steps::Coalesce, steps::Expand<typename P::pooling>, PlanOfTables<P>>>;
};

/// The policies of hot batches, where the first tier is on every rank: that tier alone, of which nothing crosses the
/// world; ids are those of a rank's own samples.
template <class P>
struct HotPolicies : P {
    using shardings = boost::mp11::mp_list<boost::mp11::mp_front<typename P::shardings>>;
    static constexpr LayerFacts facts = [] {
        LayerFacts f = P::facts;
        f.none_crosses = true;
        return f;
    }();
    static constexpr bool at_owner = false;
};
template <class P>
inline constexpr bool has_hot_batches = P::tiered&& LivesInSelf<boost::mp11::mp_front<typename P::shardings>>::value;

}  // namespace detail

/// The forward plan of a layer with these policies (a LayerPolicies).
template <class P>
using PlanOf = typename detail::RequestsPlan<P>::type;
/// That of batches all of whose rows are on every rank: the plan of the replicated tier alone. Only with Tiered<DP,
/// ...>.
template <class P>
using HotPlanOf = PlanOf<detail::HotPolicies<P>>;

}  // namespace shardwise::inline SHARDWISE_ABI
