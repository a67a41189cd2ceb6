// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/mp11.hpp>

#include "laws/compositions.hpp"
#include "laws/mix.hpp"
#include "laws/reference_rule.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/adagrad.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/frozen.hpp"
#include "shardwise/optimizer/rms_prop.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/flex.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"

/// \file
/// One composition, and the compositions of one sharding.

namespace laws {

template <class Shardings>
std::vector<std::string> names_of() {
    std::vector<std::string> names;
    boost::mp11::mp_for_each<boost::mp11::mp_transform<boost::mp11::mp_identity, Shardings>>(
        [&]<class S>(boost::mp11::mp_identity<S>) { names.emplace_back(S::name); });
    return names;
}
/// Whether vectors of some tables travel over the world; and whether some tables have copies.
template <class S>
inline constexpr bool crosses =
    boost::mp11::mp_any_of<typename sw::detail::ShardingsOf<S>::type, sw::detail::LivesInWorld>::value;
template <class S>
inline constexpr bool copied =
    !boost::mp11::mp_all_of<typename sw::detail::ShardingsOf<S>::type, sw::detail::LivesInWorld>::value;

template <class S, class P, class Rule, class W, class O, class C = sw::Flat, class M = sw::PassThrough,
          class R = sw::Raw, class I = sw::AtSample>
Composition composition() {
    using Composed = sw::EmbeddingLayer<sw::Sharding<S>, sw::Pooling<P>, sw::Optimizer<Rule>, W, sw::Order<O>,
                                        sw::Collective<C>, sw::Tower<M>, sw::Requests<R>, sw::Ids<I>>;
    static constexpr CompositionConstants constants{
        .sharding = S::name,
        .shardings = names_of<typename sw::detail::ShardingsOf<S>::type>,
        .tiered = sw::detail::is_tiered<S>,
        .crosses = crosses<S>,
        .pooling = P::name,
        .optimizer = Rule::name,
        .forward_wire = W::forward::name,
        .backward_wire = W::backward::name,
        .order = O::name,
        .collective = C::name,
        .tower = M::name,
        .requests = R::name,
        .ids = I::name,
        .module = [] { return sw::module_policy<M>({}); },
        .build = [](sw::CommunicatorRef comm, std::vector<sw::TableConfig> tables, const sw::LayerOptions& options,
                    float moment_scale) -> std::unique_ptr<sw::LayerBase> {
            Rule rule;
            if constexpr (sw::ScaledMoment<Rule>) rule.moment_scale = moment_scale;
            return std::make_unique<Composed>(comm, std::move(tables), options, rule);
        },
        .draw =
            [](const sw::Topology& topology, std::vector<sw::TableConfig> tables, const sw::Towers& towers,
               const sw::RowPlan* rows) {
                return Composed::blueprint(topology, std::move(tables), {.towers = towers, .rows = rows});
            }};
    return make_composition(constants);
}

/// Every optimizer with exact wires along the tree, and other wires and orders so that every pair of values meets.
template <class S, class P>
void add_compositions(std::vector<Composition>& all) {
    using Exact = sw::Wire<sw::Fp32>;
    using Lossy = sw::Wire<sw::Bf16>;
    using LossyBack = sw::Wire<sw::Fp32, sw::Bf16>;
    all.push_back(composition<S, P, sw::Sgd, Exact, sw::Tree>());
    all.push_back(composition<S, P, sw::Adagrad, Exact, sw::Tree>());
    all.push_back(composition<S, P, sw::RowwiseAdagrad<>, Exact, sw::Tree>());
    all.push_back(composition<S, P, sw::RowwiseAdagrad<sw::MeanOfSquares>, Exact, sw::Tree>());
    all.push_back(composition<S, P, sw::Adam, Exact, sw::Tree>());
    if constexpr (std::is_same_v<S, sw::Row>) all.push_back(composition<S, P, sw::RmsProp, Exact, sw::Tree>());
    all.push_back(composition<S, P, sw::RowwiseAdagrad<>, Exact, sw::WideTree>());
    all.push_back(composition<S, P, sw::Adagrad, LossyBack, sw::WideTree>());
    all.push_back(composition<S, P, sw::Frozen, Exact, sw::Tree>());
    if constexpr (copied<S>) {
        all.push_back(composition<S, P, sw::Adagrad, LossyBack, sw::Tree>());
        if constexpr (!crosses<S> && !std::is_same_v<S, sw::DP>) {  // others meet these over relays
            all.push_back(composition<S, P, sw::RowwiseAdagrad<>, Lossy, sw::Tree>());
            all.push_back(composition<S, P, sw::Adam, Lossy, sw::WideTree>());
        }
    } else {
        all.push_back(composition<S, P, sw::Adagrad, Exact, sw::Sample>());
        all.push_back(composition<S, P, sw::RowwiseAdagrad<>, Lossy, sw::Sample>());
        all.push_back(composition<S, P, sw::Adam, Lossy, sw::Tree>());
        all.push_back(composition<S, P, sw::Sgd, LossyBack, sw::Tree>());
        all.push_back(composition<S, P, sw::Frozen, Lossy, sw::Sample>());
    }
}
/// Vectors over relays, with every wire and order.
template <class S, class P, class C>
void add_relayed(std::vector<Composition>& all) {
    using Exact = sw::Wire<sw::Fp32>;
    using Lossy = sw::Wire<sw::Bf16>;
    using LossyBack = sw::Wire<sw::Fp32, sw::Bf16>;
    all.push_back(composition<S, P, sw::RowwiseAdagrad<>, Exact, sw::Tree, C>());
    all.push_back(composition<S, P, sw::Adagrad, Lossy, sw::WideTree, C>());
    all.push_back(composition<S, P, sw::Frozen, Lossy, sw::Tree, C>());
    if constexpr (!copied<S>) all.push_back(composition<S, P, sw::Sgd, LossyBack, sw::Sample, C>());
}
/// Towers with modules.
template <class S>
void add_modules(std::vector<Composition>& all) {
    using Exact = sw::Wire<sw::Fp32>;
    using Lossy = sw::Wire<sw::Bf16>;
    using C = sw::Hierarchical;
    all.push_back(composition<S, sw::Sum, sw::RowwiseAdagrad<>, Exact, sw::Tree, C, Mix>());
    all.push_back(composition<S, sw::Sum, sw::Adam, Lossy, sw::WideTree, C, Mix>());
    all.push_back(composition<S, sw::Sum, sw::Frozen, Exact, sw::Tree, C, Mix>());
}
/// Ids at their owners: a composition a pooling by its types, and some by names alone.
template <class S, class P>
void add_at_owner(std::vector<Composition>& all) {
    if constexpr (P::pooled && !std::is_same_v<S, sw::DP>) {
        const std::size_t others = all.size();
        all.push_back(composition<S, P, sw::RowwiseAdagrad<>, sw::Wire<sw::Fp32>, sw::Tree, sw::Flat, sw::PassThrough,
                                  sw::Raw, sw::AtOwner>());
        for (std::size_t i = 0; i < others; ++i) {
            const Composition& one = all[i];
            const bool chosen = one.optimizer == "frozen" || one.optimizer == "adam" || one.order == "sample" ||
                                (one.optimizer == "adagrad" && one.order == "wide_tree");
            if (one.pooling != P::name || one.collective != "flat" || one.is_coalesced() || !chosen) continue;
            Composition other = one;
            other.ids = "at_owner";
            other.build = nullptr;
            other.draw = nullptr;
            all.push_back(std::move(other));
        }
    }
}
/// Coalesced requests: a composition by its types, and by names alone all that `all` has and that go.
template <class S, class P>
void add_typed_coalesced(std::vector<Composition>& all) {
    all.push_back(composition<S, P, sw::RowwiseAdagrad<>, sw::Wire<sw::Fp32>, sw::WideTree, sw::Flat, sw::PassThrough,
                              sw::Coalesced>());
}
template <class S, class... P>
void add_coalesced(std::vector<Composition>& all) {
    if constexpr (!std::is_same_v<S, sw::DP>) {
        const std::size_t raw = all.size();
        (add_typed_coalesced<S, P>(all), ...);
        for (std::size_t i = 0; i < raw; ++i) {
            const Composition& one = all[i];
            if (one.order == "sample" || one.collective == "two_stage" || one.has_modules()) continue;
            if (one.optimizer == "rowwise_adagrad" && one.order == "wide_tree" && one.collective == "flat")
                continue;  // by types
            Composition coalesced = one;
            coalesced.requests = "coalesced";
            coalesced.build = nullptr;
            coalesced.draw = nullptr;
            all.push_back(std::move(coalesced));
        }
    }
}
/// \param name  what the laws call the sharding
template <class S, class... P>
std::vector<Composition> compositions(const std::string& name) {
    std::vector<Composition> all;
    if constexpr (sw::MapsTogether<S>) {  // owners apart, it is what Col<> is
        (add_relayed<S, P, sw::Flat>(all), ...);
    } else {
        (add_compositions<S, P>(all), ...);
    }
    if constexpr (crosses<S>) (add_relayed<S, P, sw::Hierarchical>(all), ...);
    if constexpr (std::is_same_v<S, sw::Row> || (copied<S> && crosses<S>)) {
        add_relayed<S, sw::Sum, sw::TwoStage>(all);
        add_relayed<S, sw::Mean, sw::TwoStage>(all);
    }
    if constexpr (!copied<S>) add_modules<S>(all);
    std::vector<Composition> at_owner = all;
    (add_at_owner<S, P>(at_owner), ...);
    const auto raw = static_cast<std::ptrdiff_t>(all.size());
    add_coalesced<S, P...>(all);
    all.insert(all.end(), at_owner.begin() + raw, at_owner.end());
    for (Composition& one : all)
        one.sharding = name;
    return all;
}

}  // namespace laws
