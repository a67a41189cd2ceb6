// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/comm/wire.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/compose/axes.hpp"
#include "shardwise/embedding/compose/policies.hpp"
#include "shardwise/optimizer/moment_scale.hpp"
#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// What a layer is told without its axis, as EmbeddingLayer<Row>, or twice: sentences that name it.

/// SHARDWISE_AXES(X): X(axis) for each.
#define SHARDWISE_AXES(X) \
    X(Sharding)           \
    X(Collective)         \
    X(Optimizer)          \
    X(Groups)             \
    X(Pooling)            \
    X(Requests)           \
    X(Ids)                \
    X(Order)              \
    X(Wire)               \
    X(Tower)              \
    X(Device)             \
    X(Element)

/// SHARDWISE_NAMED_VALUES(X): X(axis, value) for each that is known here by its name.
#define SHARDWISE_NAMED_VALUES(X) \
    X(Sharding, Row)              \
    X(Sharding, DP)               \
    X(Sharding, Flex)             \
    X(Collective, Flat)           \
    X(Collective, TwoStage)       \
    X(Collective, Hierarchical)   \
    X(Pooling, Sum)               \
    X(Pooling, Mean)              \
    X(Pooling, None)              \
    X(Pooling, ByTable)           \
    X(Requests, Raw)              \
    X(Requests, Coalesced)        \
    X(Ids, AtSample)              \
    X(Ids, AtOwner)               \
    X(Order, Tree)                \
    X(Order, WideTree)            \
    X(Order, Sample)              \
    X(Wire, Fp32)                 \
    X(Wire, Bf16)                 \
    X(Tower, PassThrough)         \
    X(Device, Host)               \
    X(Device, Cuda)               \
    X(Element, float)

namespace shardwise::inline SHARDWISE_ABI::detail {

/// True for what Groups<M, ...> takes behind its number.
template <class P>
inline constexpr bool is_group_option =
    is_sync_every<P> || is_one_of<P, AcrossHosts, InsideHosts, TouchedRows, AllRows>;

/// The axis of a value whose name is not known here; void for what is a value of none.
template <class P>
constexpr auto axis_of_value() {
    using boost::mp11::mp_identity;
    if constexpr (SparseOptimizer<P>) {
        return mp_identity<OptimizerAxis>{};
    } else if constexpr (ShardingAxis::knows<P>) {
        return mp_identity<ShardingAxis>{};
    } else if constexpr (CollectiveAxis::knows<P>) {
        return mp_identity<CollectiveAxis>{};
    } else if constexpr (TowerAxis::knows<P>) {
        return mp_identity<TowerAxis>{};
    } else if constexpr (WireCodec<P>) {
        return mp_identity<WireAxis>{};
    } else {
        return mp_identity<void>{};
    }
}

/// Checks that a policy of a layer is written with its axis. The compiler names this function with the policy.
template <class P>
constexpr bool has_its_axis() {
    if constexpr (std::is_void_v<typename AxisOf<P>::type>) {
#define SHARDWISE_HAS_AXIS(axis, value) \
    static_assert(!std::is_same_v<P, value>, #value " is a value of " #axis "<>: write " #axis "<" #value ">");
        SHARDWISE_NAMED_VALUES(SHARDWISE_HAS_AXIS)
#undef SHARDWISE_HAS_AXIS
#define SHARDWISE_IS_NAMED(axis, value) || std::is_same_v<P, value>
        constexpr bool named = false SHARDWISE_NAMED_VALUES(SHARDWISE_IS_NAMED);
#undef SHARDWISE_IS_NAMED
        using Axis = typename decltype(axis_of_value<P>())::type;
#define SHARDWISE_HAS_AXIS(axis)                              \
    static_assert(named || !std::is_same_v<Axis, axis##Axis>, \
                  "a value of " #axis "<> stands without its axis: write " #axis "<...> around it");
        SHARDWISE_AXES(SHARDWISE_HAS_AXIS)
#undef SHARDWISE_HAS_AXIS
        static_assert(!is_group_option<P>, "an option of Groups<> stands alone: write it into Groups<M, ...>");
        static_assert(!is_moment_scale<P>, "MomentScale<c> stands alone: write Optimizer<Rule, MomentScale<c>>");
    }
    return true;
}

/// True for what is neither a policy nor the value of one, of which has_its_axis() says nothing.
template <class P>
constexpr bool is_no_policy() {
    if constexpr (std::is_void_v<typename AxisOf<P>::type>) {
#define SHARDWISE_IS_VALUE(axis, value) || std::is_same_v<P, value>
        constexpr bool named = false SHARDWISE_NAMED_VALUES(SHARDWISE_IS_VALUE);
#undef SHARDWISE_IS_VALUE
        using Axis = typename decltype(axis_of_value<P>())::type;
        return !named && !is_group_option<P> && !is_moment_scale<P> && std::is_void_v<Axis>;
    }
    return false;
}

}  // namespace shardwise::inline SHARDWISE_ABI::detail
