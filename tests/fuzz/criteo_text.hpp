// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <string_view>

#include "fuzz/fuzz.hpp"

/// \file
/// Valid and almost valid lines of click logs.

namespace fuzz {

inline std::string random_field(Random& random, std::string_view digits, std::size_t longest) {
    std::string text;
    for (std::size_t n = random.below(longest + 1); n != 0; --n)
        text += random.one_of(digits);
    return text;
}

/// A line of 40 columns; one in a few has a column that is at the edge of what is allowed.
inline std::string random_line(Random& random) {
    constexpr std::string_view edges[] = {"9223372036854775807",
                                          "9223372036854775808",
                                          "-9223372036854775808",
                                          "-9223372036854775809",
                                          "-",
                                          "--1",
                                          "-0",
                                          "+1",
                                          "00000000000000000000007",
                                          "12345678",
                                          "-12345678",
                                          "123456789",
                                          " 1",
                                          "1 ",
                                          "0x1",
                                          "ffffffff",
                                          "FFFFFFFF",
                                          "0ffffffff",
                                          "g",
                                          "/",
                                          ":",
                                          "@",
                                          "`",
                                          "G",
                                          "1234567\v",
                                          "\x80",
                                          "2",
                                          "\r",
                                          "1\r",
                                          "a\n0"};
    const bool brief = random.one_in(2);
    std::string line = random.one_in(2) ? "1" : "0";
    for (int i = 0; i != 13; ++i)
        line += (random.one_in(8) ? "\t-" : "\t") +
                (brief ? std::string{} : random_field(random, "0123456789", random.one_in(4) ? 20 : 8));
    for (int f = 0; f != 26; ++f)
        line += "\t" + (brief ? std::string{} : random_field(random, "0123456789abcdefABCDEF", 8));
    if (brief) std::erase(line, '-');
    if (random.one_in(3)) {
        std::size_t at = 0;
        for (std::size_t column = random.below(41); column != 0 && at != line.size(); --column)
            at = std::min(line.find('\t', at), line.size() - 1) + 1;
        const std::size_t end = std::min(line.find('\t', at), line.size());
        line.replace(at, end - at, random.one_of(edges));
    }
    return line;
}

}  // namespace fuzz
