// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "shardwise/core/config.hpp"
#include "shardwise/core/split_mix.hpp"

/// \file
/// What a table begins with.

namespace shardwise::inline SHARDWISE_ABI {

/// 64 random bits, a pure function of (seed, table, row, column).
[[nodiscard]] constexpr std::uint64_t initial_bits(std::uint64_t seed, int table, std::int64_t row,
                                                   int column) noexcept {
    std::uint64_t x = split_mix(seed + split_mix_step);
    x = split_mix(x ^ static_cast<std::uint64_t>(table) * 0xd1342543de82ef95ULL);
    x = split_mix(x ^ static_cast<std::uint64_t>(row) * split_mix_step);
    return split_mix(x ^ static_cast<std::uint64_t>(column) * 0xaf251af3b0f025b5ULL);
}

/// Initial weights: a pure function of (seed, table, row, column), uniform in [-bound, bound); no math library
/// involved.
[[nodiscard]] constexpr float initial_weight(std::uint64_t seed, int table, std::int64_t row, int column,
                                             float bound) noexcept {
    const std::uint64_t x = initial_bits(seed, table, row, column);
    const float unit = static_cast<float>(x >> 40U) * (1.0F / 16777216.0F);  // [0, 1), 24 bits
    return (unit - 0.5F) * (2.0F * bound);
}

}  // namespace shardwise::inline SHARDWISE_ABI
