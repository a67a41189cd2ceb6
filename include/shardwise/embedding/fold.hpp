// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// The gradient of a row: the order and the precision in which its contributions are summed.

namespace shardwise::inline SHARDWISE_ABI {

/// The tree: samples inside a rank, ranks inside a host, hosts; each sum starts at +0.0. A sum that starts so is never
/// -0.0, hence partial sums compose and absent ranks are free.
struct Tree {
    static constexpr const char* name = "tree";
    using sum = float;
};
/// The tree with sums in double, rounded to float once, at the root: two topologies differ by parts in 1e16 before that
/// rounding, which hides all but one difference in about 1e8. Partial sums that travel (DP) take 8 bytes an element.
struct WideTree {
    static constexpr const char* name = "wide_tree";
    using sum = double;
};
/// All contributions in one sum, in the order of samples over all ranks: the same bits at every world size.
struct Sample {
    static constexpr const char* name = "sample";
    using sum = float;
};

/// Where `fold` keeps the sums that it has begun.
template <class Order>
struct FoldScratch {
    /// A rank, a host, and the total where that is not summed in place.
    static constexpr std::size_t rows = std::is_same_v<typename Order::sum, float> ? 2 : 3;
    Buffer<typename Order::sum> sums;

    /// Makes room for folds of any row of the store.
    void prepare(const Lanes& lanes) {
        int widest = 0;
        for (const ShardStore& shard : lanes.store->shards())
            widest = std::max(widest, shard.dim);
        sums.on(*lanes.memory).resize(rows * static_cast<std::size_t>(widest));
    }
    /// Bytes, given the columns of the widest shard.
    static constexpr std::int64_t bytes(int widest) {
        return static_cast<std::int64_t>(rows * sizeof(typename Order::sum)) * widest;
    }
};

namespace detail {

/// sum = 0 + weight * gradient, the product and sum as wide as the wider of both and rounded to `To` at the end.
template <class From, class To>
void start_sum(To* __restrict sum, const Contribution& c, int dim) {
    using Wider = std::common_type_t<From, To>;
    const From* gradient = c.terms<From>();
    const auto weight = static_cast<Wider>(c.weight);
    for (int d = 0; d < dim; ++d)
        sum[d] = static_cast<To>(std::fma(weight, static_cast<Wider>(gradient[d]), Wider{0}));
}
template <class From, class Value>
void add_to_sum(Value* __restrict sum, const Contribution& c, int dim) {
    static_assert(sizeof(Value) >= sizeof(From));
    const From* gradient = c.terms<From>();
    const auto weight = static_cast<Value>(c.weight);
    for (int d = 0; d < dim; ++d)
        sum[d] = std::fma(weight, static_cast<Value>(gradient[d]), sum[d]);
}
template <class Value>
void add(Value* __restrict sum, const Value* __restrict term, int dim) {
    for (int d = 0; d < dim; ++d)
        sum[d] += term[d];
}

/// The sums of two or more contributions along the tree; `rank` and `host` are scratch.
template <class From, class Value>
void sum_tree(const Contribution* next, const Contribution* end, const Topology& topology, int dim, Value* sum,
              Value* rank, Value* host) {
    const Contribution* c = next++;
    start_sum<From>(sum, *c, dim);
    for (; next != end && next->source == c->source; ++next)
        add_to_sum<From>(sum, *next, dim);
    if (next == end) return;
    // `sum` holds the first rank; from here on it holds the total of the hosts done, or the host in progress
    Value* into = sum;  // the host in progress
    int current_host = topology.host_of(c->source);
    while (next != end) {
        const int source = next->source;
        start_sum<From>(rank, *next, dim);
        for (++next; next != end && next->source == source; ++next)
            add_to_sum<From>(rank, *next, dim);
        if (topology.host_of(source) == current_host) {
            add(into, rank, dim);
        } else {
            if (into == host) add(sum, host, dim);
            into = host;
            std::copy_n(rank, dim, host);
            current_host = topology.host_of(source);
        }
    }
    if (into == host) add(sum, host, dim);
}

}  // namespace detail

/// The gradient of the i-th row of `set`, summed in the order `Order`, into result[0..dim).
/// Costs one pass over its contributions; host and total exist only once the row has a second source or host.
/// \tparam From  of the contributions: float, or Order::sum where they are partial sums \tparam To  of the result
template <class Order, class From = float, class To = float>
void fold(const RowSet& set, std::int64_t i, const Topology& topology, FoldScratch<Order>& scratch, To* result) {
    using Value = typename Order::sum;
    const int dim = set.dim;
    const Contribution* c = set.contributions + set.first[i];
    const Contribution* const end = set.contributions + set.first[i + 1];
    if (end - c == 1) {
        detail::start_sum<From>(result, *c, dim);
    } else if constexpr (std::is_same_v<Order, Sample>) {
        detail::start_sum<From>(result, *c, dim);
        for (++c; c != end; ++c)
            detail::add_to_sum<From>(result, *c, dim);
    } else {
        Value* rank = scratch.sums.data();
        Value* host = rank + dim;
        if constexpr (std::is_same_v<Value, To>) {
            detail::sum_tree<From>(c, end, topology, dim, result, rank, host);
        } else {
            Value* total = host + dim;
            detail::sum_tree<From>(c, end, topology, dim, total, rank, host);
            for (int d = 0; d < dim; ++d)
                result[d] = static_cast<To>(total[d]);
        }
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
