// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The fragments of docs/csv.md, run on files in a folder of their own.

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "data/support.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/data/csv_reader.hpp"
#include "shardwise/data/csv_schema_file.hpp"
#include "shardwise/shardwise.hpp"

namespace docs {
namespace {

namespace sw = shardwise;

class CsvPage : public testing::Test {
  protected:
    CsvPage() { std::filesystem::current_path(folder_.path()); }
    ~CsvPage() override { std::filesystem::current_path(before_); }
    CsvPage(const CsvPage&) = delete;
    CsvPage& operator=(const CsvPage&) = delete;

    std::filesystem::path before_ = std::filesystem::current_path();
    shardwise_test::Folder folder_;
};

TEST_F(CsvPage, BatchesOfFiles) {
    folder_.write("clicks.json",
                  R"({"label": "click", "rows": 100, "categorical": ["site", {"column": "tags", "split": "|"}]})");
    folder_.write("day_1.csv", "click,site,tags\n1,a,x|y\n0,b,\n");
    folder_.write("day_2.csv.gz", shardwise_test::gzip("site,tags,click\nc,z,1\n"));
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        std::int64_t samples = 0;
        const auto learn = [&](const sw::ClickBatch& batch, const sw::MatrixView<const float>& vectors) {
            EXPECT_EQ(vectors.rows(), batch.samples());
            EXPECT_EQ(vectors.columns(), 2 * 16);
            samples += batch.samples();
        };
        // clang-format off
        const sw::CsvSchema schema = sw::read_csv_schema("clicks.json");
        sw::EmbeddingLayer<> layer{comm, schema.tables(16)};  // 16 columns a table
        sw::CsvReader reader{{.files = {"day_1.csv", "day_2.csv.gz"},
                              .schema = schema,
                              .slice = {.batch = 2048, .rank = comm.rank(), .ranks = comm.size()}}};
        for (sw::ClickBatch batch; reader.next(batch);)
            learn(batch, layer.forward(batch.ids.view()));
        // clang-format on
        EXPECT_EQ(samples, comm.rank() == 0 ? 3 : 0);
    });
}

TEST_F(CsvPage, ASchemaByHand) {
    // clang-format off
    const sw::CsvSchema by_hand{.label = {.column = {.name = "click"}},
                                .categorical = {{.column = {.name = "site"}}, {.column = {.name = "tags"}, .split = '|'}},
                                .rows = 100'000};
    // clang-format on
    by_hand.validate();
    EXPECT_EQ(by_hand.tables(4).at(1).rows, 100'000);
}

}  // namespace
}  // namespace docs
