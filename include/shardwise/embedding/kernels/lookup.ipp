// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "shardwise/core/prefetch.hpp"
#include "shardwise/embedding/kernels/lookup.hpp"
#include "shardwise/embedding/kernels/row_sum.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// How many rows ahead to ask for rows: of small ones as many as fill 16 KiB. Where bags have one id, each is also a
/// row of output, which takes as many of the lines that a core can wait for: half of rows_ahead().
inline std::int64_t lookup_ahead(const LookupArguments& a) {
    if (a.lengths == nullptr) return rows_ahead(a.dim) / 2;
    return std::max<std::int64_t>(rows_ahead(a.dim), 256 / std::max((a.dim + 15) / 16, 1));
}

/// How many rows ahead to ask for a row's first line once more, into the first cache, where bags have more than one id.
inline constexpr std::int64_t lookup_near = 12;

/// A table at whose address a core can read, or ask for rows, only when the last line of the row before the last one is
/// there. It goes on while it waits for a row, and would ask for so many others that those it needs next have to queue.
class TableInTurns {
  public:
    explicit TableInTurns(const float* table) : table_{table}, now_{table}, next_{table} {}
    [[nodiscard]] const float* data() const { return now_; }
    /// A row was read, whose last number is at `last`.
    [[gnu::always_inline]] void after(const float* last) {
        now_ = next_;
        next_ = table_ + zero_after(last);
    }

  private:
    const float* table_;
    const float* now_;
    const float* next_;
};

/// How many rows of output ahead to ask for lines to write, `stride` floats apart: as many as lie in 16 KiB, 4 to 32.
/// Measured: fewer are as good in wide matrices, more are slower.
inline std::int64_t lines_ahead(std::int64_t stride) {
    return std::clamp<std::int64_t>(4096 / std::max<std::int64_t>(stride, 1), 4, 32);
}

/// Adds up rows [i, end) from +0.0. \tparam Dim  the number of columns, which are kept in registers; 0: a.dim
/// \tparam Many  whether bags have lengths: rows are asked for again, lookup_near ahead, and read in turns
/// \param ahead  lookup_ahead(a)
template <int Dim, bool Weighted, bool Many>
[[gnu::always_inline]] inline void sum_bag(const LookupArguments& a, TableInTurns& table, std::int64_t ahead,
                                           std::int64_t i, std::int64_t end, float* __restrict out) {
    const int dim = Dim > 0 ? Dim : a.dim;
    const auto row = [&](std::int64_t of) { return table.data() + static_cast<std::int64_t>(a.rows[of]) * dim; };
    const auto ask = [&](std::int64_t now) {
        if (Many && now + lookup_near < a.ids) __builtin_prefetch(row(now + lookup_near), 0, 3);  // first: needed first
        if (now + ahead < a.ids) prefetch(row(now + ahead), dim);
    };
    if constexpr (Dim > 0) {
        std::conditional_t<Weighted, WeightedRowSum<Dim>, RowSum<Dim>> sum;
        for (; i < end; ++i) {
            ask(i);
            const float* const from = row(i);
            if constexpr (Weighted) {
                sum.add(a.weights[i], from);
            } else {
                sum.add(from);
            }
            if (Many) table.after(from + Dim - 1);
        }
        sum.store(out);
    } else {
        std::fill_n(out, dim, 0.0F);
        for (; i < end; ++i) {
            ask(i);
            const float* __restrict from = row(i);
            for (int d = 0; d < dim; ++d)
                out[d] = Weighted ? std::fma(a.weights[i], from[d], out[d]) : out[d] + from[d];
            if (Many && dim > 0) table.after(from + dim - 1);
        }
        for (int d = 0; Weighted && d < dim; ++d)
            out[d] += 0.0F;  // see WeightedRowSum
    }
}

template <int Dim, bool Weighted>
void pooled_lookup_as(const LookupArguments& arguments, std::int64_t stride) {
    const LookupArguments a = arguments;  // a copy: floats that are written cannot change it
    const std::int64_t row_ahead = lookup_ahead(a);
    if (a.ids == 0) {
        for (std::int64_t bag = 0; bag < a.bags; ++bag)
            std::fill_n(a.out + bag * stride, a.dim, 0.0F);
        return;
    }
    TableInTurns table{a.table};
    if (a.lengths == nullptr) {
        // A core does not see ahead where rows of output lie a stride apart. Those of a line or less are asked for to
        // be written, into the first cache, where the processor can (-mprfchw; else to be read); longer ones, whose
        // lines would not all stay there, into the second, as early as rows of the table.
        const bool one_line = (Dim > 0 ? Dim : a.dim) <= 16;
        const std::int64_t ahead = one_line ? lines_ahead(stride) : row_ahead;
        for (std::int64_t bag = 0; bag < a.bags; ++bag) {
            if (bag + ahead < a.bags) {
                float* const out = a.out + (bag + ahead) * stride;
                if (one_line) {
                    __builtin_prefetch(out, 1, 3);
                } else {
                    prefetch(out, Dim > 0 ? Dim : a.dim);
                }
            }
            sum_bag<Dim, Weighted, false>(a, table, row_ahead, bag, bag + 1, a.out + bag * stride);
        }
        return;
    }
    const int dim = Dim > 0 ? Dim : a.dim;
    std::int64_t i = 0;
    for (std::int64_t bag = 0; bag < a.bags; ++bag) {
        const std::int64_t end = i + a.lengths[bag];
        // The lines of the next sum, to be written; those of wide ones also into the second cache, before (measured).
        constexpr std::int64_t early = 4;
        if (bag + early < a.bags && dim > 64) prefetch(a.out + (bag + early) * stride, dim);
        if (bag + 1 < a.bags)
            for (int d = 0; d < dim; d += 16)
                __builtin_prefetch(a.out + (bag + 1) * stride + d, 1, 3);
        sum_bag<Dim, Weighted, true>(a, table, row_ahead, i, end, a.out + bag * stride);
        i = end;
    }
}

template <bool Weighted>
void pooled_lookup_of_dim(const LookupArguments& a, std::int64_t stride) {
    switch (a.dim) {
        case 16:
            return pooled_lookup_as<16, Weighted>(a, stride);
        case 32:
            return pooled_lookup_as<32, Weighted>(a, stride);
        case 64:
            return pooled_lookup_as<64, Weighted>(a, stride);
        case 128:
            return pooled_lookup_as<128, Weighted>(a, stride);
        case 256:
            return pooled_lookup_as<256, Weighted>(a, stride);
        default:
            return pooled_lookup_as<0, Weighted>(a, stride);
    }
}

}  // namespace detail

SHARDWISE_INLINE void pooled_lookup(const LookupArguments& a, std::int64_t stride) {
    if (a.weights != nullptr) {
        detail::pooled_lookup_of_dim<true>(a, stride);
    } else {
        detail::pooled_lookup_of_dim<false>(a, stride);
    }
}

SHARDWISE_INLINE void gather_rows(const LookupArguments& a, std::int64_t stride) {
    if (a.dim == 0) return;
    const std::int64_t ahead = rows_ahead(a.dim);
    for (std::int64_t i = 0; i < a.ids; ++i) {
        if (i + ahead < a.ids) prefetch(a.table + static_cast<std::int64_t>(a.rows[i + ahead]) * a.dim, a.dim);
        std::memcpy(a.out + i * stride, a.table + static_cast<std::int64_t>(a.rows[i]) * a.dim,
                    static_cast<std::size_t>(a.dim) * sizeof(float));
    }
}
}  // namespace shardwise::inline SHARDWISE_ABI
