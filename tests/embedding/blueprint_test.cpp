// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/embedding/runtime/blueprint.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/plan/cost.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/row_plan.hpp"
#include "shardwise/sharding/table.hpp"
#include "shardwise/topology/cluster.hpp"

namespace shardwise_test {
namespace {

namespace sw = shardwise;

template <class S, class C>
using Layer = sw::EmbeddingLayer<sw::Sharding<S>, sw::Collective<C>, sw::Optimizer<sw::Sgd>>;

std::vector<sw::TableConfig> tables(int count, int dim) {
    std::vector<sw::TableConfig> all;
    for (int t = 0; t < count; ++t)
        all.push_back({.name = "t" + std::to_string(t), .rows = 1000, .dim = dim});
    return all;
}

/// One batch a rank.
struct Batches {
    Batches(int ranks, std::int64_t samples, int features, int bag) : all(static_cast<std::size_t>(ranks)) {
        std::int64_t id = 1;
        for (auto& batch : all) {
            batch.samples = samples;
            batch.features = features;
            for (std::int64_t i = 0; i < samples * features * bag; ++i)
                batch.values.push_back(id = id * 421 % 997);
            if (bag != 1) batch.lengths.assign(static_cast<std::size_t>(samples * features), bag);
            views.push_back(batch.view());
        }
    }
    std::vector<sw::JaggedBatch<std::int64_t>> all;
    std::vector<sw::JaggedView<std::int64_t>> views;
};

template <class S, class C>
double seconds(const sw::Topology& topology, const Batches& batches, int features, int dim) {
    // bytes alone, as of batches that are large against latencies
    const sw::Cluster cluster{.host = {.latency = 0, .bandwidth = 300e9},
                              .cross_host = {.latency = 0, .bandwidth = 25e9}};
    return sw::seconds(Layer<S, C>::blueprint(topology, tables(features, dim)).predict_cost(batches.views).segments,
                       cluster);
}

TEST(Blueprint, IsTheLayerOnPaper) {
    const sw::Topology topology{.hosts = 2, .ranks_per_host = 2};
    const Batches batches{4, 7, 3, 2};
    using Columns = Layer<sw::Col<3>, sw::Hierarchical>;
    const sw::LayerBlueprint drawn = Columns::blueprint(topology, tables(3, 10));
    sw::ThreadWorld world{topology};
    world.run([&](sw::ThreadCommunicator& comm) {
        Columns layer{comm, tables(3, 10)};
        sw::MemoryTally of_layer;
        sw::MemoryTally on_paper;
        const sw::LayerCost cost = layer.predict_cost(batches.views, &of_layer);
        const sw::LayerCost expected = drawn.predict_cost(batches.views, &on_paper, comm.rank());
        EXPECT_EQ(cost.forward, expected.forward);
        EXPECT_EQ(cost.backward, expected.backward);
        EXPECT_GT(cost.forward.total().cross_host.payload, 0);
        EXPECT_EQ(of_layer.bytes(), on_paper.bytes());
        EXPECT_EQ(layer.predict_static_bytes(comm.rank()), drawn.static_bytes(comm.rank()));
        EXPECT_EQ(layer.memory().static_bytes(), drawn.static_bytes(comm.rank()));
    });
}

TEST(Blueprint, NeedsNoMemoryForItsTables) {
    std::vector<sw::TableConfig> large = tables(26, 128);
    for (sw::TableConfig& table : large)
        table.rows = std::int64_t{1} << 36;
    const sw::LayerBlueprint drawn = Layer<sw::Row, sw::Flat>::blueprint({.hosts = 128, .ranks_per_host = 8}, large);
    EXPECT_EQ(drawn.static_bytes(5), 26 * (std::int64_t{1} << 26) * 128 * 4);
    EXPECT_EQ(drawn.features().width, 26 * 128);
}

TEST(Blueprint, SaysWhatIsWrong) {
    const auto error_of = [](const sw::Topology& topology, int rank) -> std::string {
        try {
            const sw::LayerBlueprint drawn = Layer<sw::Col<4>, sw::Hierarchical>::blueprint(topology, tables(2, 8));
            static_cast<void>(drawn.static_bytes(rank));
        } catch (const sw::BadInput& error) {
            return error.what();
        }
        return {};
    };
    EXPECT_EQ(error_of({.hosts = 4, .ranks_per_host = 2, .hosts_per_tower = 2}, 7), "");
    EXPECT_EQ(error_of({.hosts = 4, .ranks_per_host = 2, .hosts_per_tower = 3}, 0),
              "towers of 3 hosts, of 4: give a number that divides the hosts");
    EXPECT_EQ(error_of({.hosts = 4, .ranks_per_host = 2, .hosts_per_tower = 0}, 0),
              "towers of 0 hosts, of 4: give a number that divides the hosts");
    EXPECT_EQ(error_of({.hosts = 0, .ranks_per_host = 2}, 0), "0 hosts of 2 ranks: at least one of each is needed");
    EXPECT_EQ(error_of({.hosts = 2, .ranks_per_host = 2}, 4), "rank 4 of 4: ranks are numbered from 0");
}

// Loads that a rank counted by itself may differ: the first flight says so.
TEST(Blueprint, RanksAgreeOnLoads) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    EXPECT_THROW(world.run([](sw::ThreadCommunicator& comm) {
        auto all = tables(2, 8);
        all[0].load = static_cast<float>(1 + comm.rank());
        Layer<sw::Col<2>, sw::Flat> layer{comm, all};
        const Batches batches{2, 3, 2, 1};
        static_cast<void>(layer.forward(batches.views[0]));
    }),
                 sw::Mismatch);
}

// Section 3.1.3 of Disaggregated Multi-Tower: columns for single ids and large batches, rows for many ids and small
// ones.
TEST(Blueprint, SaysWhetherRowsOrColumnsAreCheaperInATower) {
    const sw::Topology topology{.hosts = 4, .ranks_per_host = 4};
    const auto rows_over_columns = [&](std::int64_t samples, int bag) {
        const Batches batches{16, samples, 8, bag};
        return seconds<sw::Row, sw::Hierarchical>(topology, batches, 8, 64) /
               seconds<sw::Col<>, sw::Hierarchical>(topology, batches, 8, 64);
    };
    EXPECT_GT(rows_over_columns(64, 1), 1.1);
    EXPECT_LT(rows_over_columns(64, 60), 0.9);
    EXPECT_GT(rows_over_columns(64, 1), rows_over_columns(64, 10));
    EXPECT_GT(rows_over_columns(64, 10), rows_over_columns(64, 60));
}

// With as many tables as half of the ranks, blocks by load keep all of them busy, and ids travel twice, not to all.
TEST(Blueprint, BlocksByLoadKeepFewTablesOnManyRanks) {
    const sw::Topology topology{.hosts = 2, .ranks_per_host = 8};
    const Batches batches{16, 64, 8, 1};
    const double whole = seconds<sw::Table, sw::Flat>(topology, batches, 8, 64);
    const double by_load = seconds<sw::Col<2>, sw::Flat>(topology, batches, 8, 64);
    const double everywhere = seconds<sw::Col<>, sw::Flat>(topology, batches, 8, 64);
    EXPECT_LT(by_load, 0.6 * whole);
    EXPECT_LT(by_load, 0.95 * everywhere);
}

TEST(Blueprint, ARowPlanHasTheLayersTiersInEachTable) {
    const auto draw = [](std::vector<std::int64_t> tiers) {
        const sw::RowPlan rows{
            .tiers = {"dp", "row"},
            .tables = {{.table = "t", .rows = 100, .tiers = std::move(tiers), .replicated = {}, .unseen = {}}}};
        static_cast<void>(sw::draw_layer({.hosts = 1, .ranks_per_host = 2}, {{.name = "t", .rows = 100, .dim = 4}},
                                         {.shardings = {"dp", "row"}, .tiered = true}, {.rows = &rows}));
    };
    EXPECT_NO_THROW(draw({10, 90}));
    EXPECT_THROW(draw({10, 20, 70}), sw::BadInput);
    EXPECT_THROW(draw({100}), sw::BadInput);
}

/// Bytes of a step's sums of rows, where both ranks touch so many of the rows 0, 1, 2, ... of a table of 64.
std::int64_t sum_bytes(std::int64_t touched, const sw::TableRowPlan& plan) {
    using Tiers = sw::Tiered<sw::DP, sw::Row>;
    const sw::RowPlan rows{.tiers = {"dp", "row"}, .tables = {plan}};
    const auto blueprint = sw::EmbeddingLayer<sw::Sharding<Tiers>>::blueprint(
        {.hosts = 1, .ranks_per_host = 2}, {{.name = "t", .rows = 64, .dim = 4}}, {.rows = &rows});
    sw::JaggedBatch<std::int64_t> batch;
    batch.samples = touched;
    batch.features = 1;
    for (std::int64_t row = 0; row < touched; ++row)
        batch.values.push_back(row);
    const sw::LayerCost cost = blueprint.predict_cost(std::vector{batch.view(), batch.view()});
    return cost.backward.total().host.payload;
}

TEST(Blueprint, TheSumsOfATierTravelAsThePlanExpectsToBeCheaper) {
    sw::TableRowPlan plan{.table = "t", .rows = 64, .tiers = {64, 0}, .replicated = {}, .unseen = {}};
    const std::int64_t touched = 2 * 2 * 64 * (4 + 16) / 2;  // up and back, of each rank half the rows
    const std::int64_t dense = 2 * 2 * (32 * 16 + 4);
    EXPECT_EQ(sum_bytes(64, plan), touched);
    EXPECT_EQ(sum_bytes(8, plan), touched / 8);
    plan.reduction = sw::RowReduction::dense;
    EXPECT_EQ(sum_bytes(64, plan), dense);
    EXPECT_EQ(sum_bytes(8, plan), dense);
    plan.reduction.reset();
    plan.touches = {{.rank = 8, .host = 64, .world = 64}, {}};
    EXPECT_EQ(sum_bytes(64, plan), touched / 2 + dense / 2);  // up touched, back dense
    plan.reduction = sw::RowReduction::touched;
    EXPECT_EQ(sum_bytes(64, plan), touched);
}

/// Payload of the sums of one step in which each of four ranks looks up all 64 rows, 16 in DP, 16 in Flex, inside and
/// across hosts. Parts of sums are 8 bytes of each element, whole ones 4.
sw::Traffic sums_of_tiers(const sw::TableRowPlan& plan) {
    const sw::RowPlan rows{.tiers = {"dp", "flex", "row"}, .tables = {plan}};
    const sw::LayerBlueprint blueprint =
        sw::draw_layer({.hosts = 2, .ranks_per_host = 2}, {{.name = "t", .rows = 64, .dim = 1}},
                       {.shardings = rows.tiers, .tiered = true, .order = "wide_tree"}, {.rows = &rows});
    sw::JaggedBatch<std::int64_t> batch;
    batch.samples = 64;
    batch.features = 1;
    for (std::int64_t row = 0; row < 64; ++row)
        batch.values.push_back(row);
    return blueprint.predict_cost(std::vector(4, batch.view())).backward.total();
}

/// Each tier and level chooses by what is expected of itself: where it alone is expected to touch all rows, its own
/// messages get shorter, by what a number a row takes above a bit.
TEST(Blueprint, EachTierAndLevelOfSumsChoosesByItsOwnExpectation) {
    sw::TableRowPlan plan{.table = "t", .rows = 64, .tiers = {16, 16, 32}, .replicated = {}, .unseen = {}};
    plan.touches.resize(3);
    const sw::Traffic touched = sums_of_tiers(plan);
    const auto saved = [&](std::size_t tier, std::int64_t sw::RowTouches::*level, std::int64_t rows) {
        sw::TableRowPlan one = plan;
        one.touches[tier].*level = rows;
        const sw::Traffic cost = sums_of_tiers(one);
        return std::pair{touched.host.payload - cost.host.payload,
                         touched.cross_host.payload - cost.cross_host.payload};
    };
    using Saved = std::pair<std::int64_t, std::int64_t>;
    // Of n rows in a message, 4 n bytes of numbers become n / 8 of bits.
    const auto message = [](std::int64_t rows) { return 4 * rows - (rows + 7) / 8; };
    // DP: each rank sends its host's other rank half of the rows, and each rank a quarter of them to the other host.
    EXPECT_EQ(saved(0, &sw::RowTouches::rank, 16), (Saved{4 * message(8), 0}));
    EXPECT_EQ(saved(0, &sw::RowTouches::host, 16), (Saved{0, 4 * message(4)}));
    EXPECT_EQ(saved(0, &sw::RowTouches::world, 16), (Saved{4 * message(8), 4 * message(4)}));
    // Flex: a rank has half of the rows, and sends half of these to the other host.
    EXPECT_EQ(saved(1, &sw::RowTouches::rank, 16), (Saved{0, 0}));
    EXPECT_EQ(saved(1, &sw::RowTouches::host, 16), (Saved{0, 4 * message(4)}));
    EXPECT_EQ(saved(1, &sw::RowTouches::world, 16), (Saved{0, 4 * message(4)}));
    // Of 16 rows 10 touched: a part of a sum, of 8 bytes, travels touched, a whole one, of 4, dense.
    EXPECT_EQ(saved(0, &sw::RowTouches::host, 10), (Saved{0, 0}));
    EXPECT_EQ(saved(0, &sw::RowTouches::world, 10), (Saved{4 * message(8), 4 * message(4)}));
}

}  // namespace
}  // namespace shardwise_test
