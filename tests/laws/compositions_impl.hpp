// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "laws/compositions.hpp"
#include "laws/mix.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/adagrad.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"

/// \file
/// One composition, and the compositions of one sharding.

namespace laws {

template <class S, class P, class Rule, class W, class O, class C = sw::Flat, class M = sw::PassThrough>
Composition composition() {
    using Composed = sw::EmbeddingLayer<sw::Sharding<S>, sw::Pooling<P>, sw::Optimizer<Rule>, W, sw::Order<O>,
                                        sw::Collective<C>, sw::Tower<M>>;
    return {.sharding = S::name,
            .pooling = P::name,
            .optimizer = Rule::name,
            .forward_wire = W::forward::name,
            .backward_wire = W::backward::name,
            .order = O::name,
            .collective = C::name,
            .tower = M::name,
            .build = [](sw::CommunicatorRef comm, std::vector<sw::TableConfig> tables,
                        const sw::LayerOptions& options) -> std::unique_ptr<sw::LayerBase> {
                return std::make_unique<Composed>(comm, std::move(tables), options);
            }};
}

/// Every optimizer with exact wires along the tree, and other wires and orders so that every pair of values meets.
template <class S, bool Replicated, class P>
void add_compositions(std::vector<Composition>& all) {
    using Exact = sw::Wire<sw::Fp32>;
    using Lossy = sw::Wire<sw::Bf16>;
    using LossyBack = sw::Wire<sw::Fp32, sw::Bf16>;
    all.push_back(composition<S, P, sw::Sgd, Exact, sw::Tree>());
    all.push_back(composition<S, P, sw::Adagrad, Exact, sw::Tree>());
    all.push_back(composition<S, P, sw::RowwiseAdagrad<>, Exact, sw::Tree>());
    all.push_back(composition<S, P, sw::RowwiseAdagrad<sw::MeanOfSquares>, Exact, sw::Tree>());
    all.push_back(composition<S, P, sw::Adam, Exact, sw::Tree>());
    all.push_back(composition<S, P, sw::RowwiseAdagrad<>, Exact, sw::WideTree>());
    all.push_back(composition<S, P, sw::Adagrad, LossyBack, sw::WideTree>());
    if constexpr (Replicated) {
        all.push_back(composition<S, P, sw::Adagrad, LossyBack, sw::Tree>());
    } else {
        all.push_back(composition<S, P, sw::Adagrad, Exact, sw::Sample>());
        all.push_back(composition<S, P, sw::RowwiseAdagrad<>, Lossy, sw::Sample>());
        all.push_back(composition<S, P, sw::Adam, Lossy, sw::Tree>());
        all.push_back(composition<S, P, sw::Sgd, LossyBack, sw::Tree>());
    }
}
/// Vectors over relays, with every wire and order.
template <class S, bool Replicated, class P, class C>
void add_relayed(std::vector<Composition>& all) {
    using Exact = sw::Wire<sw::Fp32>;
    using Lossy = sw::Wire<sw::Bf16>;
    using LossyBack = sw::Wire<sw::Fp32, sw::Bf16>;
    all.push_back(composition<S, P, sw::RowwiseAdagrad<>, Exact, sw::Tree, C>());
    all.push_back(composition<S, P, sw::Adagrad, Lossy, sw::WideTree, C>());
    if constexpr (!Replicated) all.push_back(composition<S, P, sw::Sgd, LossyBack, sw::Sample, C>());
}
/// Towers with modules.
template <class S>
void add_modules(std::vector<Composition>& all) {
    using Exact = sw::Wire<sw::Fp32>;
    using Lossy = sw::Wire<sw::Bf16>;
    using C = sw::Hierarchical;
    all.push_back(composition<S, sw::Sum, sw::RowwiseAdagrad<>, Exact, sw::Tree, C, Mix>());
    all.push_back(composition<S, sw::Sum, sw::Adam, Lossy, sw::WideTree, C, Mix>());
}
template <class S, bool Replicated, class... P>
std::vector<Composition> compositions() {
    std::vector<Composition> all;
    if constexpr (sw::MapsTogether<S>) {  // owners apart, it is what Col<> is
        (add_relayed<S, Replicated, P, sw::Flat>(all), ...);
    } else {
        (add_compositions<S, Replicated, P>(all), ...);
    }
    if constexpr (!std::is_same_v<S, sw::DP>) (add_relayed<S, Replicated, P, sw::Hierarchical>(all), ...);
    if constexpr (std::is_same_v<S, sw::Row> || (Replicated && !std::is_same_v<S, sw::DP>)) {
        add_relayed<S, Replicated, sw::Sum, sw::TwoStage>(all);
        add_relayed<S, Replicated, sw::Mean, sw::TwoStage>(all);
    }
    if constexpr (!Replicated) add_modules<S>(all);
    return all;
}

}  // namespace laws
