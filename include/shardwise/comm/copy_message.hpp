// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "shardwise/core/config.hpp"

/// \file
/// The copy of a message from one rank's memory to another's in the same process.

namespace shardwise::inline SHARDWISE_ABI::detail {

/// From this size on a message is written past the caches: together with what it is copied from it is more than a
/// core's share of them, and a line that is stored the usual way is read first.
inline constexpr std::size_t copy_past_caches_bytes = std::size_t{8} << 20;

#ifdef __SSE2__
/// As memcpy, with stores that do not read what they overwrite and leave nothing in the caches.
inline void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) {
    constexpr std::size_t step = sizeof(__m128i);
    const std::size_t head = std::min(bytes, (step - reinterpret_cast<std::uintptr_t>(to) % step) % step);
    const std::size_t end = head + (bytes - head) / step * step;
    std::memcpy(to, from, head);
    for (std::size_t i = head; i < end; i += step)
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    std::memcpy(to + end, from + end, bytes - end);
    _mm_sfence();  // releasing a lock does not order these stores
}
#endif

/// Copies `bytes` bytes between places that do not overlap. `memcpy` does not write past the caches that it believes to
/// have; in a virtual machine these may be the host's.
inline void copy_message(std::byte* to, const std::byte* from, std::size_t bytes) {
#ifdef __SSE2__
    if (bytes >= copy_past_caches_bytes) return copy_past_caches(to, from, bytes);
#endif
    if (bytes != 0) std::memcpy(to, from, bytes);
}

}  // namespace shardwise::inline SHARDWISE_ABI::detail
