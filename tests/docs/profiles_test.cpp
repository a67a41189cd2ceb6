// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The fragments of docs/profiles.md, run on generated clicks.

#include <cstdint>
#include <cstdio>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/checkpoint/profile_file.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/data/generator.hpp"
#include "shardwise/data/loader.hpp"
#include "shardwise/planning/access_counter.hpp"
#include "shardwise/planning/coverage.hpp"
#include "shardwise/planning/expected_touches.hpp"
#include "shardwise/planning/merge_ranks.hpp"
#include "shardwise/planning/row_plans.hpp"
#include "shardwise/planning/workloads.hpp"

namespace docs_profiles {
namespace {

namespace sw = shardwise;

const std::vector<sw::TableConfig> tables = {{.name = "user", .rows = 5000}, {.name = "item", .rows = 20000}};

void profile_clicks(sw::CommunicatorRef comm) {
    sw::PrefetchingLoader loader{sw::ClickGenerator{
        {.rows = {5000, 20000}, .samples = 10000, .slice = {.batch = 256, .rank = comm.rank(), .ranks = comm.size()}}}};
    // clang-format off
    sw::AccessCounter counter{tables};  // names, rows and features, as for a layer
    while (const sw::ClickBatch* batch = loader.next()) counter.add(batch->ids.view());
    const sw::AccessProfile profile = sw::merged_across_ranks(comm, counter.profile());  // the same on every rank
    if (comm.rank() == 0) sw::write_profile("profile.safetensors", profile);
    // clang-format on
    EXPECT_EQ(profile.samples, 10000);
}

struct Planned {
    double share;
    double later;
    std::vector<sw::RowAccess> rows;
};

Planned use_profile(const sw::AccessProfile& today) {
    std::vector<sw::RowAccess> planned;
    const auto plan = [&](std::int64_t row, std::int64_t lookups) { planned.push_back({row, lookups, 0}); };
    // clang-format off
    const sw::AccessProfile profile = sw::read_profile("profile.safetensors");
    sw::require_tables(profile, tables);  // BadInput when it is of others
    const double share = sw::coverage(profile, 1000);           // of all look-ups, by the 1,000 hottest rows of all tables
    const auto rows = sw::hottest_rows(profile.tables[0], 100);  // their numbers, the hottest first
    const double later = sw::coverage_of(rows, today.tables[0]);  // the same rows, tried on another profile
    for (const sw::RowAccess& row : sw::by_frequency(profile.tables[0])) plan(row.row, row.lookups);
    // clang-format on
    return {share, later, planned};
}

TEST(Profiles, SayHowManyRowsAStepTouches) {
    const sw::AccessProfile profile{
        .samples = 10000, .tables = {{.name = "t", .rows = 50, .lookups = 9001, .seen = {{3, 1, 1}, {7, 9000, 9000}}}}};
    const std::vector<std::vector<std::int64_t>> rows{{1, 0}};
    // clang-format off
sw::RowPlan plan = sw::plan_by_frequency(profile, {"dp", "row"}, rows);
sw::expect_touches(plan, sw::use_of(profile), 512, {.hosts = 2, .ranks_per_host = 2});  // 512 samples a rank and step
plan.tables[0].reduction = sw::RowReduction::dense;                                     // or leave it to what is expected
    // clang-format on
    EXPECT_EQ(plan.tables[0].touches[0], (sw::RowTouches{1, 1, 1}));
}

TEST(Profiles, AreMadeAndUsed) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) { profile_clicks(comm); });
    sw::AccessCounter counter{tables};
    sw::ClickGenerator later{{.rows = {5000, 20000}, .first = 10000, .samples = 5000, .slice = {.batch = 5000}}};
    sw::ClickBatch batch;
    ASSERT_TRUE(later.next(batch));
    counter.add(batch.ids.view());
    const Planned planned = use_profile(counter.profile());
    std::remove("profile.safetensors");
    EXPECT_GT(planned.share, 0.6);
    EXPECT_LT(planned.share, 0.9);
    EXPECT_GT(planned.later, 0.4);
    EXPECT_LT(planned.later, 0.7);
    ASSERT_GT(planned.rows.size(), 1000U);
    EXPECT_EQ(planned.rows.front().row, 0);  // the generator's hottest
    EXPECT_GE(planned.rows.front().lookups, planned.rows[1].lookups);
}

}  // namespace
}  // namespace docs_profiles
