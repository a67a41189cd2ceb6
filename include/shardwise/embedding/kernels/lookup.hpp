// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "shardwise/core/config.hpp"
#include "shardwise/sharding/policy.hpp"

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

/// Sums weight * row over each bag, in the order of the ids, from +0.0; no sum is -0.0. Not collective, thread safe,
/// any dim. Moves ids * (dim * 4 + 4 [+ 4 weighted]) + bags * (dim * 4 [+ 4]) bytes. `stride` elements lie between the
/// rows of the output (>= dim), and `a.ids` may be more than the bags have.
void pooled_lookup(const LookupArguments& a, std::int64_t stride);
/// The same with the rows of the output one after the other.
inline void pooled_lookup(const LookupArguments& a) {
    pooled_lookup(a, a.dim);
}

/// Copies the row of each id. Moves ids * (2 * dim * 4 + 4) bytes.
void gather_rows(const LookupArguments& a, std::int64_t stride);
/// The same with the rows of the output one after the other.
inline void gather_rows(const LookupArguments& a) {
    gather_rows(a, a.dim);
}

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/kernels/lookup.ipp"
#endif
