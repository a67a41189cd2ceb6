// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "shardwise/core/config.hpp"

/// \file
/// Sums of squares that do not depend on who adds what in which order.

namespace shardwise::inline SHARDWISE_ABI {

/// The exact sum of squares of floats, as one long integer: the same bits however numbers are dealt to ranks and rows
/// to shards. Rounded once, when it is asked for. (A long accumulator, after Kulisch)
class ExactSum {
  public:
    static constexpr int limbs = 22;  ///< of 32 bits each, from 2^-352 on: squares are 2^-298 to 2^256
    using Words = std::array<std::int64_t, limbs + 1>;

    /// Adds the squares of `numbers`. About four operations a number, in vectors; exact, also where they differ by
    /// more than doubles can tell, which takes longer.
    void add_squares(std::span<const float> numbers) {
        for (std::size_t first = 0; first < numbers.size(); first += most)
            add_block(numbers.data() + first, std::min(most, numbers.size() - first));
    }
    ExactSum& operator+=(const ExactSum& other) {
        const Words theirs = other.words();
        carry();
        for (std::size_t i = 0; i < words_.size(); ++i)
            words_[i] += theirs[i];
        carry();
        return *this;
    }
    /// For messages: what another rank makes the same sum of.
    [[nodiscard]] Words words() const {
        ExactSum sum = *this;
        sum.carry();
        return sum.words_;
    }
    [[nodiscard]] static ExactSum from(const Words& words) {
        ExactSum sum;
        sum.words_ = words;
        return sum;
    }

    /// The sum, rounded to the nearest double; infinity where some number was infinite or not a number.
    [[nodiscard]] double value() const {
        const Words all = words();
        if (all[limbs] != 0) return std::numeric_limits<double>::infinity();
        int top = limbs - 1;
        while (top >= 0 && all[static_cast<std::size_t>(top)] == 0)
            --top;
        if (top < 0) return 0.0;
        const auto limb = [&](int i) {
            return i < 0 ? 0U : static_cast<std::uint64_t>(all[static_cast<std::size_t>(i)]);
        };
        const std::uint64_t low = limb(top - 2);
        std::uint64_t bits = limb(top) << 32U | limb(top - 1);
        const int shift = std::countl_zero(bits);
        if (shift > 0) bits = bits << static_cast<unsigned>(shift) | low >> (32U - static_cast<unsigned>(shift));
        bool rest = (low << static_cast<unsigned>(shift) & 0xffffffffU) != 0;
        for (int i = 0; i < top - 2; ++i)
            rest = rest || limb(i) != 0;
        if (rest) bits |= 1U;  // below what a double has room for: it decides ties alone
        return std::ldexp(static_cast<double>(bits), 32 * (top - 1) - shift - bias);
    }

  private:
    static constexpr int bias = 352;
    static constexpr std::size_t most = 512;  // numbers whose slices add up exactly
    static constexpr int most_log2 = 9;

    void add_block(const float* numbers, std::size_t count) {
        std::uint32_t largest = 0;
        for (std::size_t i = 0; i < count; ++i)
            largest = std::max(largest, std::bit_cast<std::uint32_t>(numbers[i]) & 0x7fffffffU);
        if (largest == 0) return;
        if (largest >= 0x7f800000U) {
            words_[limbs] = 1;
            return;
        }
        // A square is cut into what is a multiple of 2^(e - 52), and, of the rest, of 2^(e - 52 - 42): sums of either
        // are exact in any order, for they stay below 2^53 times that. Rounding does the cutting.
        const double square = static_cast<double>(std::bit_cast<float>(largest)) * std::bit_cast<float>(largest);
        const int e = std::ilogb(square) + most_log2 + 2;
        const double cut = std::ldexp(1.5, e);
        const double next_cut = std::ldexp(1.5, e - 52 + most_log2 + 1);
        std::array<double, 8> high{};
        std::array<double, 8> low{};
        std::array<double, 8> left{};
        const auto slice = [&](std::size_t lane, float number) {
            const double x = static_cast<double>(number) * static_cast<double>(number);
            const double first = (cut + x) - cut;
            const double rest = x - first;
            const double second = (next_cut + rest) - next_cut;
            high[lane] += first;
            low[lane] += second;
            left[lane] = std::max(left[lane], std::abs(rest - second));
        };
        std::size_t i = 0;
        for (; i + 8 <= count; i += 8)
            for (std::size_t lane = 0; lane < 8; ++lane)
                slice(lane, numbers[i + lane]);
        for (; i < count; ++i)
            slice(i % 8, numbers[i]);
        double more = 0;
        double high_sum = 0;
        double low_sum = 0;
        for (std::size_t lane = 0; lane < 8; ++lane) {
            high_sum += high[lane];
            low_sum += low[lane];
            more = std::max(more, left[lane]);
        }
        add(high_sum);
        add(low_sum);
        for (std::size_t n = 0; more != 0 && n < count; ++n) {
            const double x = static_cast<double>(numbers[n]) * static_cast<double>(numbers[n]);
            const double rest = x - ((cut + x) - cut);
            add(rest - ((next_cut + rest) - next_cut));
        }
    }
    /// Adds a double that has no bit below 2^-298.
    void add(double x) {
        if (x == 0.0) return;
        const auto bits = std::bit_cast<std::uint64_t>(x);
        const auto exponent = static_cast<int>(bits >> 52U & 0x7ffU);
        const std::uint64_t mantissa = (bits & ((std::uint64_t{1} << 52U) - 1)) | std::uint64_t{1} << 52U;
        const int low_bit = exponent - 1075 + bias;  // where the mantissa's last bit stands
        const auto at = static_cast<std::size_t>(low_bit / 32);
        const auto shift = static_cast<unsigned>(low_bit % 32);
        const std::int64_t sign = x < 0 ? -1 : 1;
        words_[at] += sign * static_cast<std::int64_t>(mantissa << shift & 0xffffffffU);
        words_[at + 1] += sign * static_cast<std::int64_t>(mantissa >> (32U - shift) & 0xffffffffU);
        if (shift + 53 > 64) words_[at + 2] += sign * static_cast<std::int64_t>(mantissa >> (64U - shift));
        if (++pending_ == most_pending) carry();
    }
    void carry() {
        pending_ = 0;
        for (std::size_t i = 0; i + 1 < limbs; ++i) {
            words_[i + 1] += words_[i] >> 32U;
            words_[i] &= 0xffffffff;
        }
    }

    static constexpr int most_pending = 1 << 28;
    Words words_{};  // the last one: whether some number was not finite
    int pending_ = 0;
};

}  // namespace shardwise::inline SHARDWISE_ABI
