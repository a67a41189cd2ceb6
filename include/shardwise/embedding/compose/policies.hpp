// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/copies/synced_rows.hpp"

/// \file
/// The axes of an embedding layer, each a template around its value; a layer takes them in any order.

namespace shardwise::inline SHARDWISE_ABI {

/// Where each row lives: Row, Col<>, Col<Factor>, Table, DP, Flex, Mixed<...>, Tiered<...> or a ShardingPolicy of the
/// user's own.
template <class S>
struct Sharding {
    using type = S;
};
/// Several ShardingPolicies in one layer; each table names its own in TableConfig::sharding. Their rounds leave
/// together.
template <class... S>
struct Mixed {
    static constexpr const char* name = "mixed";
};

/// Every table's rows in tiers, each with a policy of its own: Tiered<DP, Flex, Row>, Tiered<DP, Row> or
/// Tiered<Flex, Row>. LayerOptions::rows says which rows are in which; without it all are in the last.
/// (FlexShard, section 4)
template <class... S>
struct Tiered {
    static constexpr const char* name = "tiered";
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

/// Straight home, over slots that peers write: ranks may be K batches apart, and nobody waits for one that is late
/// before it is K + 1 batches behind. Without K as LayerOptions::bound says. Rows are Frozen, or K is 0. (Bounded lag,
/// section III)
template <int K = -1>
struct BoundedLag {
    static constexpr const char* name = "bounded_lag";
};

/// How rows learn: a SparseOptimizer, and where its moment is to be scaled, a MomentScale<c>.
template <class Rule, class... Scale>
struct Optimizer {
    using type = Optimizer;
};

/// M groups of ranks that each hold every table, and whose copies of a row become their mean at every sync. Groups<> is
/// as LayerOptions::groups say, and takes no options. (Two-dimensional sparse parallelism, section 3.1)
/// \tparam Options  in any order: AcrossHosts (default) or InsideHosts, SyncEvery<n> (1), TouchedRows (default) or
///                  AllRows
template <int M = 0, class... Options>
struct Groups {
    using type = Groups;
};
/// A group is whole hosts, or an equal part of one.
struct AcrossHosts {};
/// The copies of a shard are neighbours on one host, so that no sync crosses. (Section 5)
struct InsideHosts {};
/// Copies become equal behind every N-th step; each group learns by itself in between. (Section 5)
template <std::int64_t N>
struct SyncEvery {};

/// What a lookup returns: Sum, Mean or None; or ByTable, where each table says it.
template <class P>
struct Pooling {
    using type = P;
};

/// What a batch asks for: Raw or Coalesced.
template <class R>
struct Requests {
    using type = R;
};
/// Every id of every bag; owners of split rows sum what they have of a bag.
struct Raw {
    static constexpr const char* name = "raw";
};
/// Each distinct id of a table once, and its row once home; bags are made where the samples are, and backward one sum a
/// distinct row leaves. (SCARS, section II.A)
struct Coalesced {
    static constexpr const char* name = "coalesced";
};

/// Where the ids of a batch are: AtSample or AtOwner.
template <class I>
struct Ids {
    using type = I;
};
/// A rank has the ids of its own samples, and asks the owners of their rows.
struct AtSample {
    static constexpr const char* name = "at_sample";
};
/// A rank is given all ranks' ids of the tables that it has a part of, as data loaders of table-wise models do; nobody
/// asks. Of sums and means. (Bounded lag, section IV-B)
struct AtOwner {
    static constexpr const char* name = "at_owner";
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

}  // namespace shardwise::inline SHARDWISE_ABI
