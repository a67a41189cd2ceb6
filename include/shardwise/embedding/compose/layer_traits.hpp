// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/compose/layer_policies.hpp"
#include "shardwise/embedding/compose/plans.hpp"
#include "shardwise/embedding/runtime/traits.hpp"
#include "shardwise/optimizer/optimizer.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/sharding/shard_map.hpp"

/// \file
/// The policies of a layer as the values that it is made from.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

template <class... S>
std::vector<ShardingTraits> sharding_traits_of(boost::mp11::mp_list<S...>) {
    return {sharding_traits<S>()...};
}
/// Of hot batches; without segments where there are none.
template <class P>
Program hot_program_of() {
    if constexpr (has_hot_batches<P>)
        return make_program<steps::EmbeddingDomain, HotPlanOf<P>, rule_learns<typename P::rule>>();
    else
        return {};
}
/// What the policy says of the moment's scale stands where the rule's constants leave it open.
template <class Scale, class Rule>
Rule scaled(Rule rule) {
    if constexpr (ScaledMoment<Rule>)
        if (rule.moment_scale == as_many_as_groups) rule.moment_scale = Scale::value;
    return rule;
}
template <class P>
constexpr Pools pools_of() {
    if (std::is_same_v<P, Sum>) return Pools::sum;
    if (std::is_same_v<P, Mean>) return Pools::mean;
    return std::is_same_v<P, None> ? Pools::none : Pools::by_table;
}

template <class C>
BoundPolicy bound_policy() {
    BoundPolicy policy{.bounded = is_bounded<C>, .k = {}};
    if (bound_of<C> >= 0) policy.k = bound_of<C>;
    return policy;
}

}  // namespace detail

/// The policies P (a LayerPolicies) as values. \throws BadInput for constants that the rule's `check()` refuses
template <class P>
[[nodiscard]] LayerTraits layer_traits(const typename P::rule& rule, const typename P::module::Config& module) {
    return {.pools = detail::pools_of<typename P::pooling>(),
            .mixed = P::mixed,
            .tiered = P::tiered,
            .hierarchical = std::is_same_v<typename P::collective, Hierarchical>,
            .two_stage = std::is_same_v<typename P::collective, TwoStage>,
            .coalesced = P::coalesced,
            .at_owner = P::facts.at_owner,
            .shardings = detail::sharding_traits_of(typename P::shardings{}),
            .rule = make_row_rule(detail::scaled<typename P::moment_scale>(rule)),
            .order = &order_traits<typename P::order>,
            .wires = {codec_of<typename P::wire::forward>(), codec_of<typename P::wire::backward>()},
            .module = module_policy<typename P::module>(module),
            .groups = P::groups::values(),
            .bound = detail::bound_policy<typename P::collective>(),
            .program = make_program<steps::EmbeddingDomain, PlanOf<P>, rule_learns<typename P::rule>>(),
            .hot_program = detail::hot_program_of<P>()};
}

}  // namespace shardwise::inline SHARDWISE_ABI
