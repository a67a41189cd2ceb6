// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/core/exact_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include <boost/multiprecision/cpp_int.hpp>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace {

namespace sw = shardwise;
using boost::multiprecision::cpp_int;

/// The sum of squares times 2^298, by long integers.
cpp_int exact(const std::vector<float>& numbers) {
    cpp_int sum = 0;
    for (const float x : numbers) {
        if (x == 0.0F) continue;
        int e = 0;
        const double fraction = std::frexp(static_cast<double>(x), &e);  // x = fraction * 2^e, 24 bits
        const cpp_int mantissa{static_cast<std::int64_t>(std::ldexp(fraction, 24))};
        sum += (mantissa * mantissa << static_cast<unsigned>(2 * (e - 24) + 346)) >> 48U;
    }
    return sum;
}
/// Rounded to the nearest double, ties to even.
double rounded(cpp_int sum) {
    if (sum == 0) return 0.0;
    const int bits = static_cast<int>(msb(sum)) + 1;
    int shift = bits - 53;
    if (shift > 0) {
        const cpp_int rest = sum & ((cpp_int{1} << static_cast<unsigned>(shift)) - 1);
        const cpp_int half = cpp_int{1} << static_cast<unsigned>(shift - 1);
        sum >>= static_cast<unsigned>(shift);
        if (rest > half || (rest == half && (sum & 1) != 0)) ++sum;
    } else {
        shift = 0;
    }
    return std::ldexp(sum.convert_to<double>(), shift - 298);
}
double summed(const std::vector<float>& numbers) {
    sw::ExactSum sum;
    sum.add_squares(numbers);
    return sum.value();
}
/// Any finite floats: of every exponent, or alike.
std::vector<float> some_floats(std::uint64_t seed) {
    std::mt19937_64 dice{seed};
    const bool alike = dice() % 2 == 0;
    std::vector<float> numbers(dice() % 1500);
    for (float& x : numbers) {
        std::uint32_t bits = static_cast<std::uint32_t>(dice());
        if (alike) bits = (bits & 0x80ffffffU) | 0x3c000000U;
        if (dice() % 16 == 0) bits &= 0x80000000U;
        x = std::bit_cast<float>(bits);
        if (!std::isfinite(x)) x = 1.0F;
    }
    return numbers;
}

RC_GTEST_PROP(ExactSum, IsTheSumOfSquaresRoundedOnce, (std::uint64_t seed)) {
    const std::vector<float> numbers = some_floats(seed);
    RC_ASSERT(summed(numbers) == rounded(exact(numbers)));
}

RC_GTEST_PROP(ExactSum, DoesNotDependOnOrderOrParts, (std::uint64_t seed)) {
    std::vector<float> numbers = some_floats(seed);
    const double expected = summed(numbers);
    std::mt19937_64 dice{seed + 1};
    std::shuffle(numbers.begin(), numbers.end(), dice);
    std::vector<sw::ExactSum> ranks(1 + dice() % 5);
    std::span<const float> left{numbers};
    while (!left.empty()) {
        const std::size_t some = 1 + dice() % std::min<std::size_t>(left.size(), 300);
        ranks[dice() % ranks.size()].add_squares(left.first(some));
        left = left.subspan(some);
    }
    sw::ExactSum all;
    for (const sw::ExactSum& rank : ranks)
        all += sw::ExactSum::from(rank.words());
    RC_ASSERT(all.value() == expected);
}

TEST(ExactSum, OfTheLargestTheSmallestAndNone) {
    EXPECT_EQ(summed({}), 0.0);
    EXPECT_EQ(summed({0.0F, -0.0F}), 0.0);
    const float least = std::numeric_limits<float>::denorm_min();
    EXPECT_EQ(summed({least}), std::ldexp(1.0, -298));
    const float most = std::numeric_limits<float>::max();
    EXPECT_EQ(summed({most}), static_cast<double>(most) * static_cast<double>(most));
    EXPECT_EQ(summed({most, least}), static_cast<double>(most) * static_cast<double>(most));
    EXPECT_EQ(summed(std::vector<float>(100000, most)), rounded(exact(std::vector<float>(100000, most))));
}

TEST(ExactSum, KnowsOfNumbersThatAreNotFinite) {
    EXPECT_TRUE(std::isinf(summed({1.0F, std::numeric_limits<float>::infinity()})));
    EXPECT_TRUE(std::isinf(summed({std::nanf(""), 1.0F})));
    sw::ExactSum clean;
    clean.add_squares(std::vector<float>{3.0F});
    sw::ExactSum other;
    other.add_squares(std::vector<float>{-std::numeric_limits<float>::infinity()});
    clean += other;
    EXPECT_TRUE(std::isinf(clean.value()));
}

}  // namespace
