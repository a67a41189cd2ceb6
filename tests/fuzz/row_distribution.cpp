// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// read_row_distribution over any bytes: BadInput that names the file, and the first wrong line where there is one, or
/// the rows that a reading by strtod finds. Then row_law of the same bytes, where they are a law of few rows: BadInput
/// that names the law, or so many rows by falling p.

#include "shardwise/planning/row_distribution.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "fuzz/kernel_file.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/planning/row_law.hpp"

namespace {

using fuzz::require;
namespace sw = shardwise;

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

std::vector<std::string> words_of(std::string_view line) {
    std::vector<std::string> words;
    bool inside = false;
    for (const char c : line) {
        if (!is_blank(c) && !inside) words.emplace_back();
        inside = !is_blank(c);
        if (inside) words.back() += c;
    }
    return words;
}

/// A whole number above 0 that fits; nothing else.
std::optional<std::int64_t> rows_of(const std::string& word) {
    if (word.empty() || word.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
    errno = 0;
    const long long rows = std::strtoll(word.c_str(), nullptr, 10);
    return errno != 0 || rows < 1 ? std::nullopt : std::optional<std::int64_t>{rows};
}

/// A finite number of at least 0, in decimal and without a plus.
std::optional<double> p_of(const std::string& word) {
    if (word.empty() || word.find_first_not_of("0123456789.eE+-") != std::string::npos || word[0] == '+')
        return std::nullopt;
    char* end = nullptr;
    const double p = std::strtod(word.c_str(), &end);
    if (end != word.c_str() + word.size() || !std::isfinite(p) || p < 0) return std::nullopt;
    return p;
}

/// Whether it may be read as 0 as well as refused: too small a number.
bool too_small(const std::string& word) {
    const std::optional<double> p = p_of(word);
    return p && *p < 1e-300 && word.find_first_of("123456789") < word.find_first_of("eE");
}

void law(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return;
    const std::string first{text.substr(colon + 1, text.find(':', colon + 1) - colon - 1)};
    if (!(std::abs(std::strtod(first.c_str(), nullptr)) < 5000)) return;  // few rows
    try {
        const sw::RowDistribution found = sw::row_law(text);
        require(static_cast<double>(found.rows()) == std::strtod(first.c_str(), nullptr), "other rows than E");
        for (std::size_t i = 1; i < found.runs().size(); ++i)
            require(found.runs()[i].p < found.runs()[i - 1].p, "p does not fall");
    } catch (const sw::BadInput& error) {
        require(std::string_view{error.what()}.starts_with("law '") ||
                    std::string_view{error.what()}.starts_with("a distribution of rows: "),
                "an error without the law:", error.what());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    static fuzz::KernelFile file;
    const std::string_view text{reinterpret_cast<const char*>(bytes), size};
    law(text);
    std::map<double, std::int64_t> expected;
    std::int64_t wrong = 0;  // the first line that is
    bool open = false;       // whether a number is too small to say
    bool overflow = false;
    std::int64_t number = 0;
    for (std::size_t at = 0; at < text.size() && wrong == 0;) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::vector<std::string> words = words_of(text.substr(at, end - at));
        at = end + 1;
        ++number;
        if (words.empty()) continue;
        const auto rows = rows_of(words[0]);
        const auto p = words.size() == 2 ? p_of(words[1]) : std::nullopt;
        if (!rows || !p)
            wrong = number;
        else if (too_small(words[1]))
            open = true;
        else
            overflow |= __builtin_add_overflow(expected[*p], *rows, &expected[*p]);
    }
    if (open) return 0;
    file.write(text);
    try {
        const sw::RowDistribution found = sw::read_row_distribution(file.path());
        require(wrong == 0 && !overflow, "a file was read that is wrong");
        require(found.runs().size() == expected.size(), "other runs");
        auto run = found.runs().rbegin();
        for (const auto& [p, rows] : expected) {
            require(run->p == p && run->rows == rows, "another run");
            ++run;
        }
    } catch (const sw::BadInput& error) {
        const std::string start = file.path() + (wrong == 0 ? ": " : ", line " + std::to_string(wrong) + ": ");
        require(std::string_view{error.what()}.starts_with(start), "an error without its place:", error.what());
        double lookups = 0;
        double rows = 0;
        for (const auto& [p, count] : expected) {
            lookups += p * static_cast<double>(count);
            rows += static_cast<double>(count);
        }
        require(wrong != 0 || overflow || rows >= 0x1p62 || !(lookups > 0) || !std::isfinite(lookups),
                "a right file was refused:", error.what());
    }
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    fuzz::Random random{seed};
    if (!random.one_in(3)) return LLVMFuzzerMutate(data, size, most);
    std::string text;
    if (random.one_in(3)) {
        static const std::vector<std::string> laws{"slopes:900:10:40:300:0.25:0.5:1:1.1:0.9",
                                                   "zipf_mandelbrot:500:0.9:7:3", "zipf:400:1.1:3",
                                                   "exponential:300:20:2", "half_normal:200:30:1"};
        text = random.one_of(laws);
    } else {
        for (std::size_t lines = 1 + random.below(6); lines > 0; --lines) {
            text += std::to_string(1 + random.below(9)) + (random.one_in(4) ? "\t " : " ");
            text += random.one_in(3) ? std::to_string(random.below(4)) : "0." + std::to_string(random.below(100));
            text += random.one_in(6) ? "e-3\r\n" : random.one_in(9) ? "\n\n" : "\n";
        }
    }
    if (random.one_in(2)) fuzz::mutate(text);
    return fuzz::become(text, data, most);
}
