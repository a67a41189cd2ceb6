// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

#include "shardwise/core/config.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/quoted.hpp"

/// \file
/// One line of a Criteo click log: a label, 13 integers and 26 hexadecimal categories, separated by tabs.

namespace shardwise::inline SHARDWISE_ABI {

inline constexpr int criteo_integers = 13;    ///< columns of integers
inline constexpr int criteo_categories = 26;  ///< columns of categories
/// All columns: label, integers, categories.
inline constexpr int criteo_columns = 1 + criteo_integers + criteo_categories;

/// The name of column 1 to 40: label, I1 to I13, C1 to C26.
[[nodiscard]] inline std::string criteo_column_name(int column) {
    if (column == 1) return "label";
    if (column <= 1 + criteo_integers) return "I" + std::to_string(column - 1);
    return "C" + std::to_string(column - 1 - criteo_integers);
}

/// The values of one line.
struct CriteoLine {
    float label = 0;                                        ///< 0 or 1
    std::array<std::int64_t, criteo_integers> integers{};   ///< 0 where missing
    std::array<std::uint32_t, criteo_categories> values{};  ///< unspecified where missing
    std::uint32_t missing = 0;                              ///< bit f is set: category f has no value
};

namespace detail {

// Eight bytes of text, the first one lowest. Every field ends with a tab, so one load shows a field of up to eight
// characters whole; shifting '0' in below it makes its digits a number of exactly eight.
inline constexpr std::uint64_t ones = 0x0101010101010101;

inline std::uint64_t load_text(const char* text) noexcept {
    std::uint64_t word;
    std::memcpy(&word, text, sizeof word);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    return word;
}
// Characters before the first tab; 8 when there is none.
inline int length_before_tab(std::uint64_t word) noexcept {
    const std::uint64_t x = word ^ (ones * '\t');
    const std::uint64_t tab = (x - ones) & ~x & (ones << 7);
    return tab == 0 ? 8 : std::countr_zero(tab) / 8;
}
// 1 <= length <= 8
inline std::uint64_t right_align(std::uint64_t word, int length) noexcept {
    return length == 8 ? word : word << (64 - 8 * length) | (ones * '0') >> (8 * length);
}
inline bool eight_digits(std::uint64_t word) noexcept {
    return ((word & ones * 0xf0) | ((word + ones * 0x06) & ones * 0xf0) >> 4) == ones * 0x33;
}
inline std::uint64_t decimal_value(std::uint64_t word) noexcept {
    constexpr std::uint64_t mask = 0x000000ff000000ff;
    word = (word & ones * 0x0f) * 10 + ((word & ones * 0x0f) >> 8);
    return ((word & mask) * 0x000f424000000064 + (word >> 16 & mask) * 0x0000271000000001) >> 32;
}
// False unless all eight characters are hexadecimal digits.
inline bool hexadecimal_value(std::uint64_t word, std::uint32_t& value) noexcept {
    const std::uint64_t letter = word >> 6 & ones;  // one in the bytes that can only be a letter
    const std::uint64_t high = (word | letter << 5) & ones * 0xf0;
    const std::uint64_t low = word & ones * 0x0f;
    const std::uint64_t wrong = (high ^ (ones * 0x30 + letter * 0x30)) | ((low + ones * 6 + letter * 3) & ones << 4) |
                                (((low + letter * 15) & ones << 4) ^ letter << 4);
    std::uint64_t nibbles = low + letter * 9;
    nibbles = (nibbles << 4 | nibbles >> 8) & 0x00ff00ff00ff00ff;
    nibbles = (nibbles << 8 | nibbles >> 16) & 0x0000ffff0000ffff;
    value = static_cast<std::uint32_t>(nibbles << 16 | nibbles >> 32);
    return wrong == 0;
}

// Reads one integer field, moves `text` to the tab behind it.
inline bool parse_criteo_integer(const char*& text, std::int64_t& value) noexcept {
    const char* digits = text + (*text == '-' ? 1 : 0);
    std::uint64_t word = load_text(digits);
    const int length = length_before_tab(word);
    if (length == 8 && digits[8] != '\t') {
        const char* end = digits + 8;
        while (*end != '\t')
            ++end;
        const auto [stop, status] = std::from_chars(text, end, value);
        text = end;
        return status == std::errc{} && stop == end;
    }
    value = 0;
    const bool negative = digits != text;
    text = digits + length;
    if (length == 0) return !negative;
    word = right_align(word, length);
    value = static_cast<std::int64_t>(decimal_value(word));
    if (negative) value = -value;
    return eight_digits(word);
}

}  // namespace detail

/// Reads one line. The 16 bytes from `end` on must be readable; `*end` is overwritten.
/// \returns 0, or the number of a column (1 to 40) at which the line is wrong; see criteo_line_error()
/// Cost: no allocation; every byte is looked at about twice.
[[nodiscard]] inline int parse_criteo_line(const char* begin, char* end, CriteoLine& line) noexcept {
    *end = '\t';
    const char* text = begin;
    const auto label = static_cast<unsigned char>(*text - '0');
    if (label > 1 || text[1] != '\t') return 1;
    line.label = label;
    text += 1;
    for (int i = 0; i != criteo_integers; ++i) {
        if (text++ == end) return i + 1;
        if (!detail::parse_criteo_integer(text, line.integers[static_cast<std::size_t>(i)])) return i + 2;
    }
    line.missing = 0;
    for (int f = 0; f != criteo_categories; ++f) {
        if (text++ == end) return f + 1 + criteo_integers;
        const std::uint64_t word = detail::load_text(text);
        const int length = detail::length_before_tab(word);
        text += length;
        if (length == 0) {
            line.missing |= std::uint32_t{1} << f;
        } else if (*text != '\t' || !detail::hexadecimal_value(detail::right_align(word, length),
                                                               line.values[static_cast<std::size_t>(f)])) {
            return f + 2 + criteo_integers;
        }
    }
    return text == end ? 0 : criteo_columns;
}

/// Says what is wrong with a line that parse_criteo_line() refused at `column`: the number of columns where that is
/// not 40, else the column, its name, its value and what is expected.
[[nodiscard]] inline std::string criteo_line_error(std::string_view line, int column) {
    int columns = 1;
    std::size_t start = 0;
    for (std::size_t i = 0; i != line.size(); ++i) {
        if (line[i] != '\t') continue;
        if (++columns == column) start = i + 1;
    }
    if (columns != criteo_columns)
        return concat(
            {columns, (columns == 1 ? " column" : " columns"),
             ", expected 40 separated by tabs: a label, integers I1 to I13, hexadecimal categories C1 to C26"});
    const std::string_view value = line.substr(start, line.find('\t', start) - start);
    const char* expected = column == 1                     ? "expected 0 or 1"
                           : column <= 1 + criteo_integers ? "expected a 64-bit decimal integer or nothing"
                                                           : "expected 1 to 8 hexadecimal digits or nothing";
    return concat({"column ", column, " (", criteo_column_name(column), "): ", quoted(value), ", ", expected});
}

}  // namespace shardwise::inline SHARDWISE_ABI
