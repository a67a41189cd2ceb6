// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <type_traits>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/prefetch.hpp"
#include "shardwise/embedding/kernels/block_sums.hpp"
#include "shardwise/embedding/kernels/columns.hpp"
#include "shardwise/embedding/kernels/pack_gradients.hpp"
#include "shardwise/embedding/kernels/row_set.hpp"
#include "shardwise/embedding/kernels/row_sum.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// The gradient of a row: the order and the precision in which its contributions are summed.

namespace shardwise::inline SHARDWISE_ABI {

/// The tree: samples inside a rank, ranks inside a host, hosts; each sum starts at +0.0 and is never -0.0, hence
/// partial sums compose and absent ranks are free.
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

namespace detail {

/// sum = 0 + weight * gradient, the product and sum as wide as the wider of both and rounded to `To` at the end. A tiny
/// negative product rounds to -0.0, even added to +0.0, and no sum is -0.0: hence the second zero.
template <class From, class To>
[[gnu::always_inline]] inline void start_sum(To* __restrict sum, const Contribution& c, int dim) {
    using Wider = std::common_type_t<From, To>;
    const From* __restrict gradient = c.terms<From>();
    const auto weight = static_cast<Wider>(c.weight);
    for_columns(dim, [=](int first, auto count) {
        for (int d = first; d < first + count; ++d)
            sum[d] = static_cast<To>(std::fma(weight, static_cast<Wider>(gradient[d]), Wider{0})) + To{0};
    });
}
template <class Value>
void add(Value* __restrict sum, const Value* __restrict term, int dim) {
    for (int d = 0; d < dim; ++d)
        sum[d] += term[d];
}

/// Asks for the gradients of `dim` columns that folds will read soon: a call for each of `count` sorted contributions.
/// \tparam Even  the gradients lie evenly \param k  number of the one that is read now
template <bool Even, class From>
[[gnu::always_inline]] inline void prefetch_terms(const Contributions& of, const std::uint64_t* keys, std::int64_t k,
                                                  std::int64_t count, int dim) {
    const std::int64_t distance = rows_ahead(dim) / 2;
    if constexpr (Even) {
        if (k + distance < count) prefetch(of.even_terms(RowSet::number(keys[k + distance])), dim);
    } else {
        constexpr int floats = std::is_same_v<From, double> ? 2 : 1;  // an element
        if (k + 2 * distance < count) __builtin_prefetch(of.list + RowSet::number(keys[k + 2 * distance]));
        if (k + distance < count)
            prefetch(of.list[RowSet::number(keys[k + distance])].template terms<float>(), dim * floats);
    }
}

template <class From>
void prefetch_terms(const RowSet& set, std::int64_t k) {
    if (set.contributions.even != nullptr)
        prefetch_terms<true, From>(set.contributions, set.keys, k, set.several_keys(), set.dim);
    else
        prefetch_terms<false, From>(set.contributions, set.keys, k, set.several_keys(), set.dim);
}

/// Sums contributions from the k-th on, up to `end` or another source, from +0.0. \returns where it stopped
/// \tparam Dim  the number of columns, which the compiler keeps in registers; 0: set.dim \tparam Even  the gradients
/// lie evenly
template <int Dim, bool Even, class From, class Value>
[[gnu::noinline]] std::int64_t sum_source(const RowSet& set, std::int64_t k, std::int64_t end, bool any_source,
                                          Value* __restrict into) {
    static_assert(sizeof(Value) >= sizeof(From));
    const Contributions contributions = set.contributions;
    const std::uint64_t* const keys = set.keys;
    const std::int64_t count = set.several_keys();
    const std::int32_t source = any_source ? 0 : contributions.list[RowSet::number(keys[k])].source;
    const int dim = Dim > 0 ? Dim : set.dim;
    // Calls use(number) for each.
    const auto for_each = [&](auto use) __attribute__((always_inline)) {
        for (; k != end; ++k) {
            const std::uint64_t number = RowSet::number(keys[k]);
            if (!any_source && contributions.list[number].source != source) break;
            prefetch_terms<Even, From>(contributions, keys, k, count, dim);
            use(number);
        }
    };
    if constexpr (Even && Dim > 0 && std::is_same_v<Value, float>) {
        RowSum<Dim> sum;
        for_each([&](std::uint64_t number)
                     __attribute__((always_inline)) { sum.add(contributions.even_terms(number)); });
        sum.store(into);
    } else if constexpr (Dim > 0 && std::is_same_v<Value, float>) {
        WeightedRowSum<Dim> sum;
        for_each([&](std::uint64_t number) __attribute__((always_inline)) {
            const Contribution& c = contributions.list[number];
            sum.add(c.weight, c.terms<float>());
        });
        sum.store(into);
    } else {
        Value registers[Dim > 0 ? Dim : 1];
        Value* __restrict sum = Dim > 0 ? registers : into;
        for (int d = 0; d < dim; ++d)
            sum[d] = Value{0};
        for_each([&](std::uint64_t number) __attribute__((always_inline)) {
            const Contribution c = Even ? contributions[number] : contributions.list[number];
            const From* __restrict gradient = c.terms<From>();
            const auto weight = static_cast<Value>(c.weight);
            for (int d = 0; d < dim; ++d)
                sum[d] = std::fma(weight, static_cast<Value>(gradient[d]), sum[d]);
        });
        for (int d = 0; d < dim; ++d)
            into[d] = sum[d] + Value{0};  // see start_sum
    }
    return k;
}
template <int Dim, class From, class Value>
std::int64_t sum_source(const RowSet& set, std::int64_t k, std::int64_t end, bool any_source, Value* into) {
    if constexpr (std::is_same_v<From, float>)
        if (set.contributions.even != nullptr) return sum_source<Dim, true, From>(set, k, end, any_source, into);
    return sum_source<Dim, false, From>(set, k, end, any_source, into);
}
/// \param any_source  of all sources; has to be where contributions have no list
template <class From, class Value>
std::int64_t sum_source(const RowSet& set, std::int64_t k, std::int64_t end, bool any_source, Value* into) {
    switch (set.dim) {
        case 16:
            return sum_source<16, From>(set, k, end, any_source, into);
        case 32:
            return sum_source<32, From>(set, k, end, any_source, into);
        case 64:
            return sum_source<64, From>(set, k, end, any_source, into);
        case 128:
            return sum_source<128, From>(set, k, end, any_source, into);
        default:
            return sum_source<0, From>(set, k, end, any_source, into);
    }
}

/// sum_tree() of at least one contribution, all of which lie evenly and are listed for their sources. The same bits: no
/// sum is -0.0, so that adding one to +0.0 first changes nothing. \tparam Dim  the number of columns: the sums of a
/// rank, a host and all are kept in registers where there are enough (with AVX-512)
template <int Dim>
[[gnu::noinline]] void sum_even_tree(const RowSet& set, const RowTerms& terms, const Topology& topology, float* into) {
    const Contributions contributions = set.contributions;
    const std::uint64_t* const keys = set.keys;
    const std::int64_t count = set.several_keys();
    const bool one_host = topology.hosts == 1;
    const auto source_of = [&](std::int64_t k) { return contributions.list[RowSet::number(keys[k])].source; };
    RowSum<Dim> sum;
    RowSum<Dim> host;
    std::int64_t k = terms.first;
    for (std::int32_t source = source_of(k), next = source; k != terms.end; source = next) {
        RowSum<Dim> rank;
        do {
            prefetch_terms<true, float>(contributions, keys, k, count, Dim);
            rank.add(contributions.even_terms(RowSet::number(keys[k])));
        } while (++k != terms.end && (next = source_of(k)) == source);
        host.add(rank);
        if (!one_host && topology.host_of(next) != topology.host_of(source)) {
            sum.add(host);
            host = {};
        }
    }
    sum.add(host);
    sum.store(into);
}

/// The sums of contributions along the tree; `rank` and `host` are scratch.
template <class From, class Value>
void sum_tree(const RowSet& set, const RowTerms& terms, const Topology& topology, Value* sum, Value* rank,
              Value* host) {
    if constexpr (std::is_same_v<From, float> && std::is_same_v<Value, float>) {
        if (set.contributions.even != nullptr) {
            switch (set.dim) {
                case 16:
                    return sum_even_tree<16>(set, terms, topology, sum);
                case 32:
                    return sum_even_tree<32>(set, terms, topology, sum);
                case 64:
                    return sum_even_tree<64>(set, terms, topology, sum);
                case 128:
                    return sum_even_tree<128>(set, terms, topology, sum);
                default:
                    break;
            }
        }
    }
    const int dim = set.dim;
    std::int64_t k = terms.first;
    // the contributions of one source into a sum of their own; k is behind them then. \returns its host
    const auto sum_next = [&](Value* into) {
        const int from = topology.host_of(set.sorted(k).source);
        k = sum_source<From>(set, k, terms.end, false, into);
        return from;
    };
    int current_host = sum_next(sum);
    // `sum` holds the first rank; from here on it holds the total of the hosts done, or the host in progress
    Value* into = sum;  // the host in progress
    while (k != terms.end) {
        const int of_source = sum_next(rank);
        if (of_source == current_host) {
            add(into, rank, dim);
        } else {
            if (into == host) add(sum, host, dim);
            into = host;
            std::copy_n(rank, dim, host);
            current_host = of_source;
        }
    }
    if (into == host) add(sum, host, dim);
}

}  // namespace detail

/// The gradient of one row, summed in the order `Order`, into result[0..dim); `scratch` as OrderTraits says. Costs one
/// pass over its contributions; in memory, host and total exist only once the row has a second source or host.
/// \tparam From  of the contributions: float, or Order::sum where they are partial sums \tparam To  of the result
template <class Order, class From = float, class To = float>
void fold(const RowSet& set, const RowTerms& terms, const Topology& topology, typename Order::sum* scratch,
          To* result) {
    using Value = typename Order::sum;
    const int dim = set.dim;
    if (!terms.several) {
        detail::start_sum<From>(result, set.contributions[RowSet::number(set.single[terms.first])], dim);
    } else if (terms.end - terms.first == 1) {
        detail::prefetch_terms<From>(set, terms.first);
        detail::start_sum<From>(result, set.sorted(terms.first), dim);
    } else {
        Value* const rank = scratch;
        Value* const host = rank + dim;
        Value* sum = host + dim;
        if constexpr (std::is_same_v<Value, To>) sum = result;
        if (std::is_same_v<Order, Sample> || set.contributions.one_source())
            detail::sum_source<From>(set, terms.first, terms.end, true, sum);
        else
            detail::sum_tree<From>(set, terms, topology, sum, rank, host);
        if constexpr (!std::is_same_v<Value, To>)
            for (int d = 0; d < dim; ++d)
                result[d] = static_cast<To>(sum[d]) + To{0};
    }
}

/// An order of sums, its type forgotten.
struct OrderTraits {
    static constexpr const char* state_name = "OrderTraits";
    using Fold = void (*)(const RowSet&, const RowTerms&, const Topology&, void* scratch, void* result);

    const char* name;
    bool wide;                  ///< sums are doubles, and so are partial sums that travel on an exact wire
    bool tree;                  ///< a rank and a host have sums of their own
    std::int64_t scratch_rows;  ///< sums that a fold begins: a rank, a host, and the total where not made in place
    Fold folds[2][2];           ///< (contributions are doubles, the result is): null where the order has none

    [[nodiscard]] std::int64_t scratch_bytes(int widest) const noexcept {
        return scratch_rows * (wide ? 8 : 4) * widest;
    }
};

namespace detail {

template <class Order, class From, class To>
void fold_any(const RowSet& set, const RowTerms& terms, const Topology& topology, void* scratch, void* result) {
    fold<Order, From, To>(set, terms, topology, static_cast<typename Order::sum*>(scratch), static_cast<To*>(result));
}
template <class Order>
constexpr OrderTraits make_order_traits() {
    OrderTraits traits{.name = Order::name,
                       .wide = std::is_same_v<typename Order::sum, double>,
                       .tree = !std::is_same_v<Order, Sample>,
                       .scratch_rows = std::is_same_v<typename Order::sum, double> ? 3 : 2,
                       .folds = {{&fold_any<Order, float, float>, nullptr}, {nullptr, nullptr}}};
    if constexpr (std::is_same_v<typename Order::sum, double>) {
        traits.folds[0][1] = &fold_any<Order, float, double>;
        traits.folds[1][0] = &fold_any<Order, double, float>;
        traits.folds[1][1] = &fold_any<Order, double, double>;
    }
    return traits;
}

}  // namespace detail

/// Tree, WideTree or Sample as values.
template <class Order>
inline constexpr OrderTraits order_traits = detail::make_order_traits<Order>();

/// Folds by OrderTraits, with the memory that they need.
class Folder {
  public:
    /// \param widest  columns of the widest row
    void prepare(const OrderTraits& order, int widest, std::pmr::memory_resource& memory) {
        order_ = &order;
        scratch_.on(memory).resize(static_cast<std::size_t>(order.scratch_bytes(widest)));
    }
    /// To be called before a set is folded. \returns the set as its folds take it: with copies of its gradients, and
    /// the sums of its busy rows made. The set begun before is over: both may lie in one room
    [[nodiscard]] RowSet begin(const RowSet& set, const Topology& topology) {
        if (order_->wide)
            blocks_.forget();
        else
            blocks_.choose(set, topology, order_->tree);
        const RowSet packed = pack_gradients(set, BlockSums::block(set.dim),
                                             [this](const RowSet& of, std::int64_t end) { blocks_.add(of, end); });
        if (packed.contributions.even == nullptr) blocks_.forget();
        return packed;
    }
    /// \param set  of the last begin() \param to_wide  the result is doubles
    void operator()(const RowSet& set, const RowTerms& terms, const Topology& topology, void* result,
                    bool to_wide = false) {
        if (const float* const sum = blocks_.find(terms); sum != nullptr)
            std::copy_n(sum, set.dim, static_cast<float*>(result));
        else
            order_->folds[set.wide][to_wide](set, terms, topology, scratch_.data(), result);
    }

  private:
    const OrderTraits* order_ = nullptr;
    Buffer<std::byte> scratch_;
    BlockSums blocks_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
