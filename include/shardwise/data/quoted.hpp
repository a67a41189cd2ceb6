// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "shardwise/core/config.hpp"

/// \file
/// Values of files in messages.

namespace shardwise::inline SHARDWISE_ABI {

/// The value in quotes: what is no printable ASCII as `\x1f`, and at most 40 characters of it.
[[nodiscard]] inline std::string quoted(std::string_view value) {
    constexpr std::size_t shown = 40;
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text = "'";
    for (const char c : value.substr(0, shown)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7f)
            text += c;
        else
            text.append("\\x").append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
    }
    return text + (value.size() > shown ? "...'" : "'");
}

}  // namespace shardwise::inline SHARDWISE_ABI
