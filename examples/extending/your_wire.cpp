// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>

#include "trained.hpp"

/// IEEE half precision: 11 bits of precision, up to 65504.
struct Fp16 {
    static constexpr const char* name = "fp16";
    static constexpr std::size_t bytes = 2;  // an element on the wire
    static constexpr bool exact = false;     // values are rounded

    static std::uint16_t encode_one(float value) {
        const auto bits = std::bit_cast<std::uint32_t>(value);
        const std::uint32_t sign = bits >> 16 & 0x8000U;
        const std::uint32_t size = bits & 0x7fffffffU;
        std::uint32_t half = 0;
        if (size > 0x7f800000U) {
            half = 0x7e00U;  // not a number
        } else if (size >= 0x477ff000U) {
            half = 0x7c00U;  // 65520 and more: infinite
        } else if (size < 0x38800000U) {
            half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000U;  // subnormal
        } else {
            half = (size + 0xfffU + (size >> 13 & 1U) - 0x38000000U) >> 13;  // to nearest, ties to even
        }
        return static_cast<std::uint16_t>(sign | half);
    }
    static float decode_one(std::uint16_t value) {
        const std::uint32_t size = value & 0x7fffU;
        float result = 0;
        if (size < 0x400U) {
            result = std::ldexp(static_cast<float>(size), -24);
        } else {
            result = std::bit_cast<float>((size << 13) + (size < 0x7c00U ? 0x38000000U : 0x70000000U));
        }
        return (value & 0x8000U) != 0 ? -result : result;
    }

    static void encode(const float* from, std::byte* to, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            const std::uint16_t half = encode_one(from[i]);
            std::memcpy(to + 2 * i, &half, 2);
        }
    }
    static void decode(const std::byte* from, float* to, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            std::uint16_t half = 0;
            std::memcpy(&half, from + 2 * i, 2);
            to[i] = decode_one(half);
        }
    }
    static void round(float* values, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i)
            values[i] = decode_one(encode_one(values[i]));
    }
};
static_assert(sw::WireCodec<Fp16>);

/// Bytes that a step moves between two ranks which look up 100 rows each.
template <class Wire>
std::int64_t moved() {
    sw::JaggedBatch<int> batch{.samples = 100, .features = 1};
    for (int row = 0; row < 100; ++row)
        batch.values.push_back(row);
    using Layer = sw::EmbeddingLayer<sw::Wire<Wire>>;
    const auto layer = Layer::blueprint({.hosts = 1, .ranks_per_host = 2}, {{.name = "item", .rows = 100, .dim = 64}});
    const sw::LayerCost cost = layer.predict_cost(std::vector{batch.view(), batch.view()});
    return cost.forward.total().host.payload + cost.backward.total().host.payload;
}

int main() {
    for (std::uint32_t half = 0; half < 0x10000U; ++half) {
        const float value = Fp16::decode_one(static_cast<std::uint16_t>(half));
        if (!std::isnan(value) && Fp16::encode_one(value) != half) require(false, "a half as it was");
    }
    std::mt19937 engine{1};
    for (int i = 0; i < 1'000'000; ++i) {
        const float value = std::ldexp(static_cast<float>(engine()), -20 - static_cast<int>(engine() % 32));
        const std::uint16_t half = Fp16::encode_one(value);
        const float error = std::fabs(Fp16::decode_one(half) - value);
        for (const int beside : {-1, 1})
            if (half + beside >= 0 && half + beside < 0x7c00 &&
                std::fabs(Fp16::decode_one(static_cast<std::uint16_t>(half + beside)) - value) < error)
                require(false, "the nearest half");
    }

    using InOrder = sw::Order<sw::Sample>;
    const auto expected = trained<sw::Wire<Fp16>, InOrder>(1);
    for (const int ranks : {2, 4})
        require(trained<sw::Wire<Fp16>, InOrder>(ranks) == expected, "the same bits on every number of ranks");
    require(trained<sw::Sharding<sw::Table>, sw::Wire<Fp16>, InOrder>(4) == expected, "and where tables are whole");
    require(trained<InOrder>(1) != expected, "rounded");

    std::printf("a step moves %d bytes, rounded %d\n", int(moved<sw::Fp32>()), int(moved<Fp16>()));
    require(moved<sw::Fp32>() - moved<Fp16>() == 2 * (50 * 64 * 2) * 2, "2 of 4 bytes for each element, both ways");
}
