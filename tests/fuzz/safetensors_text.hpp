// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "fuzz/fuzz.hpp"

/// \file
/// Safetensors files, mutated so that most of them have a header of the length that they say.

namespace fuzz {

inline std::string safetensors(std::string_view header, std::string_view data) {
    const std::uint64_t length = header.size();
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    return file.append(header).append(data);
}

/// A change in the header, with its length put right, or in the data, or anywhere.
inline std::size_t mutate_safetensors(Random& random, std::uint8_t* bytes, std::size_t size, std::size_t most) {
    std::uint64_t length = 0;
    if (size >= 8) std::memcpy(&length, bytes, 8);
    if (size < 8 || length > size - 8 || random.one_in(16)) return LLVMFuzzerMutate(bytes, size, most);
    const std::string_view file{reinterpret_cast<const char*>(bytes), size};
    std::string header{file.substr(8, length)};
    std::string data{file.substr(8 + length)};
    constexpr std::string_view tokens[] = {"\"dtype\":",
                                           "\"shape\":",
                                           "\"data_offsets\":",
                                           "\"__metadata__\":",
                                           "\"F32\"",
                                           "\"I64\"",
                                           "\"F16\"",
                                           "\"BF16\"",
                                           "\"F64\"",
                                           "\"BOOL\"",
                                           "[",
                                           "]",
                                           "{",
                                           "}",
                                           ",",
                                           ":",
                                           "\"",
                                           "[]",
                                           "{}",
                                           "[0,4]",
                                           "[0]",
                                           "-1",
                                           "1e3",
                                           "2.0",
                                           "null",
                                           "true",
                                           "9223372036854775807",
                                           "9223372036854775808",
                                           "18446744073709551616",
                                           "4611686018427387904",
                                           "\\u0000",
                                           "\\ud800",
                                           "\xff",
                                           "[[[[[[[[[",
                                           "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},",
                                           "\"b\":{\"dtype\":\"I64\",\"shape\":[0,3],\"data_offsets\":[0,0]},"};
    switch (random.below(8)) {
        case 0:
        case 1:
            header.insert(random.below(header.size() + 1), random.one_of(tokens));
            break;
        case 2: {  // a token in the place of another
            const std::size_t at = header.find(random.one_of(tokens), random.below(header.size() + 1));
            if (at != std::string::npos) header.replace(at, 1 + random.below(6), random.one_of(tokens));
            break;
        }
        case 3:  // a digit
            if (const std::size_t at = header.find_first_of("0123456789", random.below(header.size() + 1));
                at != std::string::npos)
                header[at] = "0123456789"[random.below(10)];
            break;
        case 4:
            data.resize(random.below(data.size() + 17));
            break;
        case 5:
            mutate(data);
            break;
        default:
            mutate(header);
    }
    return become(safetensors(header, data), bytes, most);
}

}  // namespace fuzz
