// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/data/criteo_line.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "data/support.hpp"

namespace shardwise_test {
namespace {

using shardwise::CriteoLine;

Columns valid() {
    Columns columns = {"0"};
    for (int i = 1; i <= 13; ++i)
        columns.push_back(std::to_string(i));
    for (int f = 1; f <= 26; ++f)
        columns.push_back("abcdef" + std::to_string(10 + f));
    return columns;
}

struct Parsed {
    int column = 0;
    CriteoLine line;
    std::string error;
};

// Memory of exactly the size that is promised, so that a sanitizer sees a byte too much; what follows the line is
// what misleads most: digits and tabs.
Parsed parse(const std::string& text, const std::string& after = "\n1\t23\t456\t78\t9") {
    std::vector<char> memory(text.begin(), text.end());
    for (std::size_t i = 0; i != 16; ++i)
        memory.push_back(i < after.size() ? after[i] : '7');
    Parsed parsed;
    char* end = memory.data() + text.size();
    parsed.column = shardwise::parse_criteo_line(memory.data(), end, parsed.line);
    if (parsed.column != 0) parsed.error = shardwise::criteo_line_error({memory.data(), text.size()}, parsed.column);
    return parsed;
}

Parsed with(std::size_t column, const std::string& value) {
    Columns columns = valid();
    columns.at(column - 1) = value;
    return parse(join(columns));
}

TEST(CriteoLine, NamesItsColumns) {
    EXPECT_EQ(shardwise::criteo_column_name(1), "label");
    EXPECT_EQ(shardwise::criteo_column_name(2), "I1");
    EXPECT_EQ(shardwise::criteo_column_name(14), "I13");
    EXPECT_EQ(shardwise::criteo_column_name(15), "C1");
    EXPECT_EQ(shardwise::criteo_column_name(40), "C26");
}

TEST(CriteoLine, ReadsEveryValue) {
    const Parsed parsed = parse(join(valid()));
    ASSERT_EQ(parsed.column, 0);
    EXPECT_EQ(parsed.line.label, 0);
    EXPECT_EQ(parsed.line.missing, 0U);
    for (std::size_t i = 0; i != 13; ++i)
        EXPECT_EQ(parsed.line.integers[i], static_cast<std::int64_t>(i + 1));
    for (std::size_t f = 0; f != 26; ++f)
        EXPECT_EQ(parsed.line.values[f], std::stoul(valid()[14 + f], nullptr, 16)) << f;
}

TEST(CriteoLine, MissingIsNotZero) {
    for (std::size_t f = 0; f != 26; ++f) {
        EXPECT_EQ(with(15 + f, "").line.missing, std::uint32_t{1} << f);
        const Parsed zero = with(15 + f, "0");
        EXPECT_EQ(zero.column, 0);
        EXPECT_EQ(zero.line.missing, 0U);
        EXPECT_EQ(zero.line.values[f], 0U);
    }
    const Parsed empty = parse("1" + std::string(39, '\t'));
    ASSERT_EQ(empty.column, 0);
    EXPECT_EQ(empty.line.label, 1);
    EXPECT_EQ(empty.line.missing, (std::uint32_t{1} << 26) - 1);
    for (const auto integer : empty.line.integers)
        EXPECT_EQ(integer, 0);
}

TEST(CriteoLine, IntegersOfEveryLengthAndTheLimits) {
    std::string digits;
    for (int length = 1; length <= 18; ++length) {
        digits += static_cast<char>('0' + length % 10);
        for (const std::size_t column : {2U, 8U, 14U}) {
            const Parsed positive = with(column, digits);
            ASSERT_EQ(positive.column, 0) << digits;
            EXPECT_EQ(positive.line.integers[column - 2], std::stoll(digits));
            const Parsed negative = with(column, "-" + digits);
            ASSERT_EQ(negative.column, 0) << digits;
            EXPECT_EQ(negative.line.integers[column - 2], -std::stoll(digits));
        }
    }
    EXPECT_EQ(with(3, "9223372036854775807").line.integers[1], std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(with(3, "-9223372036854775808").line.integers[1], std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(with(3, "9223372036854775808").column, 3);
    EXPECT_EQ(with(3, "-9223372036854775809").column, 3);
    EXPECT_EQ(with(3, "00000000000000000000012").line.integers[1], 12);
    EXPECT_EQ(with(3, "-0").line.integers[1], 0);
}

// Every byte at every place of a field of every length, against a definition of a digit.
TEST(CriteoLine, AcceptsDigitsAndNothingElse) {
    const std::string hex = "0123456789abcdefABCDEF";
    for (std::size_t length = 1; length <= 10; ++length) {
        for (std::size_t place = 0; place != length; ++place) {
            for (int byte = 0; byte != 256; ++byte) {
                const char c = static_cast<char>(byte);
                if (c == '\t') continue;
                std::string value(length, '5');
                value[place] = c;
                const bool decimal = c >= '0' && c <= '9';
                const bool minus = c == '-' && place == 0 && length > 1;
                EXPECT_EQ(with(7, value).column, decimal || minus ? 0 : 7)
                    << byte << " at " << place << " of " << length;
                EXPECT_EQ(with(20, value).column, hex.find(c) != std::string::npos && length <= 8 ? 0 : 20)
                    << byte << " at " << place << " of " << length;
            }
        }
    }
}

TEST(CriteoLine, HexadecimalDigitsHaveTheirValueAtEveryPlace) {
    const std::string hex = "0123456789abcdefABCDEF";
    for (std::size_t length = 1; length <= 8; ++length)
        for (std::size_t place = 0; place != length; ++place)
            for (const char c : hex) {
                std::string value(length, '0');
                value[place] = c;
                EXPECT_EQ(with(40, value).line.values[25], std::stoul(value, nullptr, 16)) << value;
            }
}

TEST(CriteoLine, LabelsAreZeroAndOne) {
    EXPECT_EQ(with(1, "1").line.label, 1);
    EXPECT_EQ(with(1, "0").line.label, 0);
    for (const char* label : {"", "2", "-1", "NaN", "nan", "1.0", "0.5", "01", "10", " 1", "1 ", "/", "true"}) {
        const Parsed parsed = with(1, label);
        EXPECT_EQ(parsed.column, 1);
        EXPECT_EQ(parsed.error, std::string{"column 1 (label): '"} + label + "', expected 0 or 1");
    }
}

TEST(CriteoLine, SaysWhichValueIsWrong) {
    EXPECT_EQ(with(5, "12x").error, "column 5 (I4): '12x', expected a 64-bit decimal integer or nothing");
    EXPECT_EQ(with(14, "-").error, "column 14 (I13): '-', expected a 64-bit decimal integer or nothing");
    EXPECT_EQ(with(2, "1.5").error, "column 2 (I1): '1.5', expected a 64-bit decimal integer or nothing");
    EXPECT_EQ(with(2, "+1").error, "column 2 (I1): '+1', expected a 64-bit decimal integer or nothing");
    EXPECT_EQ(with(2, "--1").error, "column 2 (I1): '--1', expected a 64-bit decimal integer or nothing");
    EXPECT_EQ(with(15, "0x12").error, "column 15 (C1): '0x12', expected 1 to 8 hexadecimal digits or nothing");
    EXPECT_EQ(with(40, "123456789").error,
              "column 40 (C26): '123456789', expected 1 to 8 hexadecimal digits or nothing");
    EXPECT_EQ(with(30, "g").error, "column 30 (C16): 'g', expected 1 to 8 hexadecimal digits or nothing");
    EXPECT_EQ(with(30, std::string{"a\0\xff", 3}).error,
              "column 30 (C16): 'a\\x00\\xff', expected 1 to 8 hexadecimal digits or nothing");
    EXPECT_EQ(with(30, std::string(100, 'z')).error,
              "column 30 (C16): '" + std::string(40, 'z') + "...', expected 1 to 8 hexadecimal digits or nothing");
}

TEST(CriteoLine, CountsColumnsFirst) {
    const std::string expected =
        ", expected 40 separated by tabs: a label, integers I1 to I13, hexadecimal categories C1 to C26";
    for (std::size_t count = 1; count <= 60; ++count) {
        if (count == 40) continue;
        Columns columns = valid();
        columns.resize(count, "1");
        EXPECT_EQ(parse(join(columns)).error, std::to_string(count) + (count == 1 ? " column" : " columns") + expected);
        EXPECT_TRUE(parse(std::string(count - 1, '\t')).error.starts_with(std::to_string(count) + " column"));
    }
    // One that is missing in the middle shifts a category among the integers: still the columns are what is wrong.
    Columns columns = valid();
    columns.erase(columns.begin() + 4);
    EXPECT_EQ(parse(join(columns)).error, "39 columns" + expected);
    EXPECT_EQ(parse("").error, "1 column" + expected);
    EXPECT_EQ(parse("0").error, "1 column" + expected);
}

// Whatever stands in memory behind a line, it is not read as part of it.
TEST(CriteoLine, IgnoresWhatFollows) {
    Columns columns = valid();
    columns.back() = "1f";
    for (const std::string after : {"\n", "\nffffffffffffffff", "\n\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t", "ffffffffffffffff"})
        EXPECT_EQ(parse(join(columns), after).line.values[25], 0x1fU);
}

RC_GTEST_PROP(CriteoLine, AgreesWithTheNaiveReading, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    const Columns columns = random_columns(random);
    const Parsed parsed = parse(join(columns));
    RC_ASSERT(parsed.column == 0);
    RC_ASSERT(parsed.line.label == std::stof(columns[0]));
    for (std::size_t i = 0; i != 13; ++i)
        RC_ASSERT(parsed.line.integers[i] == (columns[1 + i].empty() ? 0 : std::stoll(columns[1 + i])));
    for (std::size_t f = 0; f != 26; ++f) {
        const std::string& text = columns[14 + f];
        RC_ASSERT((parsed.line.missing >> f & 1) == (text.empty() ? 1U : 0U));
        if (!text.empty()) RC_ASSERT(parsed.line.values[f] == std::stoul(text, nullptr, 16));
    }
}

// Damage at one byte is either still a valid line, or refused with a message: never read past the line.
RC_GTEST_PROP(CriteoLine, DamageIsFoundOrHarmless, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    std::string text = join(random_columns(random));
    text[random() % text.size()] = "\tg-0 \n\xff"[random() % 7];
    const Parsed parsed = parse(text);
    RC_ASSERT((parsed.column == 0) == parsed.error.empty());
    RC_ASSERT(parsed.column >= 0 && parsed.column <= 40);
}

}  // namespace
}  // namespace shardwise_test
