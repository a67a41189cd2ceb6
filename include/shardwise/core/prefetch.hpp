// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "shardwise/core/config.hpp"

/// \file
/// Asking for memory before it is needed.

namespace shardwise::inline SHARDWISE_ABI {

enum class PrefetchFor : std::uint8_t { reading, writing };

/// Prefetches every cache line of `count` floats. Always inlined, and so must be every function that does nothing but
/// call it: GCC takes a function of prefetches alone for one without effects, and deletes the calls.
template <PrefetchFor For = PrefetchFor::reading>
[[gnu::always_inline]] inline void prefetch(const float* data, int count) {
    for (int i = 0; i < count; i += 16)
        __builtin_prefetch(data + i, For == PrefetchFor::writing ? 1 : 0, 3);
}

}  // namespace shardwise::inline SHARDWISE_ABI
