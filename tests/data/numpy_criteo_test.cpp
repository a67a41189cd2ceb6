// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/data/numpy_criteo.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "data/support.hpp"
#include "shardwise/data/loader.hpp"

namespace shardwise_test {
namespace {

using shardwise::ClickBatch;
using shardwise::NumpyCriteoDay;
using shardwise::NumpyCriteoReader;
static_assert(shardwise::BatchSource<NumpyCriteoReader>);

/// What the three files of a day hold, (samples, columns) each.
struct Day {
    std::vector<float> dense;
    std::vector<std::int32_t> sparse;
    std::vector<std::int32_t> labels;
};

Day random_day(std::int64_t samples, std::uint64_t seed) {
    std::mt19937_64 random{seed};
    Day day;
    for (std::int64_t s = 0; s != samples; ++s) {
        for (int i = 0; i != 13; ++i)
            day.dense.push_back(static_cast<float>(random() % 1000) / 64 - 1);
        for (int f = 0; f != 26; ++f)
            day.sparse.push_back(static_cast<std::int32_t>(random()) >> random() % 31);
        day.labels.push_back(random() % 3 == 0 ? 1 : 0);
    }
    return day;
}

NumpyCriteoDay write(const Folder& folder, const std::string& name, const Day& day) {
    const auto samples = static_cast<std::int64_t>(day.labels.size());
    return {.dense = folder.write(name + "_dense.npy", npy_file("<f4", {samples, 13}, bytes_of(day.dense))),
            .sparse = folder.write(name + "_sparse.npy", npy_file("<i4", {samples, 26}, bytes_of(day.sparse))),
            .labels = folder.write(name + "_labels.npy", npy_file("<i4", {samples, 1}, bytes_of(day.labels)))};
}

/// What a day means, read the slow way; the remainder has the sign of the divisor, as in Python.
std::vector<Sample> naive_samples(const Day& day, const std::vector<std::int64_t>& rows) {
    std::vector<Sample> samples;
    for (std::size_t s = 0; s != day.labels.size(); ++s) {
        Sample sample{.label = static_cast<float>(day.labels[s]), .dense = {}, .ids = {}};
        for (std::size_t i = 0; i != 13; ++i)
            sample.dense.push_back(day.dense[s * 13 + i]);
        for (std::size_t f = 0; f != 26; ++f) {
            const std::int64_t n = rows[rows.size() == 1 ? 0 : f];
            std::int64_t id = day.sparse[s * 26 + f];
            id -= n * (id / n);
            sample.ids.push_back(id < 0 ? id + n : id);
        }
        samples.push_back(sample);
    }
    return samples;
}

std::vector<Sample> read_days(const std::vector<NumpyCriteoDay>& days, const std::vector<std::int64_t>& rows = {1000},
                              std::int64_t batch = 10000) {
    NumpyCriteoReader reader{{.days = days, .rows = rows, .slice = {.batch = batch}}};
    return concatenate(drain(reader));
}

TEST(NumpyCriteo, ReadsWhatIsWritten) {
    const Folder folder;
    const Day day = random_day(3000, 1);  // longer than what is read at once
    const auto files = write(folder, "day_0", day);
    std::vector<std::int64_t> rows(26);
    for (std::size_t f = 0; f != 26; ++f)
        rows[f] = std::int64_t{1} << f << f % 16;  // to beyond 32 bits
    EXPECT_EQ(read_days({files}, rows), naive_samples(day, rows));
    EXPECT_EQ(read_days({files}, {12345}), naive_samples(day, {12345}));
    EXPECT_EQ(read_days({files}, {12345}, 7), naive_samples(day, {12345}));
}

// numpy: array([-1, -7, 2147483647, -2147483648]) % 10 is [9, 3, 7, 2].
TEST(NumpyCriteo, NegativeIdsCountFromTheLastRow) {
    const Folder folder;
    Day day = random_day(1, 1);
    std::copy_n(std::vector<std::int32_t>{-1, -7, INT32_MAX, INT32_MIN, -10, 0}.begin(), 6, day.sparse.begin());
    const auto ids = read_days({write(folder, "day_0", day)}, {10})[0].ids;
    EXPECT_EQ((std::vector<std::int64_t>{ids.begin(), ids.begin() + 6}), (std::vector<std::int64_t>{9, 3, 7, 2, 0, 0}));
}

// Dense values are what the file holds: nothing is a logarithm a second time.
TEST(NumpyCriteo, DenseValuesAreTakenAsTheyAre) {
    const Folder folder;
    Day day = random_day(1, 1);
    day.dense = {0, -0.0F, 1, -1, 0.6931472F, 3e38F, -3e38F, 1e-45F, 2, 3, 4, 5, 6};
    EXPECT_EQ(bytes_of(read_days({write(folder, "day_0", day)})[0].dense), bytes_of(day.dense));
}

// The law of slices: at every world size the ranks' parts of each global batch, in rank order, are the stream.
RC_GTEST_PROP(NumpyCriteo, RanksShareTheStream, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    const Folder folder;
    std::vector<NumpyCriteoDay> days;
    std::vector<Sample> expected;
    for (std::uint64_t d = 0, count = 1 + random() % 4; d != count || expected.empty(); ++d) {
        const Day day = random_day(static_cast<std::int64_t>(random() % 3 == 0 ? 0 : random() % 40), random());
        days.push_back(write(folder, "day_" + std::to_string(d), day));
        const auto samples = naive_samples(day, {77});
        expected.insert(expected.end(), samples.begin(), samples.end());
        count = std::max(count, d + 1);
    }
    const int ranks = 1 + static_cast<int>(random() % 5);
    const auto batch = static_cast<std::int64_t>(1 + random() % 20);
    std::vector<std::vector<std::vector<Sample>>> parts;  // (ranks, batches, samples)
    for (int rank = 0; rank != ranks; ++rank) {
        NumpyCriteoReader reader{{.days = days, .rows = {77}, .slice = {.batch = batch, .rank = rank, .ranks = ranks}}};
        RC_ASSERT(reader.samples() == static_cast<std::int64_t>(expected.size()));
        parts.push_back(drain(reader));
        ClickBatch past;
        RC_ASSERT(!reader.next(past));
        RC_ASSERT(past.samples() == 0);
        reader.rewind();
        for (auto some = random() % (parts.back().size() + 1); some != 0; --some)
            RC_ASSERT(reader.next(past));
        reader.rewind();
        RC_ASSERT(drain(reader) == parts.back());
    }
    const std::size_t global = static_cast<std::size_t>(batch) * static_cast<std::size_t>(ranks);
    std::vector<Sample> stream;
    for (std::size_t g = 0; g != (expected.size() + global - 1) / global; ++g) {
        for (const auto& part : parts) {
            RC_ASSERT(part.size() == (expected.size() + global - 1) / global);
            stream.insert(stream.end(), part[g].begin(), part[g].end());
            if (stream.size() < expected.size()) RC_ASSERT(part[g].size() == static_cast<std::size_t>(batch));
        }
        RC_ASSERT(stream.size() == std::min(expected.size(), (g + 1) * global));
    }
    RC_ASSERT(stream == expected);
}

TEST(NumpyCriteo, BatchesAreUsedAgain) {
    const Folder folder;
    NumpyCriteoReader reader{
        {.days = {write(folder, "day_0", random_day(10, 3))}, .rows = {50}, .slice = {.batch = 4}}};
    expect_batches_used_again(reader);
}

// The first day is fine, the second one is not: row numbers are those of the file.
TEST(NumpyCriteo, TheRankThatOwnsABadSampleNamesIt) {
    const Folder folder;
    const auto first = write(folder, "day_0", random_day(30, 1));
    for (const std::size_t bad : {0U, 1U, 7U, 11U, 29U}) {
        for (const int kind : {0, 1, 2, 3}) {
            Day day = random_day(30, 2);
            const std::string row = ", row " + std::to_string(bad) + " (from 0)";
            std::string expected;
            if (kind == 0) {
                day.labels[bad] = bad % 2 != 0 ? 2 : -1;
                expected = folder.path() + "/day_1_labels.npy" + row + (bad % 2 != 0 ? ": 2" : ": -1") +
                           ", expected a label of 0 or 1";
            } else {
                using Limits = std::numeric_limits<float>;
                const float values[] = {0, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()};
                const char* const texts[] = {"", "inf", "-inf", "nan"};
                day.dense[bad * 13 + 12 * (bad % 2)] = values[kind];
                expected = folder.path() + "/day_1_dense.npy" + row + (bad % 2 != 0 ? ", I13: " : ", I1: ") +
                           texts[kind] + ", expected a finite number: log(x + 3) needs integers x above -3";
            }
            const auto second = write(folder, "day_1", day);
            expect_owner_names(bad, expected, [&](const shardwise::Slice& slice) {
                return NumpyCriteoReader{{.days = {first, second}, .rows = {9}, .slice = slice}};
            });
        }
    }
}

TEST(NumpyCriteo, EveryRankRefusesFilesThatDoNotFit) {
    const Folder folder;
    const auto good = write(folder, "good", random_day(5, 1));
    const auto four = write(folder, "four", random_day(4, 1));
    const auto empty = write(folder, "empty", {});
    const auto error = [&](const NumpyCriteoDay& day) {
        std::string text;
        for (int rank = 0; rank != 3; ++rank) {
            const std::string same = text;
            text = bad_input([&] {
                NumpyCriteoReader{{.days = {good, day}, .rows = {9}, .slice = {.batch = 2, .rank = rank, .ranks = 3}}};
            });
            if (rank != 0) {
                EXPECT_EQ(text, same);
            }
        }
        return text;
    };
    EXPECT_EQ(
        error({.dense = good.dense, .sparse = four.sparse, .labels = good.labels}),
        good.dense + " has 5 rows, " + four.sparse + " 4 and " + good.labels + " 5: give the three files of one day");
    EXPECT_EQ(
        error({.dense = good.dense, .sparse = good.sparse, .labels = empty.labels}),
        good.dense + " has 5 rows, " + good.sparse + " 5 and " + empty.labels + " 0: give the three files of one day");
    EXPECT_EQ(error({.dense = good.labels, .sparse = good.sparse, .labels = good.labels}),
              good.labels + ": an array of dtype '<i4', expected '<f4': convert it with numpy's astype");
    EXPECT_EQ(error({.dense = good.dense, .sparse = good.labels, .labels = good.labels}),
              good.labels + ": an array of shape (5, 1), expected (samples, 26)");
    EXPECT_EQ(error({.dense = good.dense, .sparse = good.sparse, .labels = good.sparse}),
              good.sparse + ": an array of shape (5, 26), expected (samples, 1)");
    std::filesystem::resize_file(four.sparse, std::filesystem::file_size(four.sparse) - 1);
    EXPECT_TRUE(error(four).starts_with(four.sparse + ": 415 bytes of data, which are not the 4 rows of 104 bytes"));
    std::filesystem::remove(four.sparse);
    EXPECT_EQ(error(four), four.sparse + ": cannot be read: No such file or directory");

    EXPECT_EQ(bad_input([&] { read_days({empty, empty}); }), empty.labels + ": no samples: every file is empty");
    EXPECT_EQ(read_days({empty, good, empty}).size(), 5U);
    EXPECT_EQ(bad_input([&] { read_days({}); }), "no file to read: give the three of a day at least");
    EXPECT_EQ(bad_input([&] { read_days({good}, {1, 2}); }), "rows of 2 tables: give 26 numbers, or one for all");
    EXPECT_EQ(bad_input([&] { read_days({good}, {0}); }), "a table of 0 rows for C1: give at least 1");
    EXPECT_EQ(bad_input([&] { read_days({good}, {1}, 0); }), "a batch of 0 samples: give at least 1");
}

TEST(NumpyCriteo, NamesSayWhichFilesBelongTogether) {
    const auto days =
        shardwise::numpy_criteo_days({"a/day_1_labels.npy", "a/day_0_dense.npy", "a/day_0_labels.npy",
                                      "a/day_1_dense.npy", "a/day_0_sparse_contig_freq.npy", "a/day_1_sparse.npy"});
    ASSERT_EQ(days.size(), 2U);
    EXPECT_EQ(days[0].dense, "a/day_1_dense.npy");
    EXPECT_EQ(days[0].sparse, "a/day_1_sparse.npy");
    EXPECT_EQ(days[0].labels, "a/day_1_labels.npy");
    EXPECT_EQ(days[1].dense, "a/day_0_dense.npy");
    EXPECT_EQ(days[1].sparse, "a/day_0_sparse_contig_freq.npy");
    EXPECT_EQ(days[1].labels, "a/day_0_labels.npy");
    // the last kind in the name of the file counts
    const auto odd = shardwise::numpy_criteo_days(
        {"x_dense/a_sparse_dense.npy", "x_dense/a_sparse_labels.npy", "x_dense/a_sparse_sparse.npy"});
    ASSERT_EQ(odd.size(), 1U);
    EXPECT_EQ(odd[0].dense, "x_dense/a_sparse_dense.npy");

    const auto error = [](const std::vector<std::string>& files) {
        return bad_input([&] { static_cast<void>(shardwise::numpy_criteo_days(files)); });
    };
    for (const std::string name : {"day_0.npy", "day_0_dense", "day_0_dense.npz", "_dense/day.npy", "_dense.d/day.npy",
                                   "day_0_denser.npy", "day_dense"})
        EXPECT_EQ(error({name}),
                  name + ": expected a name such as day_0_dense.npy, day_0_sparse.npy or day_0_labels.npy");
    EXPECT_EQ(error({"d_dense.npy", "d_labels.npy"}),
              "d: d_sparse.npy is not among the files: give all three of a day");
    EXPECT_EQ(error({"d_dense.npy", "d_labels.npy", "e_sparse.npy"}),
              "d: d_sparse.npy is not among the files: give all three of a day");
    EXPECT_EQ(error({"d_sparse.npy", "d_sparse_contig_freq.npy"}),
              "d_sparse_contig_freq.npy and d_sparse.npy are files of one kind and day: give one of them");
}

}  // namespace
}  // namespace shardwise_test
