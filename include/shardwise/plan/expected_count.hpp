// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>

#include "shardwise/core/bytes.hpp"
#include "shardwise/core/config.hpp"

/// \file
/// Counts that differ from batch to batch: what the expectation reader counts with.

namespace shardwise::inline SHARDWISE_ABI {

/// The mean of a count over batches, and enough of how it differs to say how many bytes a message is filled up with.
/// Made from a whole number it is one that no batch changes; of two counts, sums and multiples by whole numbers are
/// made as of numbers.
struct ExpectedCount {
    double mean = 0.0;
    std::int64_t certain = 0;  ///< a summand that is the same in every batch
    std::int64_t step = 0;     ///< the rest is a multiple of this; 0: there is none, and the mean is `certain`

    constexpr ExpectedCount() = default;
    constexpr ExpectedCount(std::int64_t number) : mean{static_cast<double>(number)}, certain{number} {}

    /// A count that is some multiple of `step`, in the mean `mean`.
    [[nodiscard]] static constexpr ExpectedCount random(double mean, std::int64_t step = 1) {
        ExpectedCount count;
        count.mean = mean;
        count.step = step;
        return count;
    }

    constexpr ExpectedCount& operator+=(const ExpectedCount& other) noexcept {
        mean += other.mean;
        certain += other.certain;
        step = std::gcd(step, other.step);
        return *this;
    }
    friend constexpr ExpectedCount operator+(ExpectedCount a, const ExpectedCount& b) noexcept { return a += b; }
    friend constexpr ExpectedCount operator*(ExpectedCount count, std::int64_t factor) noexcept {
        count.mean *= static_cast<double>(factor);
        count.certain *= factor;
        count.step *= factor;
        return count;
    }
    friend constexpr ExpectedCount operator*(std::int64_t factor, const ExpectedCount& count) noexcept {
        return count * factor;
    }
    friend constexpr bool operator==(const ExpectedCount&, const ExpectedCount&) = default;
    /// By their means.
    friend constexpr bool operator<(const ExpectedCount& a, const ExpectedCount& b) noexcept { return a.mean < b.mean; }
};

/// The number itself, or the mean.
[[nodiscard]] constexpr std::int64_t mean_of(std::int64_t number) noexcept {
    return number;
}
[[nodiscard]] constexpr double mean_of(const ExpectedCount& count) noexcept {
    return count.mean;
}
/// The number itself, or the least whole one that is no less than the mean.
[[nodiscard]] constexpr std::int64_t rounded_up(std::int64_t number) noexcept {
    return number;
}
[[nodiscard]] inline std::int64_t rounded_up(double number) noexcept {
    return static_cast<std::int64_t>(std::ceil(number));
}
[[nodiscard]] inline std::int64_t rounded_up(const ExpectedCount& count) noexcept {
    return rounded_up(count.mean);
}

/// The zeros behind a part of so many bytes. Of a part that differs, their mean, where all its remainders modulo
/// part_alignment are equally likely: exact for parts of multiples of it.
[[nodiscard]] constexpr std::int64_t padding_of(std::int64_t bytes) noexcept {
    return padded_part(bytes) - bytes;
}
[[nodiscard]] constexpr double padding_of(const ExpectedCount& bytes) noexcept {
    const std::int64_t step = std::gcd(bytes.step, part_alignment);
    const std::int64_t least = (step - bytes.certain % step) % step;
    return static_cast<double>(least) + static_cast<double>(part_alignment - step) / 2.0;
}

}  // namespace shardwise::inline SHARDWISE_ABI
