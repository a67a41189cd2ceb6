// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/kernels/fold.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/tables/held_shards.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// One level of the sums of copied rows: each touched row to the member of a group that sums it, and its sum back to
/// all members.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct RowsTape;
/// \tparam Gather  sums to all members; else contributions to the one that sums them
/// \tparam FromPartial  contributions are partial sums of a level below, as wide as those
template <bool Gather, bool FromPartial>
struct RowsFamily {
    using Tapes = boost::mp11::mp_list<RowsTape>;
    using Sees = boost::mp11::mp_list<const HeldShards, const OrderTraits, const Wires, const WorkMemory>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, RowsFamily<false, false>);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, RowsFamily<false, true>);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, RowsFamily<true, false>);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, RowsFamily<true, true>);

namespace detail {

/// What partial sums are called on the wire: doubles where sums are and the wire is exact.
template <class Wire, class Order>
std::string partial_name() {
    if constexpr (requires { Order::partial_name; }) {
        return Order::partial_name;
    } else {
        return Wire::exact && std::is_same_v<typename Order::sum, double> ? std::string{"fp64"}
                                                                          : std::string{Wire::name};
    }
}

template <class G, class Below, bool Gather, bool FromPartial, class Wire, class Order>
struct RowExchange {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<RowExchange>;
    using Crosses = G;
    using Under = Below;
    using Family = RowsFamily<Gather, FromPartial>;
    using Sees = typename Family::Sees;
    using Tape = RowsTape;
    static std::string name() {
        return concat({Gather ? "GatherRows<" : "ScatterRows<", G::name(), ", ",
                       (Gather ? std::string{Wire::name} : partial_name<Wire, Order>()), ">"});
    }
};

}  // namespace detail

/// The backward wire of gradients that are partial sums.
template <class Wire, class Order>
struct PartialSums {
    inline static const std::string name = detail::partial_name<Wire, Order>();
};

/// Partial sums of each touched row to the one member of G that sums them: which, a digit of the row's number says, the
/// one above those that the level `Below` dealt rows by. One message a member: 4 bytes a table of control, 4 + dim *
/// element bytes a row of payload. Elements are doubles where sums are and the wire is exact.
template <class G, class Below, bool FromPartial, class Wire, class Order>
using ScatterRows = detail::RowExchange<G, Below, false, FromPartial, Wire, Order>;
/// Sums of rows from the members that made them to all members of G.
template <class G, class Below, bool FromPartial, class Wire, class Order>
using GatherRows = detail::RowExchange<G, Below, true, FromPartial, Wire, Order>;

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/row_exchange.ipp"
#endif
