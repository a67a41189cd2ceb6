// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include "shardwise/core/config.hpp"

/// \file
/// A row's columns in blocks whose size the compiler knows.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Calls use(first, count) for columns, 16 at a time: a number of them that the compiler knows.
template <class Use>
[[gnu::always_inline]] inline void for_columns(int dim, Use use) {
    constexpr int block = 16;
    int d = 0;
    for (; d + block <= dim; d += block)
        use(d, std::integral_constant<int, block>{});
    if (d < dim) use(d, dim - d);
}

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
