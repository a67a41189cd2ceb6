// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/data/row_trace.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "data/support.hpp"
#include "shardwise/data/loader.hpp"

namespace shardwise_test {
namespace {

using shardwise::RowTraceReader;
using shardwise::TraceForm;
using Batch = shardwise::JaggedBatch<std::int64_t>;
using Rows = std::vector<std::int64_t>;

static_assert(shardwise::BatchSource<RowTraceReader, Batch>);

std::vector<Rows> batches_of(RowTraceReader& reader) {
    std::vector<Rows> all;
    for (Batch batch; reader.next(batch);) {
        batch.view().validate();
        EXPECT_TRUE(batch.view().single());
        EXPECT_EQ(batch.features, 1);
        all.push_back(batch.values);
    }
    return all;
}

TEST(RowTrace, ALineIsASample) {
    const Folder folder;
    const auto file = folder.write("trace", "7\n3\n7\n0\n12\n");
    RowTraceReader reader{{.files = {file}, .slice = {.batch = 2}}};
    for (int pass = 0; pass != 2; ++pass, reader.rewind()) {
        EXPECT_EQ(batches_of(reader), (std::vector<Rows>{{7, 3}, {7, 0}, {12}}));
        EXPECT_EQ(reader.rows_seen(), 13);
    }
    RowTraceReader sequences{
        {.files = {folder.write("s", "1 7 5\n2 3 5\n1 9 5\n")}, .form = TraceForm::sequences, .slice = {.batch = 8}}};
    EXPECT_EQ(batches_of(sequences), (std::vector<Rows>{{7, 3, 9}}));
}

RC_GTEST_PROP(RowTrace, RanksShareTheLines, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    const Folder folder;
    Rows rows;
    std::string text;
    for (std::uint64_t left = 1 + random() % 40; left != 0; --left) {
        rows.push_back(static_cast<std::int64_t>(random() % 1000));
        text += std::to_string(rows.back()) + "\n";
    }
    const auto file = folder.write("trace", text);
    const int ranks = 1 + static_cast<int>(random() % 4);
    const auto batch = 1 + static_cast<std::int64_t>(random() % 9);
    std::vector<std::vector<Rows>> parts;
    for (int rank = 0; rank != ranks; ++rank) {
        RowTraceReader reader{{.files = {file}, .slice = {.batch = batch, .rank = rank, .ranks = ranks}}};
        parts.push_back(batches_of(reader));
        RC_ASSERT(parts.back().size() == parts.front().size());
    }
    Rows all;
    for (std::size_t b = 0; b != parts[0].size(); ++b)
        for (const auto& part : parts)
            all.insert(all.end(), part[b].begin(), part[b].end());
    RC_ASSERT(all == rows);
}

TEST(RowTrace, SaysWhatIsWrong) {
    const Folder folder;
    const auto refused = [](const shardwise::RowTraceOptions& options) {
        return bad_input([&] {
            RowTraceReader reader{options};
            batches_of(reader);
        });
    };
    const auto trace = folder.write("trace", "1\n5\n");
    EXPECT_EQ(refused({.files = {trace}, .rows = 5}),
              trace + ", line 2, column 1 (row): 5 is no row of the table: its rows are 0 to 4");
    EXPECT_EQ(refused({.files = {trace}, .form = TraceForm::sequences}),
              trace + ", line 1: 1 column, expected 2 columns: user item and whatever follows");
    const auto sequences = folder.write("sequences", "1 2 3\n1 9\n");
    EXPECT_EQ(refused({.files = {sequences}, .form = TraceForm::sequences, .rows = 9}),
              sequences + ", line 2, column 2 (item): 9 is no row of the table: its rows are 0 to 8");
    EXPECT_EQ(refused({.files = {sequences}}), sequences + ", line 1, column 2: '2', expected 1 column: row");
    const auto most = folder.write("most", "9223372036854775807\n");
    EXPECT_EQ(refused({.files = {most}}), most +
                                              ", line 1, column 1 (row): 9223372036854775807 is no row of the "
                                              "table: its rows are 0 to 9223372036854775806");
    const auto empty = folder.write("empty", "");
    EXPECT_EQ(refused({.files = {empty}}), empty + ": no look-ups: every file is empty");
    EXPECT_EQ(refused({.files = {trace}, .rows = -1}),
              "a table of -1 rows: give at least 1, or 0 for as many as it takes");
    EXPECT_EQ(refused({.files = {trace}, .slice = {.batch = 0}}), "a batch of 0 samples: give at least 1");
}

TEST(RowTrace, AnErrorStaysUntilRewind) {
    const Folder folder;
    RowTraceReader reader{{.files = {folder.write("trace", "1\n2\nx\n4\n")}, .slice = {.batch = 2}}};
    for (int pass = 0; pass != 2; ++pass, reader.rewind()) {
        Batch batch;
        ASSERT_TRUE(reader.next(batch));
        const std::string error = bad_input([&] { reader.next(batch); });
        EXPECT_EQ(bad_input([&] { reader.next(batch); }), error);
    }
}

}  // namespace
}  // namespace shardwise_test
