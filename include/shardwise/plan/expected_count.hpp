// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "shardwise/core/bytes.hpp"
#include "shardwise/core/config.hpp"

/// \file
/// Counts that differ from batch to batch: what the expectation reader counts with.

namespace shardwise::inline SHARDWISE_ABI {

/// How likely each remainder of a count modulo part_alignment is: what the bytes that fill up a part depend on. A
/// polynomial whose exponents are such remainders; the product of two is that of the sum of independent counts.
class Remainders {
  public:
    static constexpr std::size_t count = static_cast<std::size_t>(part_alignment);

    /// Of a number that is certain.
    [[nodiscard]] static constexpr Remainders of(std::int64_t number) noexcept {
        return Remainders{}.plus(1.0, number);
    }
    /// Of something that is counted, or not, with a probability. Also of less than all cases: of those with a `counted`
    /// thing and those `without`.
    [[nodiscard]] static constexpr Remainders once(double counted, double without) noexcept {
        return Remainders{}.plus(without, 0).plus(counted, 1);
    }

    /// Of a number of which nothing is known: all are equally likely.
    [[nodiscard]] static constexpr Remainders even() noexcept {
        Remainders all;
        all.chances_.fill(1.0 / count);
        return all;
    }

    [[nodiscard]] constexpr double operator[](std::size_t remainder) const noexcept { return chances_[remainder]; }
    /// With another case, of a probability: the count is `number` there.
    [[nodiscard]] constexpr Remainders plus(double probability, std::int64_t number) const noexcept {
        Remainders sum = *this;
        sum.chances_[static_cast<std::size_t>(number % part_alignment)] += probability;
        return sum;
    }
    /// Cases together, each that often; with a negative weight, without them.
    [[nodiscard]] constexpr Remainders plus(double weight, const Remainders& other) const noexcept {
        Remainders sum = *this;
        for (std::size_t r = 0; r < count; ++r)
            sum.chances_[r] += weight * other.chances_[r];
        return sum;
    }
    friend constexpr Remainders operator*(const Remainders& a, const Remainders& b) noexcept {
        Remainders product;
        for (std::size_t i = 0; i < count; ++i)
            for (std::size_t k = 0; k < count; ++k)
                product.chances_[(i + k) % count] += a.chances_[i] * b.chances_[k];
        return product;
    }
    /// Of so many such counts together, independent of each other.
    [[nodiscard]] constexpr Remainders times(std::int64_t number) const noexcept {
        Remainders product = of(0);
        for (Remainders square = *this; number > 0; number /= 2, square = square * square)
            if (number % 2 != 0) product = product * square;
        return product;
    }
    /// Of the count times a number.
    [[nodiscard]] constexpr Remainders multiplied(std::int64_t factor) const noexcept {
        Remainders product;
        for (std::size_t r = 0; r < count; ++r)
            product = product.plus(chances_[r], static_cast<std::int64_t>(r) * factor);
        return product;
    }
    /// Once more something that is counted with a probability.
    constexpr void add(double probability) noexcept {
        const double last = chances_[count - 1];
        for (std::size_t r = count - 1; r > 0; --r)
            chances_[r] += probability * (chances_[r - 1] - chances_[r]);
        chances_[0] += probability * (last - chances_[0]);
    }
    /// All are equally likely, but for rounding: nothing that is added changes that.
    [[nodiscard]] constexpr bool are_even() const noexcept {
        constexpr double rounding = 1e-9;
        for (const double chance : chances_)
            if (chance > 1.0 / count + rounding || chance < 1.0 / count - rounding) return false;
        return true;
    }
    friend constexpr bool operator==(const Remainders&, const Remainders&) = default;

  private:
    std::array<double, count> chances_ = {};
};

/// The mean of a count over batches, and its remainders. Made from a whole number it is the same in every batch; sums
/// of independent counts, and multiples by whole numbers, are made as of numbers.
struct ExpectedCount {
    double mean = 0.0;
    Remainders remainders = Remainders::of(0);

    constexpr ExpectedCount() = default;
    // NOLINTNEXTLINE(google-explicit-constructor): a whole number is a count
    constexpr ExpectedCount(std::int64_t number)
        : mean{static_cast<double>(number)}, remainders{Remainders::of(number)} {}
    constexpr ExpectedCount(double its_mean, const Remainders& its_remainders)
        : mean{its_mean}, remainders{its_remainders} {}

    constexpr ExpectedCount& operator+=(const ExpectedCount& other) noexcept {
        mean += other.mean;
        remainders = remainders * other.remainders;
        return *this;
    }
    friend constexpr ExpectedCount operator+(ExpectedCount a, const ExpectedCount& b) noexcept { return a += b; }
    friend constexpr ExpectedCount operator*(const ExpectedCount& count, std::int64_t factor) noexcept {
        return {count.mean * static_cast<double>(factor), count.remainders.multiplied(factor)};
    }
    friend constexpr ExpectedCount operator*(std::int64_t factor, const ExpectedCount& count) noexcept {
        return count * factor;
    }
    friend constexpr bool operator==(const ExpectedCount&, const ExpectedCount&) = default;
    /// By their means.
    friend constexpr bool operator<(const ExpectedCount& a, const ExpectedCount& b) noexcept { return a.mean < b.mean; }
};

/// The number itself.
[[nodiscard]] constexpr std::int64_t mean_of(std::int64_t number) noexcept {
    return number;
}
/// The mean.
[[nodiscard]] constexpr double mean_of(const ExpectedCount& count) noexcept {
    return count.mean;
}
/// The number itself.
[[nodiscard]] constexpr std::int64_t rounded_up(std::int64_t number) noexcept {
    return number;
}
/// The least whole number that is no less, but for rounding.
[[nodiscard]] inline std::int64_t rounded_up(double number) noexcept {
    return static_cast<std::int64_t>(std::ceil(number - 1e-6));
}
/// The mean, rounded up.
[[nodiscard]] inline std::int64_t rounded_up(const ExpectedCount& count) noexcept {
    return rounded_up(count.mean);
}

/// The zeros behind a part of so many bytes.
[[nodiscard]] constexpr std::int64_t padding_of(std::int64_t bytes) noexcept {
    return padded_part(bytes) - bytes;
}
/// Their mean.
[[nodiscard]] constexpr double padding_of(const ExpectedCount& bytes) noexcept {
    double padding = 0.0;
    for (std::size_t r = 1; r < Remainders::count; ++r)
        padding += bytes.remainders[r] * static_cast<double>(Remainders::count - r);
    return padding;
}

}  // namespace shardwise::inline SHARDWISE_ABI
