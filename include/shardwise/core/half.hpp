// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstdint>

#include "shardwise/core/config.hpp"

/// \file
/// Half precision (IEEE 754 binary16), as bits.

namespace shardwise::inline SHARDWISE_ABI {

/// The same number in single precision, which has all of them; NaN stays NaN.
[[nodiscard]] constexpr float float_of_half(std::uint16_t half) noexcept {
    const std::uint32_t sign = (half & 0x8000U) << 16U;
    const std::uint32_t magnitude = half & 0x7fffU;  // 5 bits of exponent, 10 of fraction
    std::uint32_t bits = magnitude << 13U;
    if (magnitude >= 0x7c00U) {  // infinity or NaN: all bits of the exponent
        bits |= 0x7f800000U;
    } else if (magnitude >= 0x0400U) {
        bits += (127U - 15U) << 23U;  // the exponent's bias
    } else {                          // subnormal, in steps of 2^-24
        bits = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
    }
    return std::bit_cast<float>(bits | sign);
}

}  // namespace shardwise::inline SHARDWISE_ABI
