// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardwise/checkpoint/safetensors.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// Weights that are no finite numbers are refused before a model has any of them.

namespace shardwise::inline SHARDWISE_ABI::detail {

/// A value that is NaN or infinite.
struct NotFinite {
    std::int64_t index;  ///< among all values
    float value;
};

/// The first of them in `floats`, whose own index counts from `first`.
[[nodiscard]] inline std::optional<NotFinite> first_not_finite(std::span<const std::byte> floats, std::int64_t first) {
    constexpr std::uint32_t exponent = 0x7f800000U;
    constexpr std::size_t block = 1024;  // a block is looked at as a whole: without branches, in vector registers
    const std::size_t count = floats.size() / sizeof(float);
    const auto bits_of = [&](std::size_t i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, floats.data() + i * sizeof bits, sizeof bits);
        return bits;
    };
    for (std::size_t begin = 0; begin < count; begin += block) {
        const std::size_t end = std::min(count, begin + block);
        std::uint32_t any = 0;
        for (std::size_t i = begin; i < end; ++i)
            any |= static_cast<std::uint32_t>((bits_of(i) & exponent) == exponent);
        for (std::size_t i = begin; any != 0 && i < end; ++i)
            if ((bits_of(i) & exponent) == exponent)
                return NotFinite{first + static_cast<std::int64_t>(i), std::bit_cast<float>(bits_of(i))};
    }
    return std::nullopt;
}

/// Says which weight it is. \param shape  of the tensor, as the file has it
[[noreturn]] inline void refuse_weight(const std::string& path, const std::string& name,
                                       const std::vector<std::int64_t>& shape, const NotFinite& one) {
    const std::int64_t columns = shape.size() < 2 ? 0 : std::max<std::int64_t>(1, shape.back());
    const std::string row = columns == 0 ? "" : concat({"row ", one.index / columns, ", "});
    const char* value = std::isnan(one.value) ? "nan" : one.value > 0 ? "inf" : "-inf";
    throw BadInput{
        concat({path, ": tensor '", name, "', ", row, "column ", columns == 0 ? one.index : one.index % columns,
                " (from 0): ", value, ", and weights are finite numbers"})};
}

/// Reads a tensor of weights and looks at each. Not collective. Memory: `chunk_bytes`.
/// \throws BadInput naming file, tensor, row and column of the first that is NaN or infinite
inline void require_finite(SafetensorsReader& file, const std::string& name, std::int64_t chunk_bytes) {
    const TensorInfo& tensor = file.tensors().at(name);
    const std::int64_t many = std::max<std::int64_t>(1, chunk_bytes / static_cast<std::int64_t>(sizeof(float)));
    std::vector<float> chunk;
    for (std::int64_t first = 0; first < tensor.elements(); first += many) {
        chunk.resize(static_cast<std::size_t>(std::min(many, tensor.elements() - first)));
        file.read(tensor, first, std::span{chunk});
        if (const auto bad = first_not_finite(std::as_bytes(std::span{chunk}), first))
            refuse_weight(file.path(), name, tensor.shape, *bad);
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI::detail
