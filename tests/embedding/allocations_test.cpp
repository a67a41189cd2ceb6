// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/checks.hpp"
#include "shardwise/comm/thread_slots.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/adagrad.hpp"
#include "shardwise/optimizer/frozen.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/flex.hpp"
#include "shardwise/sharding/table.hpp"

/// \file
/// A warm training step takes no memory: neither from the layer's account nor from the heap.

namespace sw = shardwise;

namespace {

template <class Layer>
class WarmStep : public testing::Test {};

using Layers = testing::Types<
    sw::EmbeddingLayer<sw::Sharding<sw::Row>>, sw::EmbeddingLayer<sw::Sharding<sw::Col<>>>,
    sw::EmbeddingLayer<sw::Sharding<sw::Table>, sw::Optimizer<sw::Adagrad>>, sw::EmbeddingLayer<sw::Sharding<sw::DP>>,
    sw::EmbeddingLayer<sw::Sharding<sw::Mixed<sw::DP, sw::Table, sw::Row>>, sw::Wire<sw::Bf16>>,
    sw::EmbeddingLayer<sw::Sharding<sw::Tiered<sw::DP, sw::Flex, sw::Row>>>,
    sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Pooling<sw::None>>,
    sw::EmbeddingLayer<sw::Sharding<sw::Table>, sw::Pooling<sw::Mean>, sw::Ids<sw::AtOwner>>,
    sw::EmbeddingLayer<sw::Sharding<sw::Tiered<sw::DP, sw::Flex, sw::Row>>, sw::Ids<sw::AtOwner>, sw::Wire<sw::Bf16>>,
    sw::EmbeddingLayer<sw::Sharding<sw::Tiered<sw::DP, sw::Row>>, sw::Requests<sw::Coalesced>, sw::Order<sw::WideTree>>,
    sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Collective<sw::TwoStage>, sw::Wire<sw::Bf16>>,
    sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Collective<sw::Hierarchical>>,
    sw::EmbeddingLayer<sw::Sharding<sw::Col<>>, sw::Collective<sw::Hierarchical>, sw::Pooling<sw::None>>,
    sw::EmbeddingLayer<sw::Sharding<sw::Col<3>>, sw::Collective<sw::Hierarchical>>>;
TYPED_TEST_SUITE(WarmStep, Layers);

TYPED_TEST(WarmStep, AllocatesNothing) {
    sw::ThreadWorld world{sw::Topology{2, 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        std::vector<sw::TableConfig> tables;
        for (int t = 0; t < 4; ++t)
            tables.push_back({.name = "t" + std::to_string(t),
                              .rows = 100,
                              .dim = 7 + t,
                              .features = t == 3 ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{},
                              .sharding = TypeParam::policies::mixed
                                              ? std::vector{"dp", "table", "row"}[static_cast<std::size_t>(t) % 3]
                                              : ""});
        sw::RowPlan plan{.tiers = {"dp", "row"}, .tables = {}};  // half of the rows are on every rank
        if (boost::mp11::mp_size<typename TypeParam::policies::shardings>::value == 3)
            plan.tiers = {"dp", "flex", "row"};
        for (const sw::TableConfig& table : tables) {
            plan.tables.push_back(sw::all_in_last_tier(table.name, table.rows, plan.tiers.size()));
            plan.tables.back().tiers.front() += 50;
            plan.tables.back().tiers.back() -= 50;
        }
        TypeParam layer{comm, tables, {.rows = TypeParam::policies::tiered ? &plan : nullptr}};
        sw::JaggedBatch<std::int64_t> batch{.samples = 16, .features = 5, .values = {}, .lengths = {}, .weights = {}};
        for (int i = 0; i < 16 * 5; ++i) {
            batch.lengths.push_back(i % 4);
            for (int k = 0; k < i % 4; ++k)
                batch.values.push_back((i * 31 + k * 7 + comm.rank()) % 100);
        }
        const std::vector<sw::JaggedView<std::int64_t>> alike(4, batch.view());
        const auto given = sw::concatenated<std::int64_t>(alike, layer.given_features());
        const std::vector<std::int64_t> samples(4, batch.samples);
        sw::JaggedBatch<std::int64_t> hot = batch;
        for (std::int64_t& id : hot.values)
            id %= 50;
        std::vector<float> numbers(static_cast<std::size_t>(16 * 3 * 5 * layer.width()), 0.25F);
        const auto step_of = [&](const sw::JaggedBatch<std::int64_t>& of, sw::BatchKind kind) {
            auto flight = TypeParam::policies::at_owner && kind == sw::BatchKind::any
                              ? layer.start(given.view(), samples)
                              : layer.start(of.view(), kind);
            const auto output = layer.forward(flight);
            if constexpr (TypeParam::pooled) {
                layer.backward(std::move(flight), {numbers.data(), output.rows(), output.columns()});
            } else {
                layer.backward(std::move(flight), output);
            }
        };
        const auto step = [&] {
            step_of(batch, sw::BatchKind::any);
            if (TypeParam::policies::tiered) step_of(hot, sw::BatchKind::hot);
        };
        for (int i = 0; i < 3; ++i)
            step();
        const std::int64_t counted_before = layer.memory().allocations();
        std::int64_t fewest =
            1000;  // a rank that runs ahead may find a queue longer than ever before: seldom, not always
        for (int round = 0; round < 10; ++round) {
            const std::int64_t before = conformance::allocations;
            step();
            fewest = std::min(fewest, conformance::allocations - before);
        }
        EXPECT_EQ(fewest, 0);
        EXPECT_EQ(layer.memory().allocations(), counted_before);
    });
}

template <class Layer>
class WarmLookup : public testing::Test {};

template <class... Policies>
using Apart = sw::EmbeddingLayer<sw::Optimizer<sw::Frozen>, sw::Collective<sw::BoundedLag<1>>, Policies...>;
using LayersApart = testing::Types<Apart<>, Apart<sw::Sharding<sw::Col<>>, sw::Pooling<sw::None>>,
                                   Apart<sw::Sharding<sw::Tiered<sw::DP, sw::Row>>, sw::Requests<sw::Coalesced>>,
                                   Apart<sw::Sharding<sw::Table>, sw::Ids<sw::AtOwner>, sw::Pooling<sw::Mean>>>;
TYPED_TEST_SUITE(WarmLookup, LayersApart);

/// Ranks that may be apart: a lookup and what it answers others.
TYPED_TEST(WarmLookup, AllocatesNothing) {
    sw::ThreadWorld world{sw::Topology{1, 3}};
    world.run([](sw::ThreadCommunicator& comm) {
        const std::vector<sw::TableConfig> tables{{.name = "a", .rows = 100, .dim = 8},
                                                  {.name = "b", .rows = 50, .dim = 5}};
        sw::ThreadSlots slots{comm};
        TypeParam layer{comm, tables, {.bound = {.samples = 8, .ids = {24}}, .slots = slots}};
        sw::JaggedBatch<std::int64_t> batch{.samples = 8, .features = 2, .values = {}, .lengths = {}, .weights = {}};
        for (int i = 0; i < 16; ++i) {
            batch.lengths.push_back(1 + i % 3);
            for (int k = 0; k < batch.lengths.back(); ++k)
                batch.values.push_back((i * 31 + k * 7) % 50);
        }
        const std::vector<sw::JaggedView<std::int64_t>> alike(3, batch.view());
        const auto given = sw::concatenated<std::int64_t>(alike, layer.given_features());
        const std::vector<std::int64_t> samples(3, batch.samples);
        const auto start = [&] {
            return TypeParam::policies::at_owner ? layer.start(given.view(), samples) : layer.start(batch.view());
        };
        const auto step = [&] {
            auto first = start();
            auto second = start();
            static_cast<void>(layer.forward(first));
            static_cast<void>(layer.forward(second));
        };
        for (int i = 0; i < 5; ++i)
            step();
        const std::int64_t counted_before = layer.memory().allocations();
        std::int64_t fewest = 1000;
        for (int round = 0; round < 10; ++round) {
            const std::int64_t before = conformance::allocations;
            step();
            fewest = std::min(fewest, conformance::allocations - before);
        }
        EXPECT_EQ(fewest, 0);
        EXPECT_EQ(layer.memory().allocations(), counted_before);
        layer.drain();
    });
}

}  // namespace
