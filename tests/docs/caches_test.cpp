// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The code of docs/caches.md.

#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/data/generator.hpp"
#include "shardwise/data/hot_batches.hpp"
#include "shardwise/data/loader.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/planning/cache_replay.hpp"
#include "shardwise/planning/cache_sizing.hpp"
#include "shardwise/planning/cached_samples.hpp"
#include "shardwise/planning/row_law.hpp"
#include "shardwise/planning/row_plans.hpp"
#include "shardwise/planning/workloads.hpp"
#include "shardwise/shardwise.hpp"

namespace docs_caches {
namespace {

namespace sw = shardwise;

TEST(Caches, ByFormula) {
    // clang-format off
    const sw::CacheTable table = sw::cache_table("item", sw::row_law("zipf:3000"), 64);
    const double distinct = table.unique(500);  // U(500): rows that 500 samples look up, each counted once
    const sw::CacheCosts costs{{table}, {.memory = 100'000, .activation = 200, .least_batch = 64}};
    const sw::CacheSize best = sw::best_cache(costs);  // 1362 rows, which leave room for 64.16 samples
    const double saved = 1 - best.cost / best.cost_uncached;
    const sw::CacheCosts::Step next = costs.step(1000);  // what one row more than 1000 does: next.saved, next.lost
    // clang-format on
    EXPECT_NEAR(distinct, 252.6, 20);
    EXPECT_EQ(best.cached, 1362);
    EXPECT_NEAR(best.batch, 64.16, 1e-9);
    EXPECT_NEAR(saved, 1 - 6.875179576 / 33.557549, 1e-6);
    EXPECT_TRUE(next.pays());
}

TEST(Caches, OfAProfile) {
    const int dim = 16;
    const sw::AccessProfile profile{
        .samples = 100,
        .tables = {{.name = "user", .rows = 50, .lookups = 90, .seen = {{3, 60, 60}, {9, 30, 30}}},
                   {.name = "item", .rows = 80, .lookups = 40, .seen = {{0, 40, 40}}}}};
    // clang-format off
    std::vector<sw::CacheTable> tables;
    for (const sw::TableAccess& table : profile.tables)
        tables.push_back(sw::cache_table(table, profile.samples, dim));
    const sw::CacheCosts costs{tables, {.memory = 200, .activation = 2, .least_batch = 64}};
    const std::vector<std::int64_t> cached = costs.rows_of_tables(sw::best_cache(costs).cached);
    std::vector<std::vector<std::int64_t>> tiers;  // (table): rows in dp, and the others
    for (std::size_t t = 0; t < cached.size(); ++t)
        tiers.push_back({cached[t], profile.tables[t].rows - cached[t]});
    const sw::RowPlan plan = sw::plan_by_frequency(profile, {"dp", "row"}, tiers);
    // clang-format on
    EXPECT_EQ(cached, (std::vector<std::int64_t>{2, 1}));
    EXPECT_EQ(plan.tables[0].replicated, (std::vector<std::int64_t>{3, 9}));
}

TEST(Caches, ExpectedBytes) {
    const sw::AccessProfile profile{
        .samples = 100, .tables = {{.name = "item", .rows = 80, .lookups = 100, .seen = {{3, 60, 60}, {9, 40, 40}}}}};
    // clang-format off
    const std::vector<sw::TableConfig> tables = {{.name = "item", .rows = 80, .dim = 16}};
    const sw::LayerBlueprint layer = sw::draw_layer({.hosts = 2, .ranks_per_host = 2}, tables, {.requests = "coalesced"});
    const sw::ExpectedLayerCost cost = layer.expect_cost(sw::workload_of(profile, tables, 512));
    const double across_hosts = cost.forward.total().cross_host.payload;
    // clang-format on
    EXPECT_GT(across_hosts, 0);
}

TEST(Caches, OnATrace) {
    std::vector<std::int64_t> trace;
    for (std::int64_t i = 0; i < 4000; ++i)
        trace.push_back(i % 7 == 0 ? i % 200 : i / 2000 * 100 + i % 20);
    // clang-format off
    const std::vector<std::int64_t> sizes = {20, 60};
    for (const sw::CacheHits& hits : sw::replay_caches(trace, sizes))
        if (!hits.predicts()) break;  // hits.second_half, far below hits.shuffled: what was hot did not stay so
    const sw::WindowRows windows = sw::distinct_in_windows(trace, 100);  // windows.expected, .in_order, .shuffled
    // clang-format on
    EXPECT_FALSE(sw::replay_caches(trace, sizes)[0].predicts());
    EXPECT_LT(windows.in_order, windows.expected);
}

using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Tiered<sw::DP, sw::Row>>>;

sw::MatrixView<const float> gradient_of(const sw::MatrixView<const float>& output, std::int64_t) {
    return output;
}

template <class Loader>
std::int64_t train(sw::CommunicatorRef comm, Layer& layer, Loader& loader) {
    std::int64_t hot = 0;
    // clang-format off
    sw::HotBatches batches{comm, loader, sw::HotRows{layer}, {.batch = 8, .hot_batch = 32},
                           2, 2};  // dense columns and features of an empty batch
    sw::ClickBatch batch;
    while (batches.announce(batch)) {
        const std::int64_t global_samples = batches.global_samples();
        if (batches.failed()) batches.fail();
        auto flight = layer.start(batch.ids.view(), batches.kind());
        const auto output = layer.forward(flight);
        layer.backward(std::move(flight), gradient_of(output, global_samples));
        if (batches.kind() == sw::BatchKind::hot) hot += global_samples;
    }
    if (batches.global_samples() != 0 || batches.failed()) batches.fail();  // no sample is left on any rank
    // clang-format on
    return hot;
}

TEST(Caches, HotBatches) {
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        const std::vector<sw::TableConfig> tables = {{.name = "user", .rows = 50, .dim = 4},
                                                     {.name = "item", .rows = 80, .dim = 8}};
        sw::RowPlan plan{.tiers = {"dp", "row"}, .tables = {}};
        for (const sw::TableConfig& table : tables)
            plan.tables.push_back({.table = table.name, .rows = table.rows, .tiers = {20, table.rows - 20}});
        Layer layer{comm, tables, {.rows = &plan}};
        sw::PrefetchingLoader loader{
            sw::ClickGenerator{{.rows = {50, 80},
                                .dense_columns = 2,
                                .samples = 1000,
                                .slice = {.batch = 16, .rank = comm.rank(), .ranks = comm.size()}}}};
        const std::int64_t hot = train(comm, layer, loader);
        EXPECT_GT(hot, 300);
        EXPECT_LT(hot, 1000);
        sw::CachedSamples cached{{.samples = 1,
                                  .tables = {{.name = "user", .rows = 50, .lookups = 1, .seen = {{0, 1, 1}}},
                                             {.name = "item", .rows = 80, .lookups = 1, .seen = {{0, 1, 1}}}}},
                                 tables,
                                 2,
                                 1};
        EXPECT_EQ(cached.hot(), 0);
    });
}

}  // namespace
}  // namespace docs_caches
