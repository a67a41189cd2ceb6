// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "shardwise/core/config.hpp"

/// \file
/// The precision of vectors on the wire. A codec rounds values where they pass an exchange, whether or not they leave
/// the rank, so that results do not depend on who sits where; nothing is ever accumulated in the wire type.

namespace shardwise::inline SHARDWISE_ABI {

/// A codec: `bytes` an element; `exact` when nothing is rounded and messages hold plain floats; `round` does to values
/// in place what encoding and decoding them does.
template <class W>
concept WireCodec = requires(const float* from, float* to, std::byte* raw, const std::byte* read, std::int64_t count) {
    { W::name } -> std::convertible_to<std::string>;
    { W::bytes } -> std::convertible_to<std::size_t>;
    { W::exact } -> std::convertible_to<bool>;
    W::encode(from, raw, count);
    W::decode(read, to, count);
    W::round(to, count);
    requires !W::exact || W::bytes == sizeof(float);
};

/// Single precision: nothing changes, blocks are used where they arrived.
struct Fp32 {
    static constexpr const char* name = "fp32";  ///< in names of layers, plans and reports
    static constexpr std::size_t bytes = 4;      ///< an element
    static constexpr bool exact = true;          ///< messages hold plain floats
    /// Writes `count` elements as they travel.
    static void encode(const float* from, std::byte* to, std::int64_t count) noexcept {
        if (count != 0) std::memcpy(to, from, static_cast<std::size_t>(count) * bytes);
    }
    /// Reads `count` elements that have travelled.
    static void decode(const std::byte* from, float* to, std::int64_t count) noexcept {
        if (count != 0) std::memcpy(to, from, static_cast<std::size_t>(count) * bytes);
    }
    /// What encode() and decode() do to values: nothing.
    static void round(float*, std::int64_t) noexcept {}
};

/// The upper half of single precision, rounded to nearest, ties to even; NaN stays NaN.
struct Bf16 {
    static constexpr const char* name = "bf16";  ///< in names of layers, plans and reports
    static constexpr std::size_t bytes = 2;      ///< an element
    static constexpr bool exact = false;         ///< values are rounded

    /// One element as it travels.
    [[nodiscard]] static constexpr std::uint16_t encode_one(float value) noexcept {
        const auto bits = std::bit_cast<std::uint32_t>(value);
        const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
        const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
        return static_cast<std::uint16_t>(nan ? (bits >> 16U) | 0x40U : rounded);
    }
    /// One element that has travelled.
    [[nodiscard]] static constexpr float decode_one(std::uint16_t value) noexcept {
        return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16U);
    }
    /// Writes `count` elements as they travel.
    static void encode(const float* from, std::byte* to, std::int64_t count) noexcept {
        for (std::int64_t i = 0; i < count; ++i) {
            const std::uint16_t half = encode_one(from[i]);
            std::memcpy(to + i * 2, &half, 2);
        }
    }
    /// Reads `count` elements that have travelled.
    static void decode(const std::byte* from, float* to, std::int64_t count) noexcept {
        for (std::int64_t i = 0; i < count; ++i) {
            std::uint16_t half = 0;
            std::memcpy(&half, from + i * 2, 2);
            to[i] = decode_one(half);
        }
    }
    /// What encode() and decode() do to values, in place.
    static void round(float* values, std::int64_t count) noexcept {
        for (std::int64_t i = 0; i < count; ++i)
            values[i] = decode_one(encode_one(values[i]));
    }
};

static_assert(WireCodec<Fp32> && WireCodec<Bf16>);

/// A WireCodec, its type forgotten.
struct Codec {
    std::string name;
    std::int64_t bytes = 4;  ///< an element
    bool exact = true;
    void (*encode)(const float* from, std::byte* to, std::int64_t count) = nullptr;
    void (*decode)(const std::byte* from, float* to, std::int64_t count) = nullptr;
    void (*round)(float* values, std::int64_t count) = nullptr;
};
/// The codec W as a value.
template <WireCodec W>
[[nodiscard]] Codec codec_of() {
    return {.name = W::name,
            .bytes = static_cast<std::int64_t>(W::bytes),
            .exact = W::exact,
            .encode = [](const float* from, std::byte* to, std::int64_t count) { W::encode(from, to, count); },
            .decode = [](const std::byte* from, float* to, std::int64_t count) { W::decode(from, to, count); },
            .round = [](float* values, std::int64_t count) { W::round(values, count); }};
}

/// The codecs of a layer.
struct Wires {
    static constexpr const char* state_name = "Wires";
    Codec forward;
    Codec backward;
};

}  // namespace shardwise::inline SHARDWISE_ABI
