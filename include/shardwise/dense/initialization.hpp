// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "shardwise/core/config.hpp"
#include "shardwise/core/split_mix.hpp"

/// \file
/// Initial values of dense parameters: a pure function of seed, parameter and element.
///
/// Every rank computes the same bits without communication, on every machine: nothing is used but integers and IEEE 754
/// products, quotients and square roots.

namespace shardwise::inline SHARDWISE_ABI {

/// Element `element` of stream `stream` under `seed`: uniform in (-1, 1), symmetric, never 0, a multiple of 2^-24.
[[nodiscard]] constexpr float uniform_value(std::uint64_t seed, std::uint64_t stream, std::uint64_t element) noexcept {
    const std::uint64_t base = split_mix(split_mix(seed + split_mix_step) + (stream + 1) * split_mix_step);
    const std::uint64_t bits = split_mix(base + (element + 1) * split_mix_step) >> 40;  // 24 bits
    constexpr std::int64_t half = std::int64_t{1} << 24;
    return static_cast<float>(2 * static_cast<std::int64_t>(bits) + 1 - half) / static_cast<float>(half);
}

/// Fills `values` with a uniform distribution in (-bound, bound).
/// Not collective. \param stream  a number of its own for each parameter, its index in the set
inline void fill_uniform(std::span<float> values, float bound, std::uint64_t seed, std::uint64_t stream) noexcept {
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = bound * uniform_value(seed, stream, i);
}

/// The bound of a uniform distribution with that variance: sqrt(3 * variance).
[[nodiscard]] inline float uniform_bound(double variance) noexcept {
    return static_cast<float>(std::sqrt(3.0 * variance));
}

}  // namespace shardwise::inline SHARDWISE_ABI
