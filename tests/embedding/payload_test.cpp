// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/sharding/row_plan.hpp"

/// \file
/// Payload by the plan that packs it, tiers of rows among them: moved is what was predicted, and the parts add up to
/// what the communicator counts. And rows that each rank's tables look up.

namespace shardwise_test {
namespace {

namespace sw = shardwise;

struct Case {
    const char* name;
    sw::LayerNames names;
    sw::Topology topology;
};

std::ostream& operator<<(std::ostream& out, const Case& of) {
    return out << of.name;
}

sw::LayerNames tiers(std::vector<std::string> shardings, const char* pooling, const char* collective = "flat") {
    return {.shardings = std::move(shardings), .tiered = true, .collective = collective, .pooling = pooling};
}

std::vector<sw::TableConfig> tables_of(const sw::LayerNames& names) {
    const char* turns[] = {"dp", "table", "row"};
    std::vector<sw::TableConfig> tables;
    for (std::size_t t = 0; t < 3; ++t)
        tables.push_back({.name = "t" + std::to_string(t),
                          .rows = 60 + static_cast<std::int64_t>(t),
                          .dim = 5,
                          .features = t == 1 ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{},
                          .sharding = names.shardings.size() > 1 && !names.tiered ? turns[t] : "",
                          .load = 1.0F,
                          .pooling = names.pooling == "by_table" ? (t == 0 ? "none" : "sum") : ""});
    return tables;
}

constexpr std::int64_t unseen_row = 59;

/// A third of the rows in each tier, and one row that nobody saw.
sw::RowPlan plan_of(const sw::LayerNames& names, const std::vector<sw::TableConfig>& tables) {
    sw::RowPlan plan{.tiers = names.shardings, .tables = {}};
    for (const sw::TableConfig& table : tables) {
        sw::TableRowPlan rows = sw::all_in_last_tier(table.name, table.rows, plan.tiers.size());
        for (std::size_t tier = 0; tier + 1 < plan.tiers.size(); ++tier)
            for (int i = 0; i < 20; ++i, ++rows.tiers[tier], --rows.tiers.back())
                rows.replicated.push_back(3 * i + static_cast<std::int64_t>(tier));
        rows.unseen.assign(static_cast<std::size_t>(table.rows), false);
        rows.unseen[unseen_row] = true;
        plan.tables.push_back(rows);
    }
    return plan;
}

sw::JaggedBatch<std::int64_t> random_batch(std::mt19937& random) {
    sw::JaggedBatch<std::int64_t> batch{
        .samples = static_cast<std::int64_t>(random() % 9), .features = 4, .values = {}, .lengths = {}, .weights = {}};
    for (std::int64_t i = 0; i < 4 * batch.samples; ++i) {
        batch.lengths.push_back(static_cast<std::int32_t>(random() % 4));
        for (int k = 0; k < batch.lengths.back(); ++k)
            batch.values.push_back(static_cast<std::int64_t>(random() % 60));
    }
    return batch;
}

std::int64_t sum(const std::vector<std::int64_t>& numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

class Payload : public testing::TestWithParam<Case> {};

TEST_P(Payload, OfEachPlanMovesAsPredictedAndAddsUpToWhatTheCommunicatorCounts) {
    const sw::LayerNames& names = GetParam().names;
    const sw::Topology& topology = GetParam().topology;
    const std::vector<sw::TableConfig> tables = tables_of(names);
    const sw::RowPlan plan = names.tiered ? plan_of(names, tables) : sw::RowPlan{};
    sw::ThreadWorld world{topology};
    world.run([&](sw::ThreadCommunicator& below) {
        sw::CountingCommunicator comm{below};
        const auto layer = sw::make_layer(comm, tables, names, {.rows = names.tiered ? &plan : nullptr});
        const std::size_t parts = layer->branches().size();
        std::vector<std::int64_t> predicted(parts);
        std::int64_t ids = 0;
        std::int64_t unseen = 0;  // of this rank's look-ups
        comm.reset();
        std::mt19937 random{11};
        for (int step = 0; step < 5; ++step) {
            std::vector<sw::JaggedBatch<std::int64_t>> batches;
            std::vector<sw::JaggedView<std::int64_t>> views;
            for (int rank = 0; rank < topology.ranks(); ++rank)
                batches.push_back(random_batch(random));
            for (const auto& batch : batches) {
                views.push_back(batch.view());
                ids += std::ssize(batch.values);
            }
            const auto of_step = layer->blueprint().predict_payload(layer->predict_cost(views), below.rank());
            ASSERT_EQ(of_step.size(), parts);
            for (std::size_t part = 0; part < parts; ++part)
                predicted[part] += of_step[part];
            const auto& mine = batches[static_cast<std::size_t>(below.rank())].values;
            unseen += std::count(mine.begin(), mine.end(), unseen_row);
            auto flight = layer->start(views[static_cast<std::size_t>(below.rank())]);
            const sw::LayerVectors vectors = layer->forward(flight);
            layer->backward(std::move(flight), vectors);
        }
        EXPECT_EQ(layer->sent_payload(), predicted);
        const sw::Traffic counted = comm.sent().total();
        EXPECT_EQ(sum(layer->sent_payload()), counted.host.payload + counted.cross_host.payload);

        // What all ranks' tables have looked up, by plan.
        const auto rows = sw::all_gather_v<std::int64_t>(below, layer->looked_up_rows());
        const auto lookups = sw::all_gather_v<std::int64_t>(below, layer->row_counts().lookups);
        std::vector<std::int64_t> of_all(parts);
        for (const auto& theirs : rows) {
            EXPECT_GT(sum(theirs), 0);
            for (std::size_t part = 0; part < parts; ++part)
                of_all[part] += theirs.at(part);
        }
        EXPECT_EQ(sum(of_all), ids);
        if (!names.tiered) return;
        EXPECT_GT(layer->blueprint().row_map_bytes(), 0);
        EXPECT_EQ(layer->row_counts().unseen, unseen);
        for (std::size_t part = 0; part < parts; ++part) {
            const bool at_home = names.shardings[part] == "dp" ? topology.ranks() == 1 : false;
            EXPECT_EQ(predicted[part] != 0, !at_home) << layer->branches()[part];
            std::int64_t of_tier = 0;
            for (const auto& theirs : lookups)
                of_tier += theirs.at(part);
            EXPECT_EQ(of_all[part], of_tier) << layer->branches()[part];
        }
    });
}

INSTANTIATE_TEST_SUITE_P(
    Of, Payload,
    testing::Values(Case{"three_tiers", tiers({"dp", "flex", "row"}, "sum"), {2, 2}},
                    Case{"three_tiers_of_sequences", tiers({"dp", "flex", "row"}, "none"), {2, 3}},
                    Case{"three_tiers_and_relays", tiers({"dp", "flex", "row"}, "mean", "two_stage"), {2, 2}},
                    Case{"no_flex", tiers({"dp", "row"}, "sum"), {3, 2}},
                    Case{"no_dp", tiers({"flex", "row"}, "none", "hierarchical"), {2, 2}},
                    Case{"one_plan", {.shardings = {"row"}}, {2, 2}},
                    Case{"mixed", {.shardings = {"dp", "table", "row"}}, {2, 2}},
                    Case{"sums_and_sequences", {.shardings = {"row"}, .pooling = "by_table"}, {2, 2}}),
    [](const auto& of) { return std::string{of.param.name}; });

}  // namespace
}  // namespace shardwise_test
