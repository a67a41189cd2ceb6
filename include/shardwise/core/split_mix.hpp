// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "shardwise/core/config.hpp"

/// \file
/// The one hash behind initial weights and generated data: integers alone, so that its bits are the same everywhere.

namespace shardwise::inline SHARDWISE_ABI {

/// What SplitMix64 adds to its state a draw: 2^64 over the golden ratio, odd.
inline constexpr std::uint64_t split_mix_step = 0x9e3779b97f4a7c15U;

/// The finalizer of SplitMix64: a bijection of 64-bit words that flips every output bit with probability near one half.
[[nodiscard]] constexpr std::uint64_t split_mix(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
}

}  // namespace shardwise::inline SHARDWISE_ABI
