// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/data/lines.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "data/support.hpp"

namespace shardwise_test {
namespace {

using shardwise::LineReader;
using Lines = std::vector<std::string>;

Lines read_all(LineReader& reader) {
    Lines lines;
    for (LineReader::Line line; reader.next(line);) {
        lines.emplace_back(line.begin, line.end);
        *line.end = '\t';  // as the contract allows
    }
    return lines;
}
Lines read_all(const std::vector<std::string>& files, std::size_t block = 1 << 16) {
    LineReader reader{files, block};
    return read_all(reader);
}

std::string random_text(std::mt19937_64& random, std::size_t size) {
    std::string text;
    while (text.size() < size)
        text += "ab\t\n\n\rc"[random() % 7];
    return text;
}
// Ends with LF, CR LF or the file's end.
Lines naive(const std::string& text) {
    Lines lines;
    for (std::size_t start = 0; start < text.size();) {
        const std::size_t end = std::min(text.find('\n', start), text.size());
        std::string line = text.substr(start, end - start);
        if (line.ends_with('\r')) line.pop_back();
        lines.push_back(line);
        start = end + 1;
    }
    return lines;
}

TEST(Lines, EndWithALineFeedOrWithBothOrWithTheFile) {
    const Folder folder;
    const auto file = folder.write("a.txt", "one\ntwo\r\n\n\r\nfive\r\r\nsix");
    for (const std::size_t block : {1U, 2U, 3U, 7U, 64U})
        EXPECT_EQ(read_all({file}, block), (Lines{"one", "two", "", "", "five\r", "six"}));
    EXPECT_EQ(read_all({folder.write("b.txt", "one\r")}), Lines{"one"});
    EXPECT_EQ(read_all({folder.write("c.txt", "one\n")}), Lines{"one"});
    EXPECT_EQ(read_all({folder.write("d.txt", "\n")}), Lines{""});
    EXPECT_EQ(read_all({folder.write("e.txt", "")}), Lines{});
}

TEST(Lines, AFileEndsItsLastLine) {
    const Folder folder;
    const std::vector<std::string> files = {folder.write("a", "1\n2"), folder.write("b", ""), folder.write("c", "3"),
                                            folder.write("d", "\n4\n")};
    for (const std::size_t block : {1U, 2U, 100U}) {
        LineReader reader{files, block};
        EXPECT_EQ(read_all(reader), (Lines{"1", "2", "3", "", "4"}));
        LineReader::Line line;
        EXPECT_FALSE(reader.next(line));
        EXPECT_EQ(reader.skip(5), 0);
        reader.rewind();
        EXPECT_EQ(read_all(reader), (Lines{"1", "2", "3", "", "4"}));
    }
}

TEST(Lines, KnowWhereTheyStand) {
    const Folder folder;
    const std::vector<std::string> files = {folder.write("a", "1\n2"), folder.write("b", ""),
                                            folder.write("c", "3\n4\n")};
    LineReader reader{files, 2};
    LineReader::Line line;
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(reader.file(), files[0]);
    EXPECT_EQ(reader.line(), 1);
    EXPECT_EQ(reader.skip(2), 2);
    EXPECT_EQ(reader.file(), files[2]);
    EXPECT_EQ(reader.line(), 1);
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(std::string(line.begin, line.end), "4");
    EXPECT_EQ(reader.line(), 2);
    EXPECT_FALSE(reader.next(line));
    EXPECT_EQ(reader.file(), files[2]);
    reader.rewind();
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(reader.file(), files[0]);
    EXPECT_EQ(reader.line(), 1);
}

RC_GTEST_PROP(Lines, BlocksGzipAndSkippingMakeNoDifference, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    const Folder folder;
    Lines expected;
    std::vector<std::string> files;
    for (std::uint64_t count = 1 + random() % 4; count != 0; --count) {
        const std::string text = random_text(random, random() % 200);
        const Lines lines = naive(text);
        expected.insert(expected.end(), lines.begin(), lines.end());
        // As it is, or as one gzip file of several members.
        std::string bytes = text;
        if (random() % 2 == 0) {
            const std::size_t cut = random() % (text.size() + 1);
            bytes = gzip(text.substr(0, cut)) + gzip("") + gzip(text.substr(cut)) + std::string(random() % 3, '\0');
        }
        files.push_back(folder.write("file" + std::to_string(count), bytes));
    }
    LineReader reader{files, 1 + random() % 300};
    Lines read;
    for (std::size_t at = 0;;) {
        const std::size_t skip = random() % 4;
        const auto skipped = static_cast<std::size_t>(reader.skip(static_cast<std::int64_t>(skip)));
        RC_ASSERT(skipped == std::min(skip, expected.size() - at));
        at += skipped;
        LineReader::Line line;
        if (!reader.next(line)) {
            RC_ASSERT(at == expected.size());
            break;
        }
        RC_ASSERT(at < expected.size());
        RC_ASSERT(std::string(line.begin, line.end) == expected[at++]);
    }
}

TEST(Lines, GzipIsKnownByItsContent) {
    const Folder folder;
    const std::string text = "one\ntwo\n";
    EXPECT_EQ(read_all({folder.write("packed.gz", gzip(text))}), (Lines{"one", "two"}));
    EXPECT_EQ(read_all({folder.write("packed.tsv", gzip(text))}), (Lines{"one", "two"}));
    EXPECT_EQ(read_all({folder.write("empty.gz", gzip(""))}), Lines{});
}

TEST(Lines, LargeGzipEqualsPlain) {
    std::mt19937_64 random{7};
    const std::string text = random_text(random, 3 << 20);
    const Folder folder;
    const auto packed = folder.write("a.gz", gzip(text.substr(0, 1 << 20)) + gzip(text.substr(1 << 20)));
    EXPECT_EQ(read_all({packed}), naive(text));
    EXPECT_EQ(read_all({folder.write("a", text)}, 1000), naive(text));
}

TEST(Lines, ATruncatedGzipIsAnErrorWhereverItEnds) {
    const Folder folder;
    const std::string packed = gzip("first\nsecond\n");
    for (std::size_t size = 2; size != packed.size(); ++size) {
        const auto file = folder.write("a.gz", packed.substr(0, size));
        const std::string error = bad_input([&] { read_all({file}, 3); });
        EXPECT_TRUE(error.starts_with(file + ", line ")) << error;
        EXPECT_TRUE(error.ends_with(": the gzip data ends too early: the file is truncated")) << error;
    }
    // The lines before are read, and the one that is not whole is named.
    LineReader reader{{folder.write("b.gz", packed.substr(0, packed.size() - 1))}};
    LineReader::Line line;
    EXPECT_EQ(reader.skip(2), 2);
    EXPECT_NE(bad_input([&] { reader.next(line); }).find("b.gz, line 3: "), std::string::npos);
    // So is a second member that is not whole.
    const auto second = folder.write("c.gz", packed + packed.substr(0, 5));
    EXPECT_NE(bad_input([&] { read_all({second}); }).find("truncated"), std::string::npos);
}

// All that can be unpacked is, with any block: zlib may hold bytes back for which there was no room.
TEST(Lines, ATruncatedGzipGivesTheSameBytesWithAnyBlock) {
    const Folder folder;
    const std::string packed = gzip("aaaaaaaaaaaaaaaaaaaaaaaaaaaa\nb\nab\nba\nabba\naaaaaaaaaaaa\n");
    for (std::size_t size = 2; size != packed.size(); ++size) {
        const auto path = folder.write("a.gz", packed.substr(0, size));
        const auto unpack = [&](std::size_t block) {
            shardwise::InputFile file{path};
            std::string text;
            std::string part(block, '\0');
            bad_input([&] {
                while (const std::size_t count = file.read(part.data(), block, 1))
                    text.append(part, 0, count);
            });
            return text;
        };
        const std::string whole = unpack(1000);
        for (const std::size_t block : {1U, 2U, 3U, 5U, 7U})
            EXPECT_EQ(unpack(block), whole) << size << " bytes, blocks of " << block;
    }
}

TEST(Lines, DamagedGzipIsAnError) {
    const Folder folder;
    std::string packed = gzip("first\nsecond\n");
    packed[packed.size() - 6] ^= 1;  // in the checksum
    EXPECT_NE(bad_input([&] {
                  read_all({folder.write("a.gz", packed)});
              }).find("line 3: the gzip data is damaged: incorrect data check"),
              std::string::npos);
    EXPECT_NE(bad_input([&] {
                  read_all({folder.write("b.gz", gzip("a\n") + "text")});
              }).find("line 2: bytes that are no gzip follow the gzip data"),
              std::string::npos);
    EXPECT_NE(bad_input([&] { read_all({folder.write("c.gz", gzip("a\n") + "\x1fgarbage")}); }).find("damaged"),
              std::string::npos);
}

TEST(Lines, AGzipNameNeedsGzipContent) {
    const Folder folder;
    for (const std::string content : {"0\t1\n", "", "\x1f", "\x1f\x8c\x8b"}) {
        const auto file = folder.write("a.gz", content);
        EXPECT_EQ(bad_input([&] { read_all({file}); }),
                  file + ": named .gz, but it does not start with the bytes 1f 8b of a gzip file");
        // Under another name these are bytes like any other.
        EXPECT_EQ(read_all({folder.write("a.txt", content)}), naive(content));
    }
}

TEST(Lines, FilesThatCannotBeReadAreFoundAtOnce) {
    const Folder folder;
    const auto good = folder.write("good", "1\n");
    const auto missing = folder.path() + "/missing";
    EXPECT_EQ(bad_input([&] { LineReader({good, missing}); }), missing + ": cannot be read: No such file or directory");
    EXPECT_EQ(bad_input([&] {
                  LineReader({good, folder.path()});
              }),
              folder.path() + ": cannot be read: it is a directory");
    EXPECT_EQ(bad_input([&] { LineReader({}); }), "no file to read: give at least one");
    EXPECT_EQ(bad_input([&] { LineReader({good}, 0); }), "a block of 0 bytes: give at least 1");
    // And one that went away since.
    LineReader reader{{good}};
    std::filesystem::remove(good);
    EXPECT_EQ(bad_input([&] { reader.skip(1); }), good + ": cannot be read: No such file or directory");
}

TEST(Lines, ALineThatIsTooLongIsAnError) {
    const Folder folder;
    const std::size_t longest = LineReader::longest_line;
    const auto file = folder.write("a", "short\n" + std::string(longest, 'x') + "\nshort\n");
    EXPECT_EQ(read_all({file}, 5000).size(), 3U);
    const auto other = folder.write("b", "short\n" + std::string(4 * longest, 'x') + "\n");
    EXPECT_EQ(bad_input([&] { read_all({other}, 5000); }),
              other + ", line 2: a line of more than 1048576 bytes: this is no text file");
}

}  // namespace
}  // namespace shardwise_test
