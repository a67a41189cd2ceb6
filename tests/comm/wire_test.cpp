// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/comm/wire.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace shardwise_test {
namespace {

using shardwise::Bf16;
using shardwise::Fp32;

float bits(std::uint32_t pattern) {
    return std::bit_cast<float>(pattern);
}

/// The nearest of the two neighbours that bf16 has for a finite value, by their distance; the even one when tied.
std::uint16_t naive(float value) {
    const auto pattern = std::bit_cast<std::uint32_t>(value);
    const auto below = static_cast<std::uint16_t>(pattern >> 16U);  // towards zero
    const auto above = static_cast<std::uint16_t>(below + 1);       // away from zero; may be infinity
    const double low = bits(static_cast<std::uint32_t>(below) << 16U);
    // beyond the largest finite number the next one would be 2^128, with its sign
    const double high = (above & 0x7fffU) == 0x7f80U ? std::copysign(std::ldexp(1.0, 128), value)
                                                     : bits(static_cast<std::uint32_t>(above) << 16U);
    const double to_low = std::abs(value - low);
    const double to_high = std::abs(high - value);
    if (to_low != to_high) return to_low < to_high ? below : above;
    return below % 2 == 0 ? below : above;
}

/// What is exact travels as it lies in memory.
struct Half : shardwise::Bf16 {
    static constexpr bool exact = true;
};
static_assert(shardwise::WireCodec<shardwise::Bf16> && !shardwise::WireCodec<Half>);

TEST(Bf16Test, EveryPatternDecodesToItsUpperHalfAndBack) {
    for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
        const auto half = static_cast<std::uint16_t>(pattern);
        const float value = Bf16::decode_one(half);
        EXPECT_EQ(std::bit_cast<std::uint32_t>(value), pattern << 16U);
        if (std::isnan(value)) {
            EXPECT_TRUE(std::isnan(Bf16::decode_one(Bf16::encode_one(value)))) << pattern;
        } else {
            EXPECT_EQ(Bf16::encode_one(value), half);
        }
    }
}

TEST(Bf16Test, RoundsToNearestEvenBesideEveryPattern) {
    for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
        if ((pattern & 0x7f80U) == 0x7f80U) continue;  // infinities and NaNs
        for (const std::uint32_t low : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
            const float value = bits(pattern << 16U | low);
            ASSERT_EQ(Bf16::encode_one(value), naive(value)) << std::hexfloat << value;
        }
    }
}

TEST(Bf16Test, RoundsRandomFloats) {
    std::mt19937 random{1};
    for (int i = 0; i < 1000000; ++i) {
        const float value = bits(static_cast<std::uint32_t>(random()));
        if (!std::isfinite(value)) continue;
        ASSERT_EQ(Bf16::encode_one(value), naive(value)) << std::hexfloat << value;
    }
}

TEST(Bf16Test, TiesGoToEven) {
    EXPECT_EQ(Bf16::encode_one(bits(0x3f808000U)), 0x3f80U);  // between 1 and 1 + 2^-7
    EXPECT_EQ(Bf16::encode_one(bits(0x3f818000U)), 0x3f82U);
    EXPECT_EQ(Bf16::encode_one(bits(0xbf818000U)), 0xbf82U);
}

TEST(Bf16Test, OverflowsToInfinityAndKeepsSignsOfZero) {
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(Bf16::decode_one(Bf16::encode_one(infinity)), infinity);
    EXPECT_EQ(Bf16::decode_one(Bf16::encode_one(-infinity)), -infinity);
    EXPECT_EQ(Bf16::decode_one(Bf16::encode_one(std::numeric_limits<float>::max())), infinity);
    EXPECT_EQ(Bf16::encode_one(0.0F), 0x0000U);
    EXPECT_EQ(Bf16::encode_one(-0.0F), 0x8000U);
    EXPECT_EQ(Bf16::encode_one(bits(1)), 0x0000U);  // the smallest subnormal
}

TEST(Bf16Test, NanStaysNan) {
    for (const std::uint32_t pattern : {0x7fc00000U, 0xffc00000U, 0x7f800001U, 0xff800001U, 0x7fffffffU, 0xffffffffU})
        EXPECT_TRUE(std::isnan(Bf16::decode_one(Bf16::encode_one(bits(pattern))))) << std::hex << pattern;
}

template <class W>
void check_round_is_the_way_there_and_back(const std::vector<float>& values) {
    static_assert(shardwise::WireCodec<W>);
    const auto count = static_cast<std::int64_t>(values.size());
    std::vector<std::byte> wire(values.size() * W::bytes + 1, std::byte{0x5a});
    std::vector<float> back(values.size());
    std::vector<float> rounded = values;
    W::encode(values.data(), wire.data(), count);
    W::decode(wire.data(), back.data(), count);
    W::round(rounded.data(), count);
    RC_ASSERT(wire.back() == std::byte{0x5a});
    for (std::size_t i = 0; i < values.size(); ++i) {
        RC_ASSERT(std::bit_cast<std::uint32_t>(back[i]) == std::bit_cast<std::uint32_t>(rounded[i]));
        if (W::exact) RC_ASSERT(std::bit_cast<std::uint32_t>(back[i]) == std::bit_cast<std::uint32_t>(values[i]));
    }
    W::round(back.data(), count);  // rounding again changes nothing
    for (std::size_t i = 0; i < values.size(); ++i)
        RC_ASSERT(std::bit_cast<std::uint32_t>(back[i]) == std::bit_cast<std::uint32_t>(rounded[i]));
}

RC_GTEST_PROP(WireCodecs, RoundIsTheWayThereAndBack, (const std::vector<std::uint32_t>& patterns)) {
    std::vector<float> values;
    for (const std::uint32_t pattern : patterns)
        values.push_back(bits(pattern * 2654435761U));
    check_round_is_the_way_there_and_back<Fp32>(values);
    check_round_is_the_way_there_and_back<Bf16>(values);
}

}  // namespace
}  // namespace shardwise_test
