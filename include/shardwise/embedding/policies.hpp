// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/comm/wire.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/device.hpp"
#include "shardwise/embedding/fold.hpp"
#include "shardwise/embedding/pooling.hpp"
#include "shardwise/optimizer/optimizer.hpp"
#include "shardwise/sharding/policy.hpp"

/// \file
/// The axes of an embedding layer, each a template around its value; a layer takes them in any order.

namespace shardwise::inline SHARDWISE_ABI {

/// Where each row lives: Row, Col<>, Col<Factor>, Table, DP, Mixed<...> or a ShardingPolicy of the user's own.
template <class S>
struct Sharding {
    using type = S;
};
/// Several ShardingPolicies in one layer; each table names its own in TableConfig::sharding. Their flushes leave
/// together.
template <class... S>
struct Mixed {
    static constexpr const char* name = "mixed";
};

/// How looked-up vectors travel.
template <class C>
struct Collective {
    using type = C;
};
/// One exchange over all ranks: straight home.
struct Flat {
    static constexpr const char* name = "flat";
};
/// Partial sums of split rows are summed on each host before they cross: 1 / (ranks a host) of Flat's bytes between
/// hosts, and the same bits.
struct TwoStage {
    static constexpr const char* name = "two_stage";
};
/// Each table lives in one tower of hosts. Vectors first go to the rank of the tower that has the source's index, and
/// from there home: semantic-preserving tower transform (Disaggregated Multi-Tower, section 3.1).
struct Hierarchical {
    static constexpr const char* name = "hierarchical";
};

/// How rows learn: a SparseOptimizer.
template <class Rule>
struct Optimizer {
    using type = Rule;
};

/// What a lookup returns: Sum, Mean or None.
template <class P>
struct Pooling {
    using type = P;
};

/// In which order, and how precisely, gradients are summed: Tree, WideTree or Sample.
template <class O>
struct Order {
    using type = O;
};

/// The precision of vectors on the wire, forward and backward: Fp32 or Bf16.
template <class Forward, class Backward = Forward>
struct Wire {
    using type = Wire;
    using forward = Forward;
    using backward = Backward;
};

/// What each tower does with its features' vectors before they travel home: PassThrough (nothing), or a TowerModule:
/// Dot, Cross (in tower/) or one of the user's own.
template <class M>
struct Tower {
    using type = M;
};

/// Where tables and kernels live: Host or Cuda.
template <class D>
struct Device {
    using type = D;
};

/// The type of a table's elements.
template <class T>
struct Element {
    using type = T;
};

namespace detail {

template <class P>
struct IsSharding : std::false_type {};
template <class S>
struct IsSharding<Sharding<S>> : std::true_type {};
template <class P>
struct IsCollective : std::false_type {};
template <class C>
struct IsCollective<Collective<C>> : std::true_type {};
template <class P>
struct IsOptimizer : std::false_type {};
template <class O>
struct IsOptimizer<Optimizer<O>> : std::true_type {};
template <class P>
struct IsPooling : std::false_type {};
template <class P>
struct IsPooling<Pooling<P>> : std::true_type {};
template <class P>
struct IsOrder : std::false_type {};
template <class O>
struct IsOrder<Order<O>> : std::true_type {};
template <class P>
struct IsWire : std::false_type {};
template <class F, class B>
struct IsWire<Wire<F, B>> : std::true_type {};
template <class P>
struct IsTower : std::false_type {};
template <class M>
struct IsTower<Tower<M>> : std::true_type {};
template <class P>
struct IsDevice : std::false_type {};
template <class D>
struct IsDevice<Device<D>> : std::true_type {};
template <class P>
struct IsElement : std::false_type {};
template <class T>
struct IsElement<Element<T>> : std::true_type {};

/// True for anything that is a value of some axis of an embedding layer.
template <class P>
using IsPolicy = std::disjunction<IsSharding<P>, IsCollective<P>, IsOptimizer<P>, IsPooling<P>, IsOrder<P>, IsWire<P>,
                                  IsTower<P>, IsDevice<P>, IsElement<P>>;

/// True when at most one of `Policies` is a value of the axis recognised by `Is`.
template <template <class> class Is, class... Policies>
inline constexpr bool at_most_one = (int{Is<Policies>::value} + ... + 0) <= 1;

/// True for what Sharding<> takes.
template <class S>
inline constexpr bool is_sharding = ShardingPolicy<S>;
template <class... S>
inline constexpr bool is_sharding<Mixed<S...>> =
    sizeof...(S) > 0 && (ShardingPolicy<S> && ...) && boost::mp11::mp_is_set<boost::mp11::mp_list<S...>>::value;

template <class T, class... Known>
inline constexpr bool is_one_of = (std::is_same_v<T, Known> || ...);

/// The value that `Policies` give to the axis recognised by `Is`; `Default` when they say nothing.
template <template <class> class Is, class Default, class... Policies>
struct AxisValue {
    using found = boost::mp11::mp_copy_if<boost::mp11::mp_list<Policies...>, Is>;
    using type = typename boost::mp11::mp_front<boost::mp11::mp_push_back<found, Default>>::type;
};

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
