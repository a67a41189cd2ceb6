// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"

/// \file
/// Handles of flights: what becomes of them when batches are wrong, and when they move.

namespace sw = shardwise;

namespace {

using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Row>>;

sw::JaggedBatch<std::int64_t> batch_of(std::int64_t id) {
    return {.samples = 1, .features = 1, .values = {id}, .lengths = {}, .weights = {}};
}
void learn(Layer& layer, Layer::Flight flight) {
    const auto output = layer.forward(flight);
    layer.backward(std::move(flight), output);
}

TEST(Flights, ABadBatchWithAnotherAheadIsOneErrorOnEveryRankAndTheWorldGoesOn) {
    for (int round = 0; round < 20; ++round) {
        sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {2, 2}, .deadline = std::chrono::seconds{20}}};
        std::atomic<int> errors{0};
        world.run([&](sw::ThreadCommunicator& comm) {
            Layer layer{comm, {{.name = "t", .rows = 10, .dim = 3}}};
            try {
                auto bad = layer.start(batch_of(comm.rank() == 2 ? 99 : 1).view());
                auto next = layer.start(batch_of(2).view());  // withdrawn by every rank when the error unwinds
                static_cast<void>(layer.forward(bad));
            } catch (const sw::BadInput& error) {
                EXPECT_NE(std::string{error.what()}.find("rank 2: feature 't', sample 0: id 99"), std::string::npos);
                ++errors;
            }
            learn(layer, layer.start(batch_of(3).view()));
        });
        ASSERT_EQ(errors, 4);
    }
}

TEST(Flights, AMovedFromHandleIsEmpty) {
    sw::ThreadWorld world{sw::Topology{1, 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        Layer layer{comm, {{.name = "t", .rows = 10, .dim = 3}}};
        auto current = layer.start(batch_of(1).view());
        auto next = layer.start(batch_of(2).view());
        static_cast<void>(layer.forward(current));
        current = std::move(next);
        EXPECT_FALSE(next);  // NOLINT(bugprone-use-after-move): that is the question
        EXPECT_THROW(static_cast<void>(layer.forward(next)), sw::BadInput);
        learn(layer, std::move(current));
        EXPECT_THROW(layer.backward(std::move(next), {}), sw::BadInput);
    });
}

TEST(Flights, AHandleThatOutlivesItsLayerIsEmpty) {
    sw::ThreadWorld world{sw::Topology{1, 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        Layer::Flight flight;
        Layer other{comm, {{.name = "t", .rows = 10, .dim = 3}}};
        {
            Layer layer{comm, {{.name = "t", .rows = 10, .dim = 3}}};
            flight = layer.start(batch_of(1).view());
            static_cast<void>(layer.forward(flight));
            EXPECT_THROW(static_cast<void>(other.forward(flight)), sw::BadInput);  // another layer's
        }
        EXPECT_FALSE(flight);
        EXPECT_THROW(static_cast<void>(other.forward(flight)), sw::BadInput);
    });
}

TEST(Flights, ValidateFindsWhatForwardWouldAndNothingElse) {
    sw::ThreadWorld world{sw::Topology{2, 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        Layer layer{comm, {{.name = "t", .rows = 10, .dim = 3}}};
        const auto message = [&](const sw::JaggedBatch<std::int64_t>& batch) {
            try {
                layer.validate(batch.view());
            } catch (const sw::BadInput& error) {
                return std::string{error.what()};
            }
            return std::string{};
        };
        EXPECT_EQ(message(batch_of(9)), "");
        EXPECT_EQ(message(batch_of(comm.rank() == 2 ? 10 : 1)),
                  "rank 2: feature 't', sample 0: id 10 is not a row of table 't'; its rows are 0 to 9");
        auto weighted = batch_of(3);
        weighted.weights = {comm.rank() == 1 ? std::numeric_limits<float>::infinity() : 1.0F};
        EXPECT_EQ(message(weighted), "rank 1: feature 't', sample 0: the weight of id 3 is inf, not a finite number");
        auto wide = batch_of(3);
        wide.features = comm.rank() == 3 ? 2 : 1;
        EXPECT_EQ(message(wide), "rank 3: the bags hold 2 ids, but there are 1 values");
        learn(layer, layer.start(batch_of(3).view()));
    });
}

TEST(Flights, RanksWithDifferentLayersAreToldSo) {
    const auto message = [](auto change) {
        sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {1, 2}, .deadline = std::chrono::seconds{20}}};
        try {
            world.run([&](sw::ThreadCommunicator& comm) {
                std::vector<sw::TableConfig> tables{{.name = "t", .rows = 10, .dim = 4}};
                sw::LayerOptions options;
                Layer::rule_type rule;
                if (comm.rank() == 1) change(tables[0], options, rule);
                Layer layer{comm, tables, options, rule};
                learn(layer, layer.start(batch_of(3).view()));
            });
        } catch (const sw::Mismatch& error) {
            return std::string{error.what()};
        }
        return std::string{};
    };
    const std::string expected = ": give every rank the same policies, tables, row plan, options and number of steps";
    const auto told = [&](auto change, const std::string& differs) {
        const std::string text = message(change);
        EXPECT_NE(text.find("runs another layer (" + differs), std::string::npos) << text;
        EXPECT_NE(text.find(expected), std::string::npos) << text;
    };
    EXPECT_EQ(message([](sw::TableConfig&, sw::LayerOptions&, Layer::rule_type&) {}), "");
    told([](sw::TableConfig& t, sw::LayerOptions&, Layer::rule_type&) { t.rows = 11; }, "table 't': 1");
    told([](sw::TableConfig& t, sw::LayerOptions&, Layer::rule_type&) { t.dim = 5; }, "table 't': ");
    told([](sw::TableConfig&, sw::LayerOptions&, Layer::rule_type& r) { r.epsilon = 1e-3F; },
         "optimizer, constants: other");
    told([](sw::TableConfig&, sw::LayerOptions& o, Layer::rule_type&) { o.seed = 2; }, "seed: ");
    told([](sw::TableConfig&, sw::LayerOptions& o, Layer::rule_type&) { o.learning_rate.base = 0.5F; },
         "learning rate: other");
}

TEST(Flights, LearningRatesThatMakeNoScheduleAreToldSo) {
    sw::ThreadWorld world{sw::Topology{1, 1}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::LayerOptions options;
        options.learning_rate.decay_steps = 0;
        EXPECT_THROW((Layer{comm, {{.name = "t", .rows = 10, .dim = 3}}, options}), sw::BadInput);
    });
}

TEST(Flights, PredictionsCheckTheirBatches) {
    sw::ThreadWorld world{sw::Topology{1, 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const Layer layer{comm, {{.name = "t", .rows = 10, .dim = 3}}};
        const auto good = batch_of(9);
        const auto high = batch_of(10);
        const auto low = batch_of(-1);
        using Views = std::vector<sw::JaggedView<std::int64_t>>;
        EXPECT_NO_THROW(static_cast<void>(layer.predict_cost(Views{good.view(), good.view()})));
        EXPECT_THROW(static_cast<void>(layer.predict_cost(Views{good.view()})), sw::BadInput);
        EXPECT_THROW(static_cast<void>(layer.predict_cost(Views{good.view(), high.view()})), sw::BadInput);
        EXPECT_THROW(static_cast<void>(layer.predict_cost(Views{low.view(), good.view()})), sw::BadInput);
    });
}

/// Says that all shards are on a rank that does not exist.
struct Nowhere : sw::Row {
    static constexpr const char* name = "nowhere";
    static constexpr int owner(const sw::Topology& t, int, int shard) noexcept { return t.ranks() + shard; }
};
/// Forgets the last columns.
struct Short : sw::Row {
    static constexpr const char* name = "short";
    static constexpr sw::Columns columns(int, const sw::TableShape& table) noexcept {
        return {.first = 0, .count = table.dim - 1};
    }
};

/// Cuts columns that overlap.
struct Overlapping : sw::Col<> {
    static constexpr const char* name = "overlapping";
    static constexpr sw::Columns columns(int, const sw::TableShape& table) noexcept {
        return {.first = 0, .count = table.dim / table.shards};
    }
};
/// Numbers the rows of a whole table backwards.
template <class Base>
struct Backwards : Base {
    static constexpr const char* name = "backwards";
    static constexpr sw::RowPlace place(std::int64_t row, const sw::TableShape& t) noexcept {
        return {.shard = 0, .local = t.rows - 1 - row};
    }
    static constexpr std::int64_t row(const sw::RowPlace& place, const sw::TableShape& t) noexcept {
        return t.rows - 1 - place.local;
    }
};

TEST(Placement, RowsOfWholeTablesLieWhereThePolicySays) {
    sw::ThreadWorld world{sw::Topology{1, 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto learnt = [&](auto& layer) {
            std::vector<float> all;
            for (const std::int64_t id : {3, 7, 3}) {
                const auto batch = batch_of(id + comm.rank());
                const auto out = layer.forward(batch.view());
                all.insert(all.end(), out.data(), out.data() + 3);
                layer.backward(out);
            }
            return all;
        };
        const std::vector<sw::TableConfig> tables{{.name = "t", .rows = 10, .dim = 3}};
        sw::EmbeddingLayer<sw::Sharding<sw::Table>> expected{comm, tables};
        sw::EmbeddingLayer<sw::Sharding<Backwards<sw::Table>>> table{comm, tables};
        sw::EmbeddingLayer<sw::Sharding<Backwards<sw::DP>>> replicated{comm, tables};
        const auto numbers = learnt(expected);
        EXPECT_EQ(learnt(table), numbers);
        EXPECT_EQ(learnt(replicated), numbers);
    });
}

TEST(Flights, StepsAreCounted) {
    sw::ThreadWorld world{sw::Topology{1, 1}};
    world.run([&](sw::ThreadCommunicator& comm) {
        Layer layer{comm, {{.name = "t", .rows = 10, .dim = 3}}};
        layer.set_steps(7);
        EXPECT_THROW(layer.set_steps(-1), sw::BadInput);
        EXPECT_THROW(layer.set_steps(std::numeric_limits<std::int64_t>::max()), sw::BadInput);
        EXPECT_EQ(layer.steps(), 7);
    });
    sw::ThreadWorld two{sw::Topology{1, 2}};
    EXPECT_THROW(two.run([&](sw::ThreadCommunicator& comm) {
        Layer layer{comm, {{.name = "t", .rows = 10, .dim = 3}}};
        layer.set_steps(comm.rank());
        learn(layer, layer.start(batch_of(1).view()));
    }),
                 sw::Mismatch);
    EXPECT_THROW(two.run([](sw::ThreadCommunicator&) {}), sw::PeerFailed);  // a world that failed is not run again
}

TEST(Flights, GradientsOfOtherShapesAreRefused) {
    sw::ThreadWorld world{sw::Topology{1, 1}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<sw::Pooling<sw::None>> layer{comm, {{.name = "t", .rows = 10, .dim = 3}}};
        auto flight = layer.start(batch_of(1).view());
        const auto output = layer.forward(flight);
        const std::vector<sw::MatrixView<const float>> twice{output[0], output[0]};
        EXPECT_THROW(layer.backward(std::move(flight), twice), sw::BadInput);
        EXPECT_EQ(layer.steps(), 0);
        auto weighted = batch_of(1);
        weighted.weights = {1.0F};
        EXPECT_THROW(layer.validate(weighted.view()), sw::BadInput);
        EXPECT_THROW(static_cast<void>(layer.predict_cost(std::vector{weighted.view()})), sw::BadInput);
    });
}

TEST(Placement, PoliciesThatDoNotFitTheTableAreToldSo) {
    const std::vector<sw::TableConfig> tables{{.name = "t", .rows = 10, .dim = 3}};
    const sw::Topology t{1, 2};
    EXPECT_NO_THROW(static_cast<void>(sw::place_tables<sw::Row>(t, tables, {0})));
    EXPECT_THROW(static_cast<void>(sw::place_tables<Nowhere>(t, tables, {0})), sw::BadInput);
    EXPECT_THROW(static_cast<void>(sw::place_tables<Short>(t, tables, {0})), sw::BadInput);
    EXPECT_THROW(static_cast<void>(sw::place_tables<Overlapping>(t, {{.name = "t", .rows = 10, .dim = 4}}, {0})),
                 sw::BadInput);
}

}  // namespace
