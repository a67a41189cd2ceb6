// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>

#include "shardwise/core/config.hpp"

/// \file
/// Elements by a number of any width: ranks, tables and shards are counted in int.

namespace shardwise::inline SHARDWISE_ABI {

/// values[number]. `number` is not negative.
template <class Values, std::integral Number>
[[nodiscard]] constexpr decltype(auto) at(Values& values, Number number) {
    return values[static_cast<std::size_t>(number)];
}

}  // namespace shardwise::inline SHARDWISE_ABI
