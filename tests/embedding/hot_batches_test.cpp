// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/flex.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/row_plan.hpp"

/// \file
/// Hot batches that are not: what is wrong with them, whose bits and bytes the laws check.

namespace shardwise_test {
namespace {

namespace sw = shardwise;

struct Kind {
    const char* name;
    sw::LayerNames names;
};
std::ostream& operator<<(std::ostream& out, const Kind& of) {
    return out << of.name;
}

const std::vector<sw::TableConfig> users_and_items = {
    {.name = "user", .rows = 50, .dim = 4}, {.name = "item", .rows = 90, .dim = 3, .features = {"seen", "bought"}}};

/// Rows 7 and 3 of users, 0 and 80 of items are on every rank.
sw::RowPlan hot_plan_of(const std::vector<std::string>& tiers) {
    sw::RowPlan plan{.tiers = tiers, .tables = {}};
    for (const sw::TableConfig& table : users_and_items) {
        sw::TableRowPlan& rows = plan.tables.emplace_back(sw::all_in_last_tier(table.name, table.rows, tiers.size()));
        rows.tiers[0] = 2;
        rows.tiers.back() -= 2;
        rows.replicated = table.name == "user" ? std::vector<std::int64_t>{7, 3} : std::vector<std::int64_t>{0, 80};
    }
    return plan;
}

/// Two samples. \param last  the last id, of feature "bought"
sw::JaggedBatch<std::int64_t> hot_or_cold(std::int64_t last) {
    return {.samples = 2, .features = 3, .values = {7, 3, 80, 0, 0, last}, .lengths = {}, .weights = {}};
}

void learn(sw::LayerBase& layer, sw::LayerFlight flight) {
    const sw::LayerVectors result = layer.forward(flight);
    layer.backward(std::move(flight), result);
}

class HotBatches : public testing::TestWithParam<Kind> {};

TEST_P(HotBatches, AColdIdIsTheSameErrorOnEveryRankAndTheLayerGoesOn) {
    const sw::RowPlan plan = hot_plan_of(GetParam().names.shardings);
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {2, 2}, .deadline = std::chrono::seconds{20}}};
    std::atomic<int> errors{0};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto layer = sw::make_layer(comm, users_and_items, GetParam().names, {.rows = &plan});
        for (int round = 0; round < 3; ++round) {
            auto flight = layer->start(hot_or_cold(comm.rank() == 2 ? 41 : 80).view(), sw::BatchKind::hot);
            try {
                static_cast<void>(layer->forward(flight));
            } catch (const sw::BadInput& error) {
                EXPECT_EQ(std::string{error.what()},
                          "rank 2: a hot batch with id 41 of table 'item', a row of tier 'row': give it rows of tier "
                          "'dp' alone, which every rank has");
                ++errors;
            }
            learn(*layer, layer->start(hot_or_cold(80).view(), sw::BatchKind::hot));
            learn(*layer, layer->start(hot_or_cold(41).view()));
            auto wrong = layer->start(hot_or_cold(comm.rank() == 1 ? 90 : 80).view(), sw::BatchKind::hot);
            try {
                static_cast<void>(layer->forward(wrong));
            } catch (const sw::BadInput& error) {
                EXPECT_EQ(std::string{error.what()}.find("rank 1: feature 'bought', sample 1: id 90 is not a row"), 0U);
                ++errors;
            }
        }
        EXPECT_EQ(layer->steps(), 6);
    });
    EXPECT_EQ(errors, 4 * 6);
}

TEST_P(HotBatches, RanksWithBatchesOfSeveralKindsAreToldSo) {
    const sw::RowPlan plan = hot_plan_of(GetParam().names.shardings);
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {1, 3}, .deadline = std::chrono::seconds{20}}};
    EXPECT_THROW(world.run([&](sw::ThreadCommunicator& comm) {
        const auto layer = sw::make_layer(comm, users_and_items, GetParam().names, {.rows = &plan});
        auto flight = layer->start(hot_or_cold(80).view(), comm.rank() == 1 ? sw::BatchKind::hot : sw::BatchKind::any);
        static_cast<void>(layer->forward(flight));
    }),
                 sw::Mismatch);
}

TEST_P(HotBatches, MoveNothingForTheirSamples) {
    const sw::RowPlan plan = hot_plan_of(GetParam().names.shardings);
    sw::ThreadWorld world{sw::Topology{2, 2}};
    world.run([&](sw::ThreadCommunicator& below) {
        sw::CountingCommunicator comm{below};
        const auto layer = sw::make_layer(comm, users_and_items, GetParam().names, {.rows = &plan});
        const auto payload = [&] {
            const sw::Traffic counted = comm.sent().total();
            return counted.host.payload + counted.cross_host.payload;
        };
        auto flight = layer->start(hot_or_cold(80).view(), sw::BatchKind::hot);
        const sw::LayerVectors result = layer->forward(flight);
        EXPECT_EQ(payload(), 0);  // no id, no vector: envelopes of one agreement alone
        EXPECT_EQ(comm.sent().total().host.messages + comm.sent().total().cross_host.messages, 3);
        layer->backward(std::move(flight), result);
        EXPECT_GT(payload(), 0);  // the sums of the rows
        const std::vector<std::int64_t> sent = layer->sent_payload();
        EXPECT_EQ(sent.at(0), payload());
        EXPECT_EQ(std::accumulate(sent.begin() + 1, sent.end(), std::int64_t{0}), 0);
        EXPECT_EQ(layer->row_counts().lookups.at(0), 6);
        EXPECT_EQ(layer->row_counts().lookups.size(), GetParam().names.shardings.size());
        learn(*layer, layer->start(hot_or_cold(41).view()));
        EXPECT_EQ(layer->row_counts().lookups.back(), 1);
        EXPECT_EQ(std::accumulate(sent.begin(), sent.end(), std::int64_t{0}) != payload(), true);
        const std::vector<std::int64_t> both = layer->sent_payload();
        EXPECT_EQ(std::accumulate(both.begin(), both.end(), std::int64_t{0}), payload());
    });
}

sw::LayerNames tiers(std::vector<std::string> shardings, const char* pooling, const char* requests,
                     const char* collective = "flat") {
    return {.shardings = std::move(shardings),
            .tiered = true,
            .collective = collective,
            .pooling = pooling,
            .requests = requests};
}

INSTANTIATE_TEST_SUITE_P(Of, HotBatches,
                         testing::Values(Kind{"sums", tiers({"dp", "row"}, "sum", "raw")},
                                         Kind{"means_of_three_tiers", tiers({"dp", "flex", "row"}, "mean", "raw")},
                                         Kind{"sequences", tiers({"dp", "row"}, "none", "raw")},
                                         Kind{"coalesced", tiers({"dp", "row"}, "sum", "coalesced")},
                                         Kind{"coalesced_three", tiers({"dp", "flex", "row"}, "mean", "coalesced")},
                                         Kind{"two_stage", tiers({"dp", "row"}, "sum", "raw", "two_stage")},
                                         Kind{"hierarchical", tiers({"dp", "row"}, "sum", "raw", "hierarchical")}),
                         [](const auto& of) { return std::string{of.param.name}; });

TEST(HotBatchesOf, LayersWithoutReplicatedRowsAreBadInput) {
    sw::ThreadWorld world{sw::Topology{1, 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto expect_refused = [&](sw::LayerBase& layer) {
            EXPECT_FALSE(layer.blueprint().has_hot_batches());
            try {
                static_cast<void>(layer.start(hot_or_cold(1).view(), sw::BatchKind::hot));
                ADD_FAILURE() << "nothing was thrown";
            } catch (const sw::BadInput& error) {
                EXPECT_EQ(std::string{error.what()}.find("hot batches for a layer whose first tier is not on every"),
                          0U);
            }
            const std::vector<sw::JaggedView<std::int64_t>> none(2);
            EXPECT_THROW(static_cast<void>(layer.predict_cost(none, nullptr, sw::BatchKind::hot)), sw::BadInput);
        };
        sw::EmbeddingLayer<sw::Sharding<sw::Tiered<sw::Flex, sw::Row>>> flex{comm, users_and_items};
        expect_refused(flex);
        sw::EmbeddingLayer<sw::Sharding<sw::DP>> dp{comm, users_and_items};
        expect_refused(dp);
        sw::EmbeddingLayer<sw::Sharding<sw::Tiered<sw::DP, sw::Row>>> tiered{comm, users_and_items};
        EXPECT_TRUE(static_cast<sw::LayerBase&>(tiered).blueprint().has_hot_batches());
    });
}

}  // namespace
}  // namespace shardwise_test
