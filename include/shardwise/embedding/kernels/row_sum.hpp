// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>

#include "shardwise/core/config.hpp"

/// \file
/// A sum of rows in registers.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// How many floats a register of the target holds. Of a larger vector GCC 12 takes each sum by way of memory, in
/// pieces: lookups of several ids a bag took 1.5 to 6 times as long with AVX2. Sums have the same bits whatever the
/// target.
#if defined(__AVX512F__)
inline constexpr int register_floats = 16;
#elif defined(__AVX__)
inline constexpr int register_floats = 8;
#else
inline constexpr int register_floats = 4;
#endif
/// As many, added as `float`s are, one by one. (Clang gives an alias the alignment only in this place.)
using Floats [[gnu::vector_size(4 * register_floats), gnu::aligned(4), gnu::may_alias]] = float;
static_assert(alignof(Floats) == alignof(float));
/// As many as are multiplied and added at once: of 16, GCC 12 makes two of 8 and puts them together, each time.
inline constexpr int fused_floats = register_floats < 8 ? register_floats : 8;
using FusedFloats [[gnu::vector_size(4 * fused_floats), gnu::aligned(4), gnu::may_alias]] = float;
static_assert(alignof(FusedFloats) == alignof(float));

/// A sum of rows of `Dim` floats, each once, from +0.0 or from an earlier sum; in registers where there are enough.
template <int Dim, class Blocks = std::make_index_sequence<Dim / register_floats>>
class RowSum;
template <int Dim, std::size_t... Block>
class RowSum<Dim, std::index_sequence<Block...>> {
    static_assert(Dim % register_floats == 0, "a row is whole registers");

  public:
    RowSum() = default;
    [[gnu::always_inline]] explicit RowSum(const float* sum)
        : blocks_{*reinterpret_cast<const Floats*>(sum + register_floats * Block)...} {}
    [[gnu::always_inline]] void add(const float* row) {
        ((blocks_[Block] += *reinterpret_cast<const Floats*>(row + register_floats * Block)), ...);
    }
    [[gnu::always_inline]] void add(const RowSum& sum) { ((blocks_[Block] += sum.blocks_[Block]), ...); }
    [[gnu::always_inline]] void store(float* to) const {
        ((*reinterpret_cast<Floats*>(to + register_floats * Block) = blocks_[Block]), ...);
    }

  private:
    Floats blocks_[sizeof...(Block)] = {};
};

/// A sum of weight * row, from +0.0, each product added with one rounding. A tiny negative product rounds to -0.0, even
/// added to +0.0, and no sum is -0.0, as along every tree of sums: hence the zero that store() adds.
template <int Dim, class Blocks = std::make_index_sequence<Dim / fused_floats>,
          class Lanes = std::make_index_sequence<fused_floats>>
class WeightedRowSum;
template <int Dim, std::size_t... Block, std::size_t... Lane>
class WeightedRowSum<Dim, std::index_sequence<Block...>, std::index_sequence<Lane...>> {
    static_assert(Dim % fused_floats == 0, "a row is whole registers");

  public:
    [[gnu::always_inline]] void add(float weight, const float* row) {
        ((blocks_[Block] = fused(weight, row + fused_floats * Block, blocks_[Block])), ...);
    }
    [[gnu::always_inline]] void store(float* to) const {
        ((*reinterpret_cast<FusedFloats*>(to + fused_floats * Block) = blocks_[Block] + 0.0F), ...);
    }

  private:
    /// Of such initializers compilers make one instruction, and of a loop over the numbers of a vector they do not.
    [[gnu::always_inline]] static FusedFloats fused(float weight, const float* row, const FusedFloats& sum) {
        return FusedFloats{std::fma(weight, row[Lane], sum[Lane])...};
    }

    FusedFloats blocks_[sizeof...(Block)] = {};
};

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
