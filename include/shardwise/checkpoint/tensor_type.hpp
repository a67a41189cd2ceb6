// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardwise/comm/wire.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/half.hpp"

/// \file
/// Types and shapes of the tensors in safetensors files.

namespace shardwise::inline SHARDWISE_ABI {

/// The types of elements that are read here: F32 and I64, which are written too, and F16 and BF16, which become float.
/// Tensors of any `other` type may stand in a file; nothing reads them.
enum class TensorType : std::uint8_t { f32, i64, f16, bf16, other };

/// Bytes of an element; of another type it is not known.
[[nodiscard]] constexpr std::int64_t element_bytes(TensorType type) noexcept {
    return type == TensorType::other ? 0 : type == TensorType::i64 ? 8 : type == TensorType::f32 ? 4 : 2;
}
/// "F32", as the format spells it.
[[nodiscard]] constexpr const char* type_name(TensorType type) noexcept {
    constexpr const char* names[] = {"F32", "I64", "F16", "BF16", "another type"};
    return names[static_cast<std::size_t>(type)];
}
/// The type of that name, as files have it.
[[nodiscard]] inline TensorType tensor_type_of(const std::string& name) noexcept {
    for (const TensorType type : {TensorType::f32, TensorType::i64, TensorType::f16, TensorType::bf16})
        if (name == type_name(type)) return type;
    return TensorType::other;
}

/// "(3, 4)"
[[nodiscard]] inline std::string shape_text(const std::vector<std::int64_t>& shape) {
    std::string text = "(";
    for (std::size_t i = 0; i < shape.size(); ++i)
        text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    return text + (shape.size() == 1 ? ",)" : ")");
}

/// How many elements a tensor of that shape has; nothing for a negative size, and for more than any file has.
[[nodiscard]] inline std::optional<std::int64_t> elements_of(const std::vector<std::int64_t>& shape) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 8;
    std::int64_t elements = 1;
    for (const std::int64_t size : shape) {
        if (size < 0 || (size != 0 && elements > most / size)) return std::nullopt;
        elements *= size;
    }
    return elements;
}

/// One tensor of a file. Elements lie row by row.
struct TensorInfo {
    TensorType type = TensorType::f32;
    std::string dtype;  ///< as the file spells the type
    std::vector<std::int64_t> shape;
    std::int64_t begin = 0;  ///< first byte, counted from the end of the header
    std::int64_t bytes = 0;

    [[nodiscard]] std::int64_t elements() const { return elements_of(shape).value(); }
};

/// Makes floats of numbers of 16 bits, which lie in the last half of the memory of `values`. All of them are floats,
/// too, so that nothing is rounded. \param type  f16 or bf16
inline void widen_in_place(TensorType type, std::span<float> values) noexcept {
    const std::byte* const narrow = std::as_bytes(values).data() + values.size() * sizeof(std::uint16_t);
    for (std::size_t i = 0; i < values.size(); ++i) {  // a float ends before the next narrow one begins
        std::uint16_t bits = 0;
        std::memcpy(&bits, narrow + i * sizeof bits, sizeof bits);
        values[i] = type == TensorType::f16 ? float_of_half(bits) : Bf16::decode_one(bits);
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
