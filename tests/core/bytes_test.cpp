// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/core/bytes.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace shardwise_test {
namespace {

using shardwise::ByteReader;
using shardwise::ByteWriter;
using shardwise::padded_part;

TEST(PaddedPart, IsTheNextMultipleOfEight) {
    EXPECT_EQ(padded_part(0), 0);
    EXPECT_EQ(padded_part(1), 8);
    EXPECT_EQ(padded_part(8), 8);
    EXPECT_EQ(padded_part(9), 16);
}

TEST(ByteReaderTest, ReadsWhatWasPut) {
    std::vector<std::byte> message(32, std::byte{0xff});
    ByteWriter to{message.data()};
    to.put(std::uint32_t{7});
    const std::vector<float> values{1.5F, -2.5F};
    to.put(values.data(), 2);
    *to.skip(1) = std::byte{9};
    to.pad(message.data());
    EXPECT_EQ(to.position(), message.data() + 16);
    to.put(values.data(), 0);
    to.put(2.5);

    ByteReader from{std::span<const std::byte>{message}.first(24)};
    EXPECT_EQ(from.get<std::uint32_t>(), 7U);
    const auto* floats = from.view<float>(2);
    ASSERT_NE(floats, nullptr);
    EXPECT_EQ(floats[1], -2.5F);
    EXPECT_EQ(from.get<std::uint8_t>(), 9U);
    EXPECT_FALSE(from.complete());
    from.skip_padding();
    EXPECT_EQ(from.get<double>(), 2.5);
    EXPECT_TRUE(from.complete());
    EXPECT_FALSE(from.overrun());
}

TEST(ByteReaderTest, PaddingIsZeros) {
    std::vector<std::byte> message(16, std::byte{0xff});
    ByteWriter to{message.data()};
    to.put(std::uint8_t{1});
    to.pad(message.data());
    for (std::size_t i = 1; i < 8; ++i)
        EXPECT_EQ(message[i], std::byte{0});
    EXPECT_EQ(message[8], std::byte{0xff});
    ByteWriter again{message.data() + 8};
    again.pad(message.data() + 8);
    EXPECT_EQ(again.position(), message.data() + 8);
}

TEST(ByteReaderTest, PastTheEndAreZerosAndNulls) {
    const std::vector<std::byte> message(6, std::byte{0xff});
    ByteReader from{message};
    EXPECT_EQ(from.get<std::uint16_t>(), 0xffffU);
    EXPECT_EQ(from.get<std::uint64_t>(), 0U);
    EXPECT_TRUE(from.overrun());
    EXPECT_EQ(from.get<std::uint8_t>(), 0U);  // the rest is gone too
    EXPECT_EQ(from.view<std::uint8_t>(1), nullptr);
    EXPECT_FALSE(from.complete());
}

TEST(ByteReaderTest, OneByteTooFewIsTooFew) {
    const std::vector<std::byte> message(3, std::byte{0xff});
    ByteReader from{message};
    EXPECT_EQ(from.get<std::uint32_t>(), 0U);
    EXPECT_TRUE(from.overrun());
}

TEST(ByteReaderTest, CountsFromAMessageCannotReachBeyondIt) {
    const std::vector<std::byte> message(8);
    for (const std::int64_t count : {std::int64_t{3}, std::int64_t{0xffffffff}, std::int64_t{1} << 40}) {
        ByteReader from{message};
        EXPECT_EQ(from.view<float>(count), nullptr);
        EXPECT_TRUE(from.overrun());
    }
    ByteReader all{message};
    EXPECT_NE(all.view<float>(2), nullptr);
    EXPECT_TRUE(all.complete());
}

TEST(ByteReaderTest, MissingPaddingIsAnOverrun) {
    const std::vector<std::byte> message(5);
    ByteReader from{message};
    static_cast<void>(from.get<std::uint8_t>());
    from.skip_padding();
    EXPECT_TRUE(from.overrun());
    ByteReader nothing{std::span<const std::byte>{}};
    nothing.skip_padding();
    EXPECT_TRUE(nothing.complete());
}

RC_GTEST_PROP(ByteReaderTest, IsCompleteExactlyAtTheEnd, (const std::vector<std::vector<std::uint16_t>>& parts)) {
    std::vector<std::byte> message(4096 + parts.size() * 8);
    std::int64_t total = 0;
    for (const auto& part : parts)
        total += 8 + padded_part(static_cast<std::int64_t>(part.size() * 2));
    message.resize(static_cast<std::size_t>(total));
    ByteWriter to{message.data()};
    for (const auto& part : parts) {
        const std::byte* begin = to.position();
        to.put(static_cast<std::uint64_t>(part.size()));
        to.put(part.data(), static_cast<std::int64_t>(part.size()));
        to.pad(begin);
    }
    RC_ASSERT(to.position() == message.data() + total);
    ByteReader from{message};
    for (const auto& part : parts) {
        RC_ASSERT(!from.complete());
        RC_ASSERT(from.get<std::uint64_t>() == part.size());
        const auto* values = from.view<std::uint16_t>(static_cast<std::int64_t>(part.size()));
        RC_ASSERT(std::vector<std::uint16_t>(values, values + part.size()) == part);
        from.skip_padding();
    }
    RC_ASSERT(from.complete());
}

}  // namespace
}  // namespace shardwise_test
