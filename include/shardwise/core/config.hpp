// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// Version, namespace and the few macros of the library.
///
/// Everything lives in `shardwise::v0` (inline). A translation unit compiled with SHARDWISE_ASSERTIONS lives in
/// `shardwise::v0_asserting`, so that the two never link into one program by accident.

#define SHARDWISE_VERSION_MAJOR 0
#define SHARDWISE_VERSION_MINOR 1
#define SHARDWISE_VERSION_PATCH 0

#if defined(__FAST_MATH__)
#error "shardwise: -ffast-math would change the order of sums, which the library fixes; compile without it"
#endif

#if defined(SHARDWISE_ASSERTIONS)
#include <cstdio>
#include <cstdlib>
#define SHARDWISE_ABI v0_asserting
/// Checks an invariant of the library itself (never a user's input); compiled away without SHARDWISE_ASSERTIONS.
#define SHARDWISE_ASSERT(condition)                                                                                  \
    ((condition) ? void()                                                                                            \
                 : (std::fprintf(stderr, "%s:%d: shardwise invariant broken: %s\n", __FILE__, __LINE__, #condition), \
                    std::abort()))
#else
#define SHARDWISE_ABI v0
#define SHARDWISE_ASSERT(condition) static_cast<void>(0)
#endif

/// Before the definition of whatever is no template. Headers alone: an inline function. Where SHARDWISE_COMPILED is
/// defined, headers only declare, and the program links a library of the bodies (*.ipp; shardwise::compiled is one, and
/// cmake/ShardwiseCompiled.cmake shows what it is made of).
#if defined(SHARDWISE_COMPILED)
#define SHARDWISE_INLINE
#else
#define SHARDWISE_INLINE inline
#endif

#if defined(__CUDACC__)
#define SHARDWISE_HOST_DEVICE __host__ __device__
#else
#define SHARDWISE_HOST_DEVICE
#endif

namespace shardwise {
inline namespace SHARDWISE_ABI {}
}  // namespace shardwise
