// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
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
using Shardings = mp::mp_list<sw::Row, sw::Col, sw::Table, sw::DP, MixedTables>;

template <class S, class O, class P, class Order, class Forward, class Backward>
struct Composition {
    using Layer = sw::EmbeddingLayer<sw::Sharding<S>, sw::Optimizer<O>, sw::Pooling<P>, sw::Order<Order>,
                                     sw::Wire<Forward, Backward>>;
    static Policies names() {
        return {.sharding = S::name,
                .optimizer = O::name,
                .pooling = P::name,
                .order = Order::name,
                .wire_forward = Forward::name,
                .wire_backward = Backward::name};
    }
};

template <class S>
inline constexpr bool replicates = S::replicated;
template <class... S>
inline constexpr bool replicates<sw::Mixed<S...>> = (S::replicated || ...);

/// Whether this program has the composition; check_policies says the same in words.
template <class C>
struct IsBuilt;
template <class S, class O, class P, class Order, class Forward, class Backward>
struct IsBuilt<Composition<S, O, P, Order, Forward, Backward>> {
    static constexpr bool exact = Forward::exact && Backward::exact;
    static constexpr bool by_sample = std::is_same_v<Order, sw::Sample>;
    static constexpr bool nothing_forward = std::is_same_v<S, sw::DP>;  // no vector travels
    static constexpr bool value = (!by_sample || (!replicates<S> && exact)) && (Forward::exact || !Backward::exact) &&
                                  (Forward::exact || !nothing_forward);
};

template <class S>
using Compositions =
    mp::mp_copy_if<mp::mp_product<Composition, mp::mp_list<S>, Optimizers, Poolings, Orders, Wires, Wires>, IsBuilt>;

/// The layer with sharding S and the rest of `policies`. Each S has a translation unit of its own.
template <class S>
[[nodiscard]] std::unique_ptr<sw::LayerBase> make_composition(const Policies& policies, sw::CommunicatorRef comm,
                                                              const std::vector<sw::TableConfig>& tables,
                                                              const sw::LayerOptions& options);

}  // namespace train_dlrm
