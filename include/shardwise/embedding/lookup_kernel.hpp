// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "shardwise/core/config.hpp"
#include "shardwise/core/prefetch.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// The host kernels of a lookup. Their floor is memory: every looked-up row is read once, every output written once.

namespace shardwise::inline SHARDWISE_ABI {

/// What a lookup kernel reads and writes.
struct LookupArguments {
    const float* table = nullptr;  ///< (rows, dim)
    int dim = 0;
    std::int64_t bags = 0;
    std::int64_t ids = 0;
    const std::int32_t* lengths = nullptr;  ///< (bags), or null: one id a bag (or none at all)
    const LocalRow* rows = nullptr;         ///< (ids)
    const float* weights = nullptr;         ///< (ids), or null
    float* out = nullptr;                   ///< (bags, dim) pooled, (ids, dim) gathered
};

namespace detail {

/// Dim > 0: the number of columns, known to the compiler; 0: dim.
template <int Dim, bool Weighted>
void pooled_lookup(const LookupArguments& a) {
    const int dim = Dim > 0 ? Dim : a.dim;
    const std::int64_t ahead = rows_ahead(dim);
    const auto row = [&](std::int64_t i) { return a.table + static_cast<std::int64_t>(a.rows[i]) * dim; };
    std::int64_t i = 0;
    for (std::int64_t bag = 0; bag < a.bags; ++bag) {
        const std::int64_t end = a.ids == 0 ? 0 : i + (a.lengths == nullptr ? 1 : a.lengths[bag]);
        float* __restrict out = a.out + bag * dim;
        if constexpr (Dim > 0 && Dim <= 128) {
            float sum[Dim > 0 ? Dim : 1] = {};
            for (; i < end; ++i) {
                if (i + ahead < a.ids) prefetch(row(i + ahead), dim);
                const float* __restrict from = row(i);
                if constexpr (Weighted) {
                    const float weight = a.weights[i];
                    for (int d = 0; d < Dim; ++d)
                        sum[d] = std::fma(weight, from[d], sum[d]);
                } else {
                    for (int d = 0; d < Dim; ++d)
                        sum[d] += from[d];
                }
            }
            std::memcpy(out, sum, sizeof(sum));
        } else {
            std::fill_n(out, dim, 0.0F);
            for (; i < end; ++i) {
                if (i + ahead < a.ids) prefetch(row(i + ahead), dim);
                const float* __restrict from = row(i);
                if constexpr (Weighted) {
                    const float weight = a.weights[i];
                    for (int d = 0; d < dim; ++d)
                        out[d] = std::fma(weight, from[d], out[d]);
                } else {
                    for (int d = 0; d < dim; ++d)
                        out[d] += from[d];
                }
            }
        }
    }
}

template <bool Weighted>
void pooled_lookup_of_dim(const LookupArguments& a) {
    switch (a.dim) {
        case 16:
            return pooled_lookup<16, Weighted>(a);
        case 32:
            return pooled_lookup<32, Weighted>(a);
        case 64:
            return pooled_lookup<64, Weighted>(a);
        case 128:
            return pooled_lookup<128, Weighted>(a);
        default:
            return pooled_lookup<0, Weighted>(a);
    }
}

}  // namespace detail

/// Sums weight * row over each bag, in the order of the ids, from +0.0. Not collective, thread safe, any dim.
/// Moves ids * (dim * 4 + 4 [+ 4 weighted]) + bags * (dim * 4 [+ 4]) bytes.
inline void pooled_lookup(const LookupArguments& a) {
    if (a.weights != nullptr) {
        detail::pooled_lookup_of_dim<true>(a);
    } else {
        detail::pooled_lookup_of_dim<false>(a);
    }
}

/// Copies the row of each id. Moves ids * (2 * dim * 4 + 4) bytes.
inline void gather_rows(const LookupArguments& a) {
    if (a.dim == 0) return;
    const std::int64_t ahead = rows_ahead(a.dim);
    for (std::int64_t i = 0; i < a.ids; ++i) {
        if (i + ahead < a.ids) prefetch(a.table + static_cast<std::int64_t>(a.rows[i + ahead]) * a.dim, a.dim);
        std::memcpy(a.out + i * a.dim, a.table + static_cast<std::int64_t>(a.rows[i]) * a.dim,
                    static_cast<std::size_t>(a.dim) * sizeof(float));
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
