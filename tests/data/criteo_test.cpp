// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/data/criteo.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "data/support.hpp"

namespace shardwise_test {
namespace {

using shardwise::ClickBatch;
using shardwise::CriteoOptions;
using shardwise::CriteoReader;

constexpr std::int64_t everything = 10000;

std::vector<Sample> read(const std::vector<std::string>& files, const std::vector<std::int64_t>& rows = {1000},
                         std::size_t block = 1 << 16) {
    CriteoReader reader{{.files = files, .rows = rows, .slice = {.batch = everything}, .block_bytes = block}};
    return concatenate(drain(reader));
}

std::vector<std::int64_t> different_rows() {
    std::vector<std::int64_t> rows(26);
    for (std::size_t f = 0; f != 26; ++f)
        rows[f] = static_cast<std::int64_t>(f * f * f * f * f + 1);
    return rows;
}

// Values of an XXH64 written from its specification, independent of the library's.
TEST(Criteo, HashesAreXxh64OfFourBytesWithTheFeatureAsSeed) {
    EXPECT_EQ(shardwise::criteo_hash(0, 0), 0x3aefa6fd5cf2deb4U);
    EXPECT_EQ(shardwise::criteo_hash(0x68fd1e64, 0), 0xc95a8c885caafa6aU);
    EXPECT_EQ(shardwise::criteo_hash(0x68fd1e64, 25), 0xfbfb2a9d37f9b2f9U);
    EXPECT_EQ(shardwise::criteo_hash(0xffffffff, 13), 0xd2a6334f88487870U);
    EXPECT_EQ(shardwise::criteo_missing_hash(0), 0xef46db3751d8e999U);
    EXPECT_EQ(shardwise::criteo_missing_hash(1), 0xd5afba1336a3be4bU);
    EXPECT_EQ(shardwise::criteo_missing_hash(25), 0xcf10bc2abb92e160U);
}

TEST(Criteo, DenseIsTheLogarithmOfWhatIsNotNegative) {
    EXPECT_EQ(shardwise::criteo_dense(0), 0.0F);
    EXPECT_EQ(shardwise::criteo_dense(-1), 0.0F);
    EXPECT_EQ(shardwise::criteo_dense(std::numeric_limits<std::int64_t>::min()), 0.0F);
    EXPECT_FLOAT_EQ(shardwise::criteo_dense(1), 0.6931472F);
    EXPECT_FLOAT_EQ(shardwise::criteo_dense(999999), 13.8155106F);
    EXPECT_FLOAT_EQ(shardwise::criteo_dense(std::numeric_limits<std::int64_t>::max()), 43.6682725F);
}

TEST(Criteo, ReadsWhatIsWritten) {
    const Folder folder;
    const auto lines = random_lines(1000, 1);
    const std::vector<std::int64_t> rows = different_rows();
    EXPECT_EQ(read({folder.write("a.tsv", text_of(lines))}, rows), naive_samples(lines, rows));
    EXPECT_EQ(read({folder.write("a.tsv", text_of(lines))}, {12345}), naive_samples(lines, {12345}));
}

// The small integers come from a table, the others do not.
TEST(Criteo, DenseValuesAreTheSameOnBothSidesOfTheTable) {
    std::vector<Columns> lines;
    for (int x = -3; x != 5000; ++x) {
        Columns columns(40);
        columns[0] = "0";
        columns[1] = std::to_string(x);
        lines.push_back(columns);
    }
    const Folder folder;
    EXPECT_EQ(read({folder.write("a.tsv", text_of(lines))}), naive_samples(lines, {1000}));
}

TEST(Criteo, AMissingValueHasAnIdOfItsOwn) {
    Columns missing(40);
    missing[0] = "1";
    Columns zero = missing;
    for (std::size_t f = 0; f != 26; ++f)
        zero[14 + f] = "0";
    const Folder folder;
    const auto samples = read({folder.write("a.tsv", text_of({missing, zero}))}, {std::int64_t{1} << 62});
    for (std::size_t f = 0; f != 26; ++f) {
        EXPECT_NE(samples[0].ids[f], samples[1].ids[f]);
        for (std::size_t g = 0; g != f; ++g)
            EXPECT_NE(samples[0].ids[f], samples[0].ids[g]);
    }
}

RC_GTEST_PROP(Criteo, BlocksLineEndsGzipAndFilesMakeNoDifference, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    const Folder folder;
    std::vector<Columns> all;
    std::vector<std::string> files;
    for (std::uint64_t count = 1 + random() % 3; count != 0; --count) {
        const auto lines = random_lines(1 + random() % 6, random());
        all.insert(all.end(), lines.begin(), lines.end());
        std::string text = text_of(lines, random() % 2 == 0 ? "\n" : "\r\n");
        if (random() % 2 == 0) text.pop_back();
        if (random() % 2 == 0) text = gzip(text.substr(0, 100)) + gzip(text.substr(100));
        files.push_back(folder.write(std::to_string(count), text));
    }
    const std::size_t blocks[] = {1, 2, 7, 64, 300, 5000};
    RC_ASSERT(read(files, {77}, blocks[random() % 6]) == naive_samples(all, {77}));
}

// The law of slices: at every world size the ranks' parts of each global batch, in rank order, are the stream.
TEST(Criteo, RanksShareTheStream) {
    const Folder folder;
    for (const std::size_t count : {1U, 5U, 12U, 24U, 25U, 100U}) {
        const auto lines = random_lines(count, count);
        const auto expected = naive_samples(lines, {1000});
        const auto half = lines.begin() + static_cast<std::ptrdiff_t>(count / 2);
        const std::vector<std::string> files = {folder.write("a", text_of({lines.begin(), half})),
                                                folder.write("b", gzip(text_of({half, lines.end()})))};
        for (const int ranks : {1, 2, 3, 4, 7}) {
            for (const std::int64_t batch : {1, 3, 4, 200}) {
                std::vector<std::vector<std::vector<Sample>>> parts;  // (ranks, batches, samples)
                for (int rank = 0; rank != ranks; ++rank) {
                    CriteoReader reader{{.files = files,
                                         .rows = {1000},
                                         .slice = {.batch = batch, .rank = rank, .ranks = ranks},
                                         .block_bytes = 100}};
                    parts.push_back(drain(reader));
                    ClickBatch past;
                    EXPECT_FALSE(reader.next(past));
                    EXPECT_EQ(past.samples(), 0);
                    reader.rewind();
                    EXPECT_EQ(drain(reader), parts.back());
                }
                const std::size_t global = static_cast<std::size_t>(batch) * static_cast<std::size_t>(ranks);
                std::vector<Sample> stream;
                for (std::size_t g = 0; g != (count + global - 1) / global; ++g) {
                    for (const auto& part : parts) {
                        ASSERT_EQ(part.size(), (count + global - 1) / global);
                        stream.insert(stream.end(), part[g].begin(), part[g].end());
                        if (stream.size() < count) {
                            EXPECT_EQ(part[g].size(), static_cast<std::size_t>(batch));
                        }
                    }
                    EXPECT_EQ(stream.size(), std::min(count, (g + 1) * global));
                }
                EXPECT_EQ(stream, expected);
            }
        }
    }
}

TEST(Criteo, RewindsInTheMiddle) {
    const Folder folder;
    const auto file = folder.write("a", text_of(random_lines(20, 3)));
    CriteoReader reader{{.files = {file}, .rows = {50}, .slice = {.batch = 3, .rank = 1, .ranks = 2}}};
    const auto all = drain(reader);
    for (int batches = 0; batches != 4; ++batches) {
        reader.rewind();
        ClickBatch batch;
        for (int b = 0; b != batches; ++b)
            ASSERT_TRUE(reader.next(batch));
        reader.rewind();
        EXPECT_EQ(drain(reader), all);
    }
}

TEST(Criteo, BatchesAreUsedAgain) {
    const Folder folder;
    const auto file = folder.write("a", text_of(random_lines(10, 3)));
    CriteoReader reader{{.files = {file}, .rows = {50}, .slice = {.batch = 4}}};
    expect_batches_used_again(reader);
}

TEST(Criteo, TheRankThatOwnsABadLineNamesIt) {
    const Folder folder;
    auto lines = random_lines(30, 4);
    const auto first = folder.write("first.tsv", text_of(lines));
    for (const std::size_t bad : {0U, 1U, 7U, 11U, 29U}) {
        auto damaged = lines;
        damaged[bad][20] = "xyz";
        const auto second = folder.write("second.tsv", text_of(damaged));
        const std::string expected = second + ", line " + std::to_string(bad + 1) +
                                     ": column 21 (C7): 'xyz', expected 1 to 8 hexadecimal digits or nothing";
        expect_owner_names(bad, expected, [&](const shardwise::Slice& slice) {
            return CriteoReader{{.files = {first, second}, .rows = {9}, .slice = slice}};
        });
    }
}

TEST(Criteo, RefusesWrongColumnsLabelsAndValues) {
    const Folder folder;
    const auto error_of = [&](std::size_t column, const std::string& value) {
        auto lines = random_lines(3, 5);
        lines[2].at(column - 1) = value;
        const auto file = folder.write("a.tsv", text_of(lines));
        const std::string error = bad_input([&] { read({file}); });
        EXPECT_TRUE(error.starts_with(file + ", line 3: ")) << error;
        return error.substr(std::min(error.size(), file.size() + 10));
    };
    EXPECT_TRUE(error_of(40, "a\tb").starts_with("41 columns, expected 40"));
    EXPECT_TRUE(error_of(1, "0 1").starts_with("column 1 (label): '0 1', expected 0 or 1"));
    EXPECT_TRUE(error_of(1, "nan").starts_with("column 1 (label): 'nan', expected 0 or 1"));
    EXPECT_TRUE(
        error_of(14, "1e3").starts_with("column 14 (I13): '1e3', expected a 64-bit decimal integer or nothing"));
    EXPECT_TRUE(error_of(15, "-1").starts_with("column 15 (C1): '-1', expected 1 to 8 hexadecimal digits or nothing"));

    auto lines = random_lines(3, 5);
    lines[1].pop_back();
    const auto file = folder.write("a.tsv", text_of(lines));
    EXPECT_EQ(bad_input([&] { read({file}); }),
              file +
                  ", line 2: 39 columns, expected 40 separated by tabs: a label, integers I1 to I13, hexadecimal "
                  "categories C1 to C26");
    const auto blank = folder.write("b.tsv", text_of(random_lines(3, 5)) + "\n");
    EXPECT_TRUE(bad_input([&] { read({blank}); }).starts_with(blank + ", line 4: 1 column, expected 40"));
}

TEST(Criteo, RefusesFilesWithoutSamples) {
    const Folder folder;
    const auto empty = folder.write("empty.tsv", "");
    const auto packed = folder.write("empty.gz", gzip(""));
    for (int rank = 0; rank != 3; ++rank) {
        CriteoReader reader{{.files = {packed, empty}, .rows = {9}, .slice = {.batch = 2, .rank = rank, .ranks = 3}}};
        ClickBatch batch;
        EXPECT_EQ(bad_input([&] { reader.next(batch); }), empty + ": no samples: every file is empty");
        reader.rewind();
        EXPECT_EQ(bad_input([&] { reader.next(batch); }), empty + ": no samples: every file is empty");
    }
    const auto lines = random_lines(3, 5);
    EXPECT_EQ(read({empty, folder.write("full.tsv", text_of(lines)), packed}), naive_samples(lines, {1000}));
}

TEST(Criteo, RefusesATruncatedGzip) {
    const Folder folder;
    const std::string packed = gzip(text_of(random_lines(50, 6)));
    const auto file = folder.write("a.gz", packed.substr(0, packed.size() / 2));
    const std::string error = bad_input([&] { read({file}); });
    EXPECT_TRUE(error.starts_with(file + ", line ")) << error;
    EXPECT_TRUE(error.ends_with("truncated")) << error;
}

TEST(Criteo, RefusesOptionsThatMakeNoSense) {
    const Folder folder;
    const auto file = folder.write("a", text_of(random_lines(1, 1)));
    const auto error = [&](const CriteoOptions& options) { return bad_input([&] { CriteoReader{options}; }); };
    EXPECT_EQ(error({.rows = {1}}), "no file to read: give at least one");
    EXPECT_EQ(error({.files = {file + "?"}, .rows = {1}}), file + "?: cannot be read: No such file or directory");
    EXPECT_EQ(error({.files = {file}}), "rows of 0 tables: give 26 numbers, or one for all");
    EXPECT_EQ(error({.files = {file}, .rows = {1, 2}}), "rows of 2 tables: give 26 numbers, or one for all");
    std::vector<std::int64_t> rows(26, 5);
    rows[25] = 0;
    EXPECT_EQ(error({.files = {file}, .rows = rows}), "a table of 0 rows for C26: give at least 1");
    EXPECT_EQ(error({.files = {file}, .rows = {-1}}), "a table of -1 rows for C1: give at least 1");
    EXPECT_EQ(error({.files = {file}, .rows = {1}, .slice = {.batch = 0}}), "a batch of 0 samples: give at least 1");
    EXPECT_EQ(error({.files = {file}, .rows = {1}, .slice = {.batch = 1, .rank = 2, .ranks = 2}}),
              "rank 2 of 2 ranks: ranks count from 0");
    EXPECT_EQ(error({.files = {file}, .rows = {1}, .slice = {.batch = 1, .rank = -1, .ranks = 2}}),
              "rank -1 of 2 ranks: ranks count from 0");
    EXPECT_EQ(error({.files = {file}, .rows = {1}, .slice = {.batch = 1, .rank = 0, .ranks = 0}}),
              "rank 0 of 0 ranks: ranks count from 0");
    EXPECT_EQ(error({.files = {file}, .rows = {1}, .block_bytes = 0}), "a block of 0 bytes: give at least 1");
}

TEST(Criteo, ReadsRealClickLogs) {
    const char* folder = std::getenv("SHARDWISE_CLICK_LOGS");
    int found = 0;
    for (const std::string name : {"criteo_kaggle_train.tsv", "criteo_kaggle_test.tsv", "criteo_terabyte_day0.tsv"}) {
        if (folder == nullptr || !std::filesystem::exists(std::string{folder} + "/" + name)) continue;
        ++found;
        const std::string file = std::string{folder} + "/" + name;
        const auto expected = naive_samples(naive_lines(file), {100003});
        EXPECT_EQ(read({file}, {100003}), expected);
        double clicks = 0;
        for (const auto& sample : expected)
            clicks += static_cast<double>(sample.label);
        EXPECT_GT(clicks / static_cast<double>(expected.size()), 0.01);
        EXPECT_LT(clicks / static_cast<double>(expected.size()), 0.5);
    }
    if (found == 0) GTEST_SKIP() << "no click logs in the folder that SHARDWISE_CLICK_LOGS names";
}

}  // namespace
}  // namespace shardwise_test
