// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/checkpoint/row_plan_file.hpp"

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/support.hpp"

namespace {

namespace sw = shardwise;
using checkpoint_test::TemporaryFile;

sw::RowPlan small_plan() {
    sw::RowPlan plan{
        .tiers = {"dp", "flex", "row"},
        .tables = {
            {.table = "a", .rows = 5, .tiers = {1, 2, 2}, .replicated = {4, 0, 3}, .unseen = {}, .lookups = {7, 0, 5}},
            {.table = "b/\"", .rows = 200, .tiers = {0, 7, 193}, .replicated = {}, .unseen = {}}}};
    for (int row = 0; row < 200; ++row)
        plan.tables[1].unseen.push_back(row > 6 && (row % 3 == 1 || row == 199));
    plan.tables[1].touches = {{.rank = 0, .host = 0, .world = 0},
                              {.rank = 1, .host = 2, .world = 7},
                              {.rank = 10, .host = 100, .world = 193}};
    plan.tables[1].reduction = sw::RowReduction::dense;
    return plan;
}

std::string plan_refusal(const std::string& path) {
    try {
        static_cast<void>(sw::read_row_plan(path));
    } catch (const sw::BadInput& error) {
        const std::string what = error.what();
        EXPECT_EQ(what.rfind(path + ": ", 0), 0U) << what;
        return what.substr(path.size() + 2);
    }
    return "";
}

TEST(RowPlanFile, ReadsBackWhatWasWritten) {
    const TemporaryFile file{"row_plan"};
    sw::write_row_plan(file.path(), small_plan());
    EXPECT_EQ(sw::read_row_plan(file.path()), small_plan());
    const sw::RowPlan none{.tiers = {"dp", "row"}, .tables = {}};
    sw::write_row_plan(file.path(), none);
    EXPECT_EQ(sw::read_row_plan(file.path()), none);
}

TEST(RowPlanFile, AWrongPlanIsNotWritten) {
    const TemporaryFile file{"not_written"};
    sw::RowPlan plan = small_plan();
    plan.tables[0].replicated = {4, 4, 3};
    EXPECT_THROW(sw::write_row_plan(file.path(), plan), sw::BadInput);
    plan = small_plan();
    plan.tables.push_back(plan.tables[0]);
    EXPECT_THROW(sw::write_row_plan(file.path(), plan), sw::BadInput);
    EXPECT_FALSE(std::ifstream{file.path()});
}

/// A file of one table, as it should not be written.
void write(const std::string& path, const std::vector<std::int64_t>& tiers, const std::vector<std::int64_t>& replicated,
           const std::vector<std::int64_t>& unseen, const std::vector<std::int64_t>& lookups = {},
           const std::vector<std::int64_t>& reduction = {0}) {
    sw::SafetensorsWriter file{path};
    const std::pair<const char*, const std::vector<std::int64_t>&> all[] = {{"tables/t/tiers", tiers},
                                                                            {"tables/t/replicated", replicated},
                                                                            {"tables/t/unseen", unseen},
                                                                            {"tables/t/lookups", lookups},
                                                                            {"tables/t/reduction", reduction}};
    for (const auto& [name, numbers] : all)
        file.declare(name, sw::TensorType::i64, {std::ssize(numbers)});
    file.metadata("format", "shardwise row plan 1");
    file.metadata("tiers", R"(["dp", "row"])");
    file.metadata("tables", R"(["t"])");
    file.begin();
    for (const auto& [name, numbers] : all)
        file.append(std::span<const std::int64_t>{numbers});
    file.end();
}

TEST(RowPlanFile, SaysWhatIsWrong) {
    const TemporaryFile file{"wrong_plan"};
    const std::string of = "the row plan of table 't': ";
    write(file.path(), {2, 3}, {1, 1}, {});
    EXPECT_EQ(plan_refusal(file.path()), of + "row 1 stands twice");
    write(file.path(), {2, 3}, {1, 5}, {});
    EXPECT_EQ(plan_refusal(file.path()), of + "row 5 is none of the table; its rows are 0 to 4");
    write(file.path(), {2, 3}, {1}, {});
    EXPECT_EQ(plan_refusal(file.path()), of + "it names 1 replicated rows, and its tiers but the last have 2");
    write(file.path(), {2, 3, 4}, {1, 0}, {});
    EXPECT_EQ(plan_refusal(file.path()), "the row plan of table 't' has rows of 3 tiers, and the plan has 2");
    write(file.path(), {2, -3}, {1, 0}, {});
    EXPECT_EQ(plan_refusal(file.path()), of + "a tier has -3 rows: give each 0 or more, and at most 2^63 - 1 together");
    write(file.path(), {0x7fffffffffffffff, 1}, {}, {});
    EXPECT_EQ(plan_refusal(file.path()), of + "a tier has 1 rows: give each 0 or more, and at most 2^63 - 1 together");
    write(file.path(), {2, 3}, {1, 0}, {1, 2});
    EXPECT_EQ(plan_refusal(file.path()), of + "it has 2 words that say which of 5 rows were seen");
    write(file.path(), {2, 3}, {1, 0}, {}, {1});
    EXPECT_EQ(plan_refusal(file.path()), of + "it has look-ups of 1 tiers, and rows of 2");
    write(file.path(), {2, 3}, {1, 0}, {}, {1, -1});
    EXPECT_EQ(plan_refusal(file.path()), of + "a tier has -1 look-ups: give each 0 or more");
    write(file.path(), {2, 3}, {1, 0}, {}, {}, {2});
    EXPECT_EQ(plan_refusal(file.path()), of + "its reduction is 2: give 0 for touched or 1 for dense");
    write(file.path(), {2, 3}, {1, 0}, {32});
    EXPECT_EQ(plan_refusal(file.path()), of + "it says of rows from 5 on whether they were seen: there are none");
    write(file.path(), {2, 3}, {1, 0}, {3});
    EXPECT_EQ(plan_refusal(file.path()),
              of + "row 1 is replicated, and said to have been seen by no profile: such rows are in the last tier");
    write(file.path(), {2, 3}, {1, 0}, {12});
    EXPECT_EQ(plan_refusal(file.path()), "");
    {
        sw::SafetensorsWriter other{file.path()};
        other.begin();
        other.end();
    }
    EXPECT_NE(plan_refusal(file.path()).find("is no row plan"), std::string::npos);
    {
        sw::SafetensorsWriter other{file.path()};
        other.metadata("format", "shardwise row plan 1");
        other.metadata("tiers", R"(["dp", "row"])");
        other.metadata("tables", R"(["t", "u", "t"])");
        other.begin();
        other.end();
    }
    EXPECT_NE(plan_refusal(file.path()).find("the metadata 'tables' has 't' twice"), std::string::npos);
}

}  // namespace
