// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/data/number_lines.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data/support.hpp"

namespace shardwise_test {
namespace {

using shardwise::NumberLines;
using Pair = std::array<std::int64_t, 2>;

std::vector<Pair> read_all(const std::vector<std::string>& files, bool more = true, std::size_t block = 1 << 16) {
    NumberLines lines{files, {"user", "item"}, more, block};
    std::vector<Pair> all;
    for (Pair pair{}; lines.next(pair);)
        all.push_back(pair);
    return all;
}

TEST(NumberLines, BeginWithNumbers) {
    const Folder folder;
    const std::string text = "1 2\n3\t4\r\n  5 \t 6  \n7 8 more, of any kind\n00 9223372036854775807";
    const std::vector<Pair> expected = {{1, 2}, {3, 4}, {5, 6}, {7, 8}, {0, std::numeric_limits<std::int64_t>::max()}};
    for (const std::size_t block : {1U, 3U, 100U}) {
        EXPECT_EQ(read_all({folder.write("a", text)}, true, block), expected);
        EXPECT_EQ(read_all({folder.write("a.gz", gzip(text))}, true, block), expected);
    }
    EXPECT_EQ(read_all({folder.write("b", "1 2"), folder.write("c", ""), folder.write("d", "3 4 \n")}, false),
              (std::vector<Pair>{{1, 2}, {3, 4}}));
}

TEST(NumberLines, SayWhatIsWrongAndWhere) {
    const Folder folder;
    const auto good = folder.write("good", "1 2\n");
    const auto refused = [&](const std::string& line, bool more = true) {
        const auto file = folder.write("bad", "1 2\n" + line + "\n");
        const std::string error = bad_input([&] { read_all({good, file}, more); });
        const std::string where = file + ", line 2";
        EXPECT_TRUE(error.starts_with(where)) << error;
        return error.substr(std::min(where.size(), error.size()));
    };
    const std::string expected =
        ", expected a whole number from 0 to 9223372036854775807 and a space, a tab or the line's end behind it";
    EXPECT_EQ(refused("x 2"), ", column 1 (user): 'x'" + expected);
    EXPECT_EQ(refused("1 -2"), ", column 2 (item): '-2'" + expected);
    EXPECT_EQ(refused("1 -0"), ", column 2 (item): '-0'" + expected);
    EXPECT_EQ(refused("1,2,3"), ", column 1 (user): '1,2,3'" + expected);
    EXPECT_EQ(refused("1 2.5 3"), ", column 2 (item): '2.5'" + expected);
    EXPECT_EQ(refused("1 +2"), ", column 2 (item): '+2'" + expected);
    EXPECT_EQ(refused("1 9223372036854775808"), ", column 2 (item): '9223372036854775808'" + expected);
    EXPECT_EQ(refused("1 a\x01z"), ", column 2 (item): 'a\\x01z'" + expected);
    EXPECT_EQ(refused("1"), ": 1 column, expected 2 columns: user item and whatever follows");
    EXPECT_EQ(refused(""), ": 0 columns, expected 2 columns: user item and whatever follows");
    EXPECT_EQ(refused("  "), ": 0 columns, expected 2 columns: user item and whatever follows");
    EXPECT_EQ(refused("1", false), ": 1 column, expected 2 columns: user item");
    EXPECT_EQ(refused("1 2 3", false), ", column 3: '3', expected 2 columns: user item");
}

TEST(NumberLines, SkipWithoutALook) {
    const Folder folder;
    NumberLines lines{{folder.write("a", "no\nnumbers\n3 4\n5 6\n")}, {"user", "item"}, false};
    Pair pair{};
    EXPECT_EQ(lines.skip(2), 2);
    ASSERT_TRUE(lines.next(pair));
    EXPECT_EQ(pair, (Pair{3, 4}));
    EXPECT_EQ(lines.skip(5), 1);
    EXPECT_FALSE(lines.next(pair));
    lines.rewind();
    EXPECT_EQ(lines.skip(3), 3);
    ASSERT_TRUE(lines.next(pair));
    EXPECT_EQ(pair, (Pair{5, 6}));
}

}  // namespace
}  // namespace shardwise_test
