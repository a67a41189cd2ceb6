// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// Sequences drawn from the laws of published models, one row in a hundred, in tiers as FlexShard plans them: what was
/// planned and expected against what ranks moved, looked up, touched and kept.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/data/keyed_random.hpp"
#include "shardwise/data/row_sampler.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/planning/flexshard.hpp"
#include "shardwise/planning/library_memory.hpp"
#include "shardwise/planning/merged_rows.hpp"
#include "shardwise/planning/row_law.hpp"
#include "shardwise/planning/row_plans.hpp"
#include "shardwise/planning/workloads.hpp"

namespace {

namespace sw = shardwise;

constexpr sw::Topology topology{.hosts = 2, .ranks_per_host = 4};
constexpr std::int64_t samples = 4096;  // a rank
constexpr int dim = 64;
constexpr int steps = 7;  // over a million look-ups

struct Model {
    const char* name;
    const char* law;
};
const Model rm1{"RM-1", "slopes:300000:1001:3462:12844:0.00128173828125:0.643688:1.087021:1.081441:1.025404"};
const Model rm3{"RM-3", "slopes:100000:367:1153:3549:0.00128173828125:0.573397:0.849764:0.915061:0.890823"};

/// How rows are placed, and what of the look-ups stays out of the last tier by the plan.
struct Placed {
    sw::LayerNames names{.shardings = {"row"}, .pooling = "none"};
    sw::RowPlan rows;
    double coverage = 0;

    [[nodiscard]] const sw::RowPlan* plan() const { return names.tiered ? &rows : nullptr; }
};
enum class Memory { paper, library };

/// By FlexShard for 4 hosts of 8 ranks; by the library's model for the ranks that there are.
Placed placed(const sw::RowDistribution& law, bool flex, Memory model) {
    const sw::Scaling scaling{
        .topology = model == Memory::paper ? sw::Topology{.hosts = 4, .ranks_per_host = 8} : topology,
        .batch = samples};
    Placed result;
    const sw::RowMemory memory =
        model == Memory::paper ? sw::paper_row_memory(scaling) : sw::library_row_memory(scaling, {.pooling = "none"});
    const sw::MergedRows rows{{{"item", law, dim}}, 1};
    const sw::FlexShardOptions options{.flex = flex, .cut = sw::FlexShardCut::flex};
    const sw::FlexShardPlan plan = sw::plan_flexshard(rows, scaling, memory, options);
    result.rows = sw::plan_in_order(rows, plan, options, {.topology = topology, .batch = samples});
    result.rows.tables[0].reduction = sw::RowReduction::touched;
    result.names.shardings = result.rows.tiers;
    result.names.tiered = true;
    result.coverage = 1.0 - plan.tables[0].row.lookups / law.lookups();
    return result;
}

/// What all ranks did in all steps, but for memory, which is rank 0's.
struct Seen {
    sw::Traffic sent;
    std::int64_t last_tier = 0;           ///< payload
    std::vector<std::int64_t> looked_up;  ///< (rank): rows
    double touched_by_rank = 0;           ///< distinct rows a step, in the mean
    double touched_by_all = 0;
    std::int64_t peak_bytes = 0;
    std::int64_t predicted_peak = 0;
};

sw::JaggedBatch<std::int64_t> draw(const sw::RowDistribution& law, const sw::RowSampler& sampler, int rank, int step) {
    sw::KeyedRandom random{3, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step)};
    sw::JaggedBatch<std::int64_t> batch;
    batch.samples = samples;
    batch.features = 1;
    const auto mean = law.lookups();
    for (std::int64_t i = 0; i < samples; ++i) {  // the two lengths next to the mean
        const auto length = static_cast<std::int32_t>(std::floor(mean * static_cast<double>(i + 1)) -
                                                      std::floor(mean * static_cast<double>(i)));
        batch.lengths.push_back(length);
        for (std::int32_t k = 0; k < length; ++k)
            batch.values.push_back(sampler(random));
    }
    return batch;
}

std::vector<sw::TableConfig> tables(const sw::RowDistribution& law) {
    return {{.name = "item", .rows = law.rows(), .dim = dim}};
}

Seen run(const sw::RowDistribution& law, const Placed& how) {
    const sw::RowSampler sampler{law};
    Seen seen;
    seen.looked_up.resize(static_cast<std::size_t>(topology.ranks()));
    std::vector<std::vector<sw::JaggedBatch<std::int64_t>>> batches;  // (step, rank)
    for (int step = 0; step < steps; ++step) {
        batches.emplace_back();
        std::set<std::int64_t> all;
        for (int rank = 0; rank < topology.ranks(); ++rank) {
            const auto& batch = batches.back().emplace_back(draw(law, sampler, rank, step));
            const std::set<std::int64_t> mine{batch.values.begin(), batch.values.end()};
            seen.touched_by_rank += static_cast<double>(mine.size()) / steps / topology.ranks();
            all.insert(mine.begin(), mine.end());
        }
        seen.touched_by_all += static_cast<double>(all.size()) / steps;
    }
    std::vector<sw::Traffic> sent(seen.looked_up.size());
    std::vector<std::int64_t> last_tier(seen.looked_up.size());
    sw::ThreadWorld world{topology};
    world.run([&](sw::ThreadCommunicator& below) {
        sw::CountingCommunicator<sw::ThreadCommunicator> comm{below};
        const auto me = static_cast<std::size_t>(comm.rank());
        const auto layer = sw::make_layer(comm, tables(law), how.names, {.rows = how.plan()});
        sw::MemoryTally tally;
        for (auto& ranks : batches) {
            std::vector<sw::JaggedView<std::int64_t>> views;
            for (const auto& batch : ranks)
                views.push_back(batch.view());
            if (me == 0) static_cast<void>(layer->predict_cost(views, &tally));
            auto flight = layer->start(views[me]);
            const sw::MatrixView<const float> rows = layer->forward(flight).sequences[0];
            layer->backward(std::move(flight), {.sequences = {&rows, 1}});
        }
        sent[me] = comm.sent().sent_by(comm.rank());
        last_tier[me] = layer->sent_payload().back();
        for (const std::int64_t rows : layer->looked_up_rows())
            seen.looked_up[me] += rows;
        if (me != 0) return;
        seen.peak_bytes = layer->memory().peak_bytes();
        seen.predicted_peak = layer->predict_static_bytes(0) + tally.bytes();
    });
    for (std::size_t rank = 0; rank < sent.size(); ++rank) {
        seen.sent += sent[rank];
        seen.last_tier += last_tier[rank];
    }
    return seen;
}

class AtSize : public testing::TestWithParam<Model> {};

TEST_P(AtSize, PlansKeepWhatTheyPromise) {
    const sw::RowDistribution law = sw::row_law(GetParam().law);
    const Seen row = run(law, {});
    const auto near = [](double actual, double expected, const std::string& what) {
        EXPECT_NEAR(actual / expected, 1.0, 0.01) << what;
    };
    for (const Memory model : {Memory::paper, Memory::library})
        for (const bool flex : {false, true}) {
            const Placed tiers = placed(law, flex, model);
            const std::string where = std::string{flex ? "three" : "two"} + " tiers, " +
                                      (model == Memory::paper ? "the paper's model" : "the library's");
            SCOPED_TRACE(where);
            const Seen seen = run(law, tiers);
            // vectors of the last tier, and their ids and gradients, which travel with them
            const double fall = 1.0 - static_cast<double>(seen.last_tier) / static_cast<double>(row.last_tier);
            EXPECT_NEAR(fall, tiers.coverage, 0.02);
            EXPECT_GT(tiers.coverage, 0.2);
            EXPECT_EQ(seen.peak_bytes, seen.predicted_peak);
            EXPECT_LE(seen.peak_bytes, row.peak_bytes);

            const auto busiest = static_cast<double>(*std::max_element(seen.looked_up.begin(), seen.looked_up.end()));
            std::int64_t all = 0;
            for (const std::int64_t rows : seen.looked_up)
                all += rows;
            EXPECT_GT(all, 1'000'000);
            EXPECT_LT(busiest * topology.ranks() / static_cast<double>(all), 1.05);

            const sw::LayerBlueprint layer = sw::draw_layer(topology, tables(law), tiers.names, {.rows = tiers.plan()});
            const sw::ExpectedLayerCost cost =
                layer.expect_cost(sw::workload_of(std::vector{law}, layer.tables(), samples));
            sw::TrafficOf<double> expected = cost.forward.total();
            expected += cost.backward.total();
            near(static_cast<double>(seen.sent.host.payload), steps * expected.host.payload, "bytes in hosts");
            near(static_cast<double>(seen.sent.cross_host.payload), steps * expected.cross_host.payload,
                 "bytes across hosts");
            EXPECT_EQ(seen.sent.cross_host.messages, steps * std::llround(expected.cross_host.messages));
            near(seen.touched_by_rank, cost.all_touched().rank, "rows that a rank touches");
            near(seen.touched_by_all, cost.all_touched().world, "rows that all ranks touch");
            std::printf("%s, %s: coverage %.4f, fell by %.4f; peak %.1f MB of %.1f; busiest rank %.4f\n",
                        GetParam().name, where.c_str(), tiers.coverage, fall,
                        1e-6 * static_cast<double>(seen.peak_bytes), 1e-6 * static_cast<double>(row.peak_bytes),
                        busiest * topology.ranks() / static_cast<double>(all));
        }
}

INSTANTIATE_TEST_SUITE_P(Models, AtSize, testing::Values(rm1, rm3),
                         [](const auto& model) { return model.index == 0 ? "RM1" : "RM3"; });

}  // namespace
