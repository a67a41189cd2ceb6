// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <string_view>

#include "shardwise/core/config.hpp"

/// \file
/// A small number that tells two configurations apart.

namespace shardwise::inline SHARDWISE_ABI {

/// FNV-1a over what it is fed, in order. Tells mistakes apart, not attacks.
class Digest {
  public:
    constexpr Digest& add(std::string_view text) noexcept {
        for (const char c : text)
            byte(static_cast<unsigned char>(c));
        return add(static_cast<std::int64_t>(text.size()));
    }
    /// By its value, whatever its type.
    constexpr Digest& add(std::integral auto number) noexcept {
        for (unsigned shift = 0; shift < 64; shift += 8)
            byte(static_cast<std::uint64_t>(number) >> shift & 0xffU);
        return *this;
    }
    /// By its bits.
    constexpr Digest& add(float number) noexcept {
        return add(static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(number)));
    }
    constexpr Digest& add(double number) noexcept {
        return add(static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(number)));
    }

    /// All of it.
    [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return state_; }
    /// The digest, folded to 16 bits.
    [[nodiscard]] constexpr std::uint16_t bits16() const noexcept {
        const std::uint64_t half = state_ ^ state_ >> 32U;
        return static_cast<std::uint16_t>(half ^ half >> 16U);
    }

  private:
    constexpr void byte(std::uint64_t value) noexcept { state_ = (state_ ^ value) * 0x100000001b3U; }

    std::uint64_t state_ = 0xcbf29ce484222325U;
};

}  // namespace shardwise::inline SHARDWISE_ABI
