// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "shardwise/core/config.hpp"
#include "shardwise/core/split_mix.hpp"

/// \file
/// Random numbers that are a function of where they are used, not of what was drawn before.

namespace shardwise::inline SHARDWISE_ABI {

/// A stream of random numbers named by a key: the same key, the same numbers, on every rank and platform (SplitMix64,
/// started at a hash of the key).
class KeyedRandom {
  public:
    /// \param seed, stream, index  the key: say a data set, what is drawn there, and for which sample
    constexpr KeyedRandom(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept
        : KeyedRandom{KeyedRandom{seed, stream}, index} {}
    /// The first two parts of the key, for many indices.
    constexpr KeyedRandom(std::uint64_t seed, std::uint64_t stream) noexcept
        : state_{split_mix(split_mix(seed + split_mix_step) + stream + split_mix_step)} {}
    /// The stream of a key of which `start` has the first two parts, and has drawn nothing.
    constexpr KeyedRandom(KeyedRandom start, std::uint64_t index) noexcept : state_{split_mix(start.state_ + index)} {}

    /// 64 random bits.
    constexpr std::uint64_t bits() noexcept { return split_mix(state_ += split_mix_step); }
    /// Uniform in [0, 1), a multiple of 2^-53.
    constexpr double uniform() noexcept { return static_cast<double>(bits() >> 11) * 0x1p-53; }
    /// Uniform in [0, count) but for a bias of less than count * 2^-32. \param count 1 to 2^31
    constexpr std::int64_t below(std::int64_t count) noexcept {
        return static_cast<std::int64_t>((bits() >> 32) * static_cast<std::uint64_t>(count) >> 32);
    }
    /// Bell-shaped with mean 0 and variance 1, in [-3.5, 3.5]: the sum of four uniform numbers, so free of libm.
    constexpr double bell() noexcept {
        const std::uint64_t b = bits();
        const std::uint64_t sum = (b & 0xffff) + (b >> 16 & 0xffff) + (b >> 32 & 0xffff) + (b >> 48);
        return (static_cast<double>(sum) - 131070.0) * (1.7320508075688772 / 65536.0);
    }

  private:
    std::uint64_t state_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
