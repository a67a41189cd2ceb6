// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shardwise/core/config.hpp"

/// \file
/// Asking for memory before it is needed, and not too early.

namespace shardwise::inline SHARDWISE_ABI {

/// How many rows ahead to ask for rows of `dim` floats, and for `more` lines beside each: as many as fill 64 KiB, but
/// no more than 64. A core can wait for a few lines in its first cache and for several times as many in its second, so
/// rows are asked into the second, early; measured, random rows of 16, 64 and 128 floats are updated 1.07 to 2.4 times
/// as fast as with prefetches into the first cache (an EPYC and a Xeon), whatever their distance.
[[nodiscard]] constexpr std::int64_t rows_ahead(int dim, int more = 0) {
    return std::clamp<std::int64_t>(1024 / std::max((dim + 15) / 16 + more, 1), 8, 64);
}

/// Asks for the lines of `count` elements, 64 bytes apart from the first on, into the second cache.
template <class T>
[[gnu::always_inline]] inline void prefetch(const T* data, int count) {
    static_assert(64 % sizeof(T) == 0, "elements have to divide a cache line");
    // GCC takes a function that does nothing but prefetch for one without effects, and deletes its calls before it
    // inlines them. A volatile statement is an effect.
    asm volatile("");
    for (int i = 0; i < count; i += static_cast<int>(64 / sizeof(T)))
        __builtin_prefetch(data + i, 0, 2);
}

/// Always 0, which a core knows only once it has read `number`: added to an address, it makes reads there wait.
[[nodiscard, gnu::always_inline]] inline std::ptrdiff_t zero_after(const float* number) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, number, sizeof bits);
    std::uint64_t wide = bits;
    asm("" : "+r"(wide));  // compilers do not see that its upper half is 0
    return static_cast<std::ptrdiff_t>(wide >> 32U);
}

}  // namespace shardwise::inline SHARDWISE_ABI
