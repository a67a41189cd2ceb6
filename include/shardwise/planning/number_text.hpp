// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "shardwise/core/config.hpp"

/// \file
/// Numbers from text and to text.

namespace shardwise::inline SHARDWISE_ABI::detail {

/// Whether the whole word is a number of the type, and then the number.
template <class T>
[[nodiscard]] bool read_number(std::string_view word, T& number) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    return error == std::errc{} && end == word.data() + word.size();
}

/// A number in as few characters as say it: small ones do not become 0.000000.
[[nodiscard]] inline std::string written(double number) {
    std::array<char, 32> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

}  // namespace shardwise::inline SHARDWISE_ABI::detail
