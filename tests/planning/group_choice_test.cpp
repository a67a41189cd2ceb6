// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/group_choice.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/core/error.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/planning/row_law.hpp"
#include "shardwise/planning/table_balance.hpp"
#include "shardwise/planning/workloads.hpp"

namespace {

namespace sw = shardwise;

const sw::Topology world{.hosts = 4, .ranks_per_host = 4};
constexpr std::int64_t samples_a_rank = 128;

/// Tables of very different use, whole on one rank each.
struct Skewed {
    std::vector<sw::TableConfig> tables;
    sw::Workload workload;
    sw::LayerNames names{.shardings = {"table"}};

    Skewed() {
        std::vector<sw::RowDistribution> laws;
        for (int t = 0; t < 20; ++t) {
            const int lookups = t == 0 ? 12 : 1 + t % 3;
            tables.push_back({.name = "t" + std::to_string(t), .rows = 1000 * (1 + t % 5), .dim = 16});
            laws.push_back(sw::row_law("zipf:" + std::to_string(tables.back().rows) + ":1:" + std::to_string(lookups)));
        }
        workload = sw::workload_of(laws, tables, samples_a_rank);
    }
    [[nodiscard]] sw::DrawGroups draw() const {
        return
            [this](const sw::GroupOptions& groups) { return sw::draw_layer(world, tables, names, {.groups = groups}); };
    }
};

std::vector<sw::GroupOptions> ways(sw::GroupPlacement placement) {
    std::vector<sw::GroupOptions> all;
    for (const int count : sw::numbers_of_groups(world, placement)) {
        all.push_back({.count = count});
        if (count > 1) all.back().placement = placement;
    }
    return all;
}

TEST(GroupChoice, NumbersOfGroupsAreThoseThatPlacementsHave) {
    EXPECT_EQ(sw::numbers_of_groups(world, sw::GroupPlacement::across_hosts), (std::vector{1, 2, 4, 8, 16}));
    EXPECT_EQ(sw::numbers_of_groups(world, sw::GroupPlacement::inside_hosts), (std::vector{1, 2, 4}));
    EXPECT_EQ(sw::numbers_of_groups({.hosts = 3, .ranks_per_host = 2}, sw::GroupPlacement::across_hosts),
              (std::vector{1, 3, 6}));
}

// Each number is what blueprints say, put together by hand.
TEST(GroupChoice, IsWhatBlueprintsSay) {
    const Skewed skewed;
    const sw::GroupSetting setting{
        .cluster = {}, .compute = 2e-3, .lookup_rate = 5e9, .flights = 2, .other_bytes = 1000, .room = std::nullopt};
    std::vector<sw::GroupOptions> all = ways(sw::GroupPlacement::across_hosts);
    all.back().sync_every = 4;
    const auto choices = sw::weigh_groups(skewed.draw(), all, skewed.workload, setting);
    ASSERT_EQ(choices.size(), 5U);
    // buffers come in eighths of powers of two
    const double table_bytes = sw::table_bytes(skewed.draw()({}));
    double elements = 0;
    for (const sw::TableConfig& table : skewed.tables)
        elements += static_cast<double>(table.rows) * (table.dim + 1);
    EXPECT_GE(table_bytes, 4 * elements);
    EXPECT_LE(table_bytes, 4 * elements * 9 / 8);
    for (std::size_t i = 0; i < choices.size(); ++i) {
        const sw::GroupChoice& choice = choices[i];
        const int groups = all[i].count;
        SCOPED_TRACE(groups);
        EXPECT_EQ(choice.refused, "");
        EXPECT_TRUE(choice.fits);
        EXPECT_NEAR(choice.overhead, sw::replication_overhead(table_bytes, groups, world.ranks()), 1e-6);
        const sw::LayerBlueprint layer = skewed.draw()(all[i]);
        const sw::ExpectedLayerCost cost = layer.expect_cost(skewed.workload);
        EXPECT_DOUBLE_EQ(choice.step.exchange, sw::seconds(sw::rounded(cost.segments), setting.cluster));
        EXPECT_DOUBLE_EQ(choice.step.sync,
                         sw::seconds(sw::rounded(cost.sync_segments), setting.cluster) / (groups == 16 ? 4 : 1));
        EXPECT_EQ(choice.step.sync == 0, groups == 1);
        EXPECT_EQ(choice.step.compute, 2e-3);
        // every rank's samples look up 4 bytes a column and id, somewhere in the group
        double ids = 0;
        for (const sw::BagLengths& lengths : skewed.workload.lengths)
            ids += lengths.mean();
        EXPECT_NEAR(choice.step.lookup, 4.0 * 16 * ids * samples_a_rank / 5e9, 1e-9 * choice.step.lookup);
        // and which rank does, follows from where tables are, and from nothing that batches go through
        std::vector<sw::TableConfig> loaded = skewed.tables;
        sw::set_loads(loaded, skewed.workload);
        EXPECT_NEAR(choice.step.imbalance, sw::imbalance_of(sw::blocks_of(layer.parts()[0].placement, loaded)), 1e-5);
        double peak = 0;
        double sum = 0;
        for (int rank = 0; rank < world.ranks(); ++rank) {
            sw::MemoryTally flight;
            sw::MemoryTally sync;
            static_cast<void>(layer.expect_cost(skewed.workload, &flight, rank, &sync));
            const auto bytes = static_cast<double>(layer.static_bytes(rank) + 2 * flight.bytes() + sync.bytes()) + 1000;
            peak = std::max(peak, bytes);
            sum += bytes;
        }
        EXPECT_EQ(choice.peak.total(), peak);
        EXPECT_NEAR(choice.mean_bytes, sum / world.ranks(), 1e-6);
    }
    for (std::size_t i = 1; i < choices.size(); ++i)  // fewer ranks have more alike to do
        EXPECT_LE(choices[i].step.imbalance, choices[i - 1].step.imbalance + 1e-12);
    EXPECT_GT(choices[0].step.imbalance, 3);
    EXPECT_NEAR(choices.back().step.imbalance, 1, 1e-12);  // each rank has all tables
}

// What does not fit is no choice, and what is refused says why.
TEST(GroupChoice, TheBestIsTheFastestOfThosePossible) {
    Skewed skewed;
    sw::GroupSetting setting{
        .cluster = {.host = {.latency = 2e-6, .bandwidth = 300e9}, .cross_host = {.latency = 5e-6, .bandwidth = 25e9}},
        .compute = 0,
        .lookup_rate = 1e8};
    auto all = ways(sw::GroupPlacement::across_hosts);
    auto choices = sw::weigh_groups(skewed.draw(), all, skewed.workload, setting);
    const auto best = sw::best_groups(choices);
    ASSERT_TRUE(best);
    EXPECT_EQ(all[*best].count, 16);  // look-ups are slow, and tables small
    for (const sw::GroupChoice& choice : choices)
        EXPECT_GE(choice.step.total(), choices[*best].step.total());
    setting.room = choices[2].peak.total();
    choices = sw::weigh_groups(skewed.draw(), all, skewed.workload, setting);
    EXPECT_TRUE(choices[2].fits);
    EXPECT_FALSE(choices[4].fits);
    ASSERT_TRUE(sw::best_groups(choices));
    EXPECT_LE(choices[*sw::best_groups(choices)].peak.total(), *setting.room);
    setting.room = 10;
    EXPECT_FALSE(sw::best_groups(sw::weigh_groups(skewed.draw(), all, skewed.workload, setting)));
    setting.room.reset();

    all = {{.count = 1}, {.count = 3}, {.count = 2}};
    choices = sw::weigh_groups(skewed.draw(), all, skewed.workload, setting);
    EXPECT_NE(choices[1].refused.find("give one of 1, 2, 4, 8, 16"), std::string::npos) << choices[1].refused;
    EXPECT_FALSE(choices[1].possible());
    EXPECT_EQ(all[*sw::best_groups(choices)].count, 2);
}

}  // namespace
