// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// SafetensorsReader over any bytes: BadInput, or tensors that lie in the file one behind the other and are read as the
/// bytes that stand there.

#include "shardwise/checkpoint/safetensors.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "fuzz/kernel_file.hpp"
#include "fuzz/safetensors_text.hpp"

namespace {

using fuzz::require;
namespace sw = shardwise;

/// The bits of a float that a number of 16 bits is, found by another way than the library's.
std::uint32_t widened(sw::TensorType type, std::uint32_t bits) {
    if (type == sw::TensorType::bf16) return bits << 16U;
    const std::uint32_t sign = bits >> 15U << 31U;
    std::uint32_t exponent = bits >> 10U & 31U;
    std::uint32_t fraction = bits & 0x3ffU;
    if (exponent == 31) return sign | 0x7f800000U | fraction << 13U;
    if (exponent == 0) {
        if (fraction == 0) return sign;
        for (exponent = 1; (fraction & 0x400U) == 0; fraction <<= 1U)
            --exponent;  // below 0 it wraps around, and so it does back
    }
    return sign | (exponent + 112U) << 23U | (fraction & 0x3ffU) << 13U;
}

template <class T>
void check_values(sw::SafetensorsReader& reader, const sw::TensorInfo& info, std::string_view data) {
    static std::vector<T> values;
    const auto width = static_cast<std::size_t>(sw::element_bytes(info.type));
    const std::int64_t first = info.elements() / 3;  // in two pieces
    for (const auto& [begin, end] : {std::pair{std::int64_t{0}, first}, std::pair{first, info.elements()}}) {
        values.assign(static_cast<std::size_t>(end - begin), T{});
        reader.read(info, begin, std::span{values});
        const char* const from = data.data() + info.begin + static_cast<std::size_t>(begin) * width;
        if (width == sizeof(T)) {
            require(values.empty() || std::memcmp(values.data(), from, values.size() * sizeof(T)) == 0, "other values");
            continue;
        }
        for (std::size_t i = 0; i != values.size(); ++i) {
            std::uint16_t narrow = 0;
            std::memcpy(&narrow, from + i * width, width);
            const std::uint32_t expected = widened(info.type, narrow);
            require(std::memcmp(&values[i], &expected, sizeof expected) == 0, "other values of 16 bits");
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    static fuzz::KernelFile file;
    const std::string_view all{reinterpret_cast<const char*>(bytes), size};
    file.write(all);
    std::optional<sw::SafetensorsReader> reader;
    try {
        reader.emplace(file.path());
    } catch (const sw::BadInput& error) {
        require(std::string_view{error.what()}.starts_with(file.path() + ": "),
                "an error without the file:", error.what());
        return 0;
    }
    std::uint64_t length = 0;
    require(size >= 8, "a file without a length");
    std::memcpy(&length, bytes, 8);
    require(length <= size - 8, "a header that is longer than the file");
    const std::string_view data = all.substr(8 + length);
    std::vector<std::pair<std::int64_t, std::int64_t>> places;
    for (const auto& [name, info] : reader->tensors()) {
        __int128 elements = 1;
        for (const std::int64_t of_axis : info.shape) {
            require(of_axis >= 0, "a negative size");
            elements *= of_axis;
            require(elements <= __int128{1} << 64, "a size that no file has");
        }
        require(elements == info.elements(), "another number of elements");
        places.emplace_back(info.begin, info.begin + info.bytes);
        if (info.type == sw::TensorType::other) {  // nobody's, and refused to whoever asks for it
            for (const sw::TensorType type : {sw::TensorType::f32, sw::TensorType::i64}) {
                bool refused = false;
                try {
                    static_cast<void>(reader->require(name, type, info.shape));
                } catch (const sw::BadInput&) {
                    refused = true;
                }
                require(refused, "a tensor of a type that is not read here");
            }
            continue;
        }
        require(info.bytes == info.elements() * sw::element_bytes(info.type), "another number of bytes");
        require(&reader->require(name, info.type, info.shape) == &info, "another tensor");
        if (info.type == sw::TensorType::i64) {
            check_values<std::int64_t>(*reader, info, data);
        } else {
            require(&reader->require(name, sw::TensorType::f32, info.shape) == &info, "a float that is none");
            check_values<float>(*reader, info, data);
        }
    }
    std::sort(places.begin(), places.end());
    std::int64_t end = 0;
    for (const auto& [first, last] : places) {
        if (first == last) continue;
        require(first == end, "a hole, or two tensors that overlap");
        end = last;
    }
    require(end == static_cast<std::int64_t>(data.size()), "data that belongs to no tensor");
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* bytes, std::size_t size, std::size_t most, unsigned seed) {
    fuzz::Random random{seed};
    if (size < 8 || random.one_in(32)) {
        std::string header = random.one_in(3) ? R"({"__metadata__":{"format":"pt"})" : "{";
        std::size_t end = 0;
        for (std::size_t t = 0, tensors = random.below(4); t != tensors; ++t) {
            constexpr std::pair<const char*, std::size_t> types[] = {{"F32", 4},  {"F32", 4}, {"I64", 8},    {"F16", 2},
                                                                     {"BF16", 2}, {"I8", 1},  {"F8_E4M3", 1}};
            const auto& [type, width] = random.one_of(types);
            const std::size_t rows = random.below(4);
            const std::size_t columns = random.below(4);
            const std::size_t begin = std::exchange(end, end + rows * columns * width);
            header += (header.size() == 1 ? "\"" : ",\"") + std::string(1, static_cast<char>('a' + t)) +
                      R"(":{"dtype":")" + type + R"(","shape":[)" + std::to_string(rows) + "," +
                      std::to_string(columns) + R"(],"data_offsets":[)" + std::to_string(begin) + "," +
                      std::to_string(end) + "]}";
        }
        std::string data(end, 'x');
        for (std::size_t i = 0; i != end; ++i)
            data[i] = static_cast<char>(random.below(256));
        return fuzz::become(fuzz::safetensors(header + "}", data), bytes, most);
    }
    return fuzz::mutate_safetensors(random, bytes, size, most);
}
