// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// parse_criteo_line and criteo_line_error against a parser that looks at one character after the other.

#include "shardwise/data/criteo_line.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/criteo_text.hpp"
#include "fuzz/fuzz.hpp"

namespace {

using fuzz::require;
namespace sw = shardwise;

bool naive_integer(std::string_view text, std::int64_t& value) {
    value = 0;
    if (text.empty()) return true;
    const bool negative = text[0] == '-';
    if (negative) text.remove_prefix(1);
    if (text.empty()) return false;
    const __int128 most = __int128{std::numeric_limits<std::int64_t>::max()} + (negative ? 1 : 0);
    __int128 sum = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return false;
        sum = std::min(sum * 10 + (c - '0'), most + 1);
    }
    value = static_cast<std::int64_t>(negative ? -sum : sum);
    return sum <= most;
}

bool naive_category(std::string_view text, std::uint32_t& value) {
    value = 0;
    for (const char c : text) {
        const std::size_t digit = std::string_view{"0123456789abcdef0123456789ABCDEF"}.find(c);
        if (digit == std::string_view::npos) return false;
        value = value * 16 + static_cast<std::uint32_t>(digit % 16);
    }
    return text.size() <= 8;
}

/// The number of columns where that is not 40; else the first that is wrong; else all values.
struct Naive {
    std::size_t columns = 1;
    int wrong = 0;
    sw::CriteoLine line;

    explicit Naive(std::string_view text) {
        std::vector<std::string_view> fields;
        for (std::size_t start = 0, end = 0; end != std::string_view::npos; start = end + 1) {
            end = text.find('\t', start);
            fields.push_back(text.substr(start, end - start));
        }
        columns = fields.size();
        if (columns != 40) return;
        line.label = fields[0] == "1" ? 1 : 0;
        if (fields[0] != "0" && fields[0] != "1") wrong = 1;
        for (std::size_t c = 1; c != 40 && wrong == 0; ++c) {
            const bool right = c <= 13 ? naive_integer(fields[c], line.integers[c - 1])
                                       : naive_category(fields[c], line.values[c - 14]);
            if (!right) wrong = static_cast<int>(c) + 1;
            if (c > 13 && fields[c].empty()) line.missing |= 1U << (c - 14);
        }
    }
};

void check(std::string_view text, std::string_view after) {
    // Memory of exactly the size that is promised.
    const std::unique_ptr<char[]> memory{new char[text.size() + 16]};
    std::copy(text.begin(), text.end(), memory.get());
    std::copy(after.begin(), after.begin() + 16, memory.get() + text.size());
    sw::CriteoLine line;
    const int column = sw::parse_criteo_line(memory.get(), memory.get() + text.size(), line);
    const Naive naive{text};
    require((column == 0) == (naive.columns == 40 && naive.wrong == 0), "accepted or refused otherwise");
    if (column != 0) {
        require(column > 0 && column <= 40, "no column");
        const std::string error = sw::criteo_line_error(text, column);
        const std::string expected =
            naive.columns != 40
                ? std::to_string(naive.columns) + (naive.columns == 1 ? " column," : " columns,")
                : "column " + std::to_string(naive.wrong) + " (" + sw::criteo_column_name(naive.wrong) + "): '";
        require(error.starts_with(expected), "another error:", error + ", expected " + expected);
        for (const char c : error)
            require(c >= ' ' && c <= '~', "an error that cannot be printed");
        return;
    }
    require(line.label == naive.line.label, "another label");
    require(line.integers == naive.line.integers, "another integer");
    require(line.missing == naive.line.missing, "another category is missing");
    for (std::size_t f = 0; f != 26; ++f)
        require((line.missing >> f & 1) != 0 || line.values[f] == naive.line.values[f], "another category");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    check(text, size % 2 == 0 ? "1234567890123456" : "\n1\t23\t456\t78\t9abcd");
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    fuzz::Random random{seed};
    if (random.one_in(8)) return fuzz::become(fuzz::random_line(random), data, most);
    if (size < most && random.one_in(8)) {  // one column more
        const std::size_t at = random.below(size + 1);
        std::memmove(data + at + 1, data + at, size - at);
        data[at] = '\t';
        return size + 1;
    }
    return LLVMFuzzerMutate(data, size, most);
}
