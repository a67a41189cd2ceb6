// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "laws/scenario.hpp"
#include "shardwise/comm/thread_slots.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/sharding/table.hpp"

/// \file
/// Layers whose ranks are given all ranks' ids of their own tables: who is told what is wrong, and what is refused.

namespace laws::at_owner {
namespace {

constexpr int ranks = 3;
constexpr std::int64_t rows = 30;
using Ids = sw::JaggedBatch<std::int64_t>;

std::vector<sw::TableConfig> tables() {
    std::vector<sw::TableConfig> all;
    for (const char* name : {"t0", "t1", "t2"})
        all.push_back({.name = name, .rows = rows, .dim = 4});
    return all;
}
/// The batch of a rank: two ids a bag.
Ids batch_of(int rank, int number) {
    Ids batch{.samples = 2 + rank, .features = ranks};
    for (std::int64_t bag = 0; bag < batch.samples * batch.features; ++bag) {
        batch.lengths.push_back(2);
        batch.values.push_back((bag * 7 + rank + number) % rows);
        batch.values.push_back((bag * 5 + number) % rows);
    }
    return batch;
}
/// What a rank is given.
struct Given {
    Ids ids;
    std::vector<std::int64_t> samples;

    /// Where the ids of a rank's sample of a feature start, of those that this rank is given.
    [[nodiscard]] std::size_t at(std::size_t feature, int rank, std::int64_t sample) const {
        std::int64_t bag = static_cast<std::int64_t>(feature) * ids.samples + sample;
        for (int other = 0; other < rank; ++other)
            bag += samples[static_cast<std::size_t>(other)];
        return static_cast<std::size_t>(2 * bag);
    }
};
Given given_to(const sw::LayerBase& layer, int number) {
    std::vector<Ids> batches;
    std::vector<sw::JaggedView<std::int64_t>> views;
    Given given;
    for (int rank = 0; rank < ranks; ++rank)
        batches.push_back(batch_of(rank, number));
    for (const Ids& batch : batches) {
        views.push_back(batch.view());
        given.samples.push_back(batch.samples);
    }
    given.ids = sw::concatenated<std::int64_t>(views, layer.given_features());
    return given;
}

struct Kind {
    std::vector<std::string> shardings;
    bool tiered;
    bool bounded;
    std::string optimizer;
};
sw::LayerNames names_of(const Kind& kind) {
    return {.shardings = kind.shardings,
            .tiered = kind.tiered,
            .collective = kind.bounded ? "bounded_lag" : "flat",
            .optimizer = kind.optimizer,
            .ids = "at_owner"};
}
/// A batch that is right gives what ranks with their own ids get.
void expect_right(sw::ThreadCommunicator& comm, sw::LayerBase& layer, sw::LayerFlight& flight, int number) {
    const auto result = layer.forward(flight).pooled;
    ASSERT_EQ(result.rows(), 2 + comm.rank());
    sw::ThreadWorld alone{sw::Topology{.hosts = 1, .ranks_per_host = 1}};
    alone.run([&](sw::ThreadCommunicator& one) {
        const auto reference = sw::make_layer(one, tables(), {.optimizer = "frozen"});
        auto own = reference->start(batch_of(comm.rank(), number).view());
        const auto expected = reference->forward(own).pooled;
        for (std::int64_t i = 0; i < result.rows(); ++i)
            for (std::int64_t d = 0; d < result.columns(); ++d)
                EXPECT_EQ(result(i, d), expected(i, d)) << "rank " << comm.rank() << ", batch " << number;
    });
}
std::string error_of(sw::LayerBase& layer, sw::LayerFlight& flight) {
    try {
        static_cast<void>(layer.forward(flight));
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return {};
}
template <class Call>
std::string refusal(const Call& call) {
    try {
        call();
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return "not refused";
}

using Body = std::function<void(sw::ThreadCommunicator&, sw::LayerBase&)>;
void on_ranks(const Kind& kind, const Body& body) {
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {.hosts = 1, .ranks_per_host = ranks},
                                                 .deadline = std::chrono::seconds{20}}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::ThreadSlots slots{comm};
        sw::LayerOptions options;
        if (kind.bounded) {
            options.bound = {.k = kind.optimizer == "frozen" ? 1 : 0, .samples = 6, .ids = {12}};
            options.slots.emplace(slots);
        }
        const auto layer = sw::make_layer(comm, tables(), names_of(kind), options);
        body(comm, *layer);
        layer->drain();
    });
}
const std::vector<Kind>& apart() {
    static const std::vector<Kind> all{{{"table"}, false, true, "frozen"},
                                       {{"row"}, false, true, "frozen"},
                                       {{"col"}, false, true, "frozen"},
                                       {{"dp", "flex", "row"}, true, true, "frozen"}};
    return all;
}
const std::vector<Kind>& in_step() {
    static const std::vector<Kind> all{{{"table"}, false, false, "sgd"},    {{"row"}, false, false, "sgd"},
                                       {{"flex"}, false, false, "sgd"},     {{"dp", "row"}, true, false, "sgd"},
                                       {{"table"}, false, false, "frozen"}, {{"table"}, false, true, "sgd"}};
    return all;
}

/// The feature that rank 1 has a part of, and its number among those that rank 1 is given.
std::pair<std::size_t, std::string> of_rank_1(const sw::LayerBase& layer) {
    return {0, layer.features()[static_cast<std::size_t>(layer.given_features()[0])]};
}

TEST(AtOwner, ARankIsToldWhatAnOwnerFindsWrongWithItsBags) {
    for (const Kind& kind : apart())
        on_ranks(kind, [&](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
            for (int whose = 0; whose < ranks; ++whose) {
                Given given = given_to(layer, whose);
                const auto [number, name] = of_rank_1(layer);
                if (comm.rank() == 1) given.ids.values[given.at(number, whose, 1)] = 77;
                auto flight = layer.start(given.ids.view(), given.samples);
                const Given later = given_to(layer, 10);
                auto next = layer.start(later.ids.view(), later.samples);
                if (comm.rank() == whose) {
                    const std::string error = error_of(layer, flight);
                    EXPECT_NE(error.find("sample 1: id 77 is not a row of table 't"), std::string::npos) << error;
                    EXPECT_EQ(error.find("(found by rank 1)") == std::string::npos, whose == 1) << error;
                    EXPECT_EQ(error.find("rank " + std::to_string(whose)), 0U) << error;
                    EXPECT_FALSE(flight);
                } else {
                    expect_right(comm, layer, flight, whose);
                }
                expect_right(comm, layer, next, 10);
            }
        });
}

TEST(AtOwner, ABatchThatMakesNoSenseIsEverybodys) {
    const std::vector<std::pair<std::string, std::function<void(Given&)>>> wrong{
        {"values", [](Given& g) { g.ids.values.push_back(1); }},
        {"a length of -3", [](Given& g) { g.ids.lengths[2] = -3; }},
        {"2 numbers of samples for 3 ranks", [](Given& g) { g.samples.pop_back(); }},
        {"numbers of samples of each rank that are not those of the batch, which has 9",
         [](Given& g) { ++g.samples[0]; }},
        {"numbers of samples of each rank that are not those of the batch, which has 9",
         [](Given& g) {
             g.samples[0] -= 30;
             g.samples[1] += 30;
         }},
        {"a batch with weights", [](Given& g) { g.ids.weights.assign(g.ids.values.size(), 1.0F); }}};
    for (const Kind& kind : apart())
        on_ranks(kind, [&](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
            for (const auto& [text, spoil] : wrong) {
                Given given = given_to(layer, 3);
                if (comm.rank() == 2) spoil(given);
                auto flight = layer.start(given.ids.view(), given.samples);
                const std::string error = error_of(layer, flight);
                EXPECT_NE(error.find(text), std::string::npos) << error;
                EXPECT_EQ(error.find("(found by rank 2)") == std::string::npos, comm.rank() == 2) << error;
                const Given good = given_to(layer, 4);
                auto next = layer.start(good.ids.view(), good.samples);
                expect_right(comm, layer, next, 4);
            }
        });
}

TEST(AtOwner, MoreThanIsDeclaredIsTheRanksThatHasIt) {
    on_ranks(apart()[0], [](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
        Ids many{.samples = 0, .features = std::ssize(layer.given_features())};
        std::vector<std::int64_t> samples{1, 8, 2};
        many.samples = 11;
        many.values.assign(static_cast<std::size_t>(11 * many.features), 4);
        auto flight = layer.start(many.view(), samples);
        const std::string error = error_of(layer, flight);
        if (comm.rank() == 1)
            EXPECT_NE(error.find("a batch of 8 samples, and LayerOptions::bound.samples says at most 6"),
                      std::string::npos)
                << error;
        else
            EXPECT_EQ(error, "");
    });
}

TEST(AtOwner, RanksThatDoNotAgreeOnWhoseSamplesThereAreAreTold) {
    on_ranks(apart()[0], [](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
        Given given = given_to(layer, 0);
        if (comm.rank() == 1) {  // one sample of rank 0 for one of rank 2
            --given.samples[0];
            ++given.samples[2];
        }
        auto flight = layer.start(given.ids.view(), given.samples);
        const std::string error = error_of(layer, flight);
        if (comm.rank() != 1)
            EXPECT_NE(error.find("rank 1 looked up "), std::string::npos) << error;
        else
            EXPECT_EQ(error, "");
        const Given good = given_to(layer, 4);
        auto next = layer.start(good.ids.view(), good.samples);
        expect_right(comm, layer, next, 4);
        if (comm.rank() == 1) return;  // goes to its drain, and others start one more
        auto last = layer.start(good.ids.view(), good.samples);
        EXPECT_NE(error_of(layer, last).find("start as many batches on all ranks"), std::string::npos);
    });
}

TEST(AtOwner, InStepAnErrorIsEverybodysAndNothingIsLearnt) {
    for (const Kind& kind : in_step())
        on_ranks(kind, [&](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
            const auto weights = [&] {
                std::vector<float> all;
                layer.for_each_shard([&](const sw::ShardView& shard, const auto&) {
                    all.insert(all.end(), shard.weights, shard.weights + shard.rows * shard.dim);
                });
                return all;
            };
            const std::vector<float> before = weights();
            for (int whose = 0; whose < ranks; ++whose) {
                Given given = given_to(layer, whose);
                if (comm.rank() == 1) given.ids.values[given.at(0, whose, 0)] = -2;
                auto flight = layer.start(given.ids.view(), given.samples);
                const std::string error = error_of(layer, flight);
                EXPECT_NE(error.find("rank 1: "), std::string::npos) << error;
                EXPECT_NE(error.find("sample 0: id -2 is not a row of table 't"), std::string::npos) << error;
                EXPECT_EQ(before, weights());
                const Given good = given_to(layer, 4);
                auto next = layer.start(good.ids.view(), good.samples);
                expect_right(comm, layer, next, 4);
            }
            if (!layer.learns()) return;
            const Given good = given_to(layer, 5);
            auto flight = layer.start(good.ids.view(), good.samples);
            const auto result = layer.forward(flight);
            layer.backward(std::move(flight), result);
            EXPECT_NE(before, weights());
        });
    for (const Kind& kind : in_step()) {
        EXPECT_THROW(on_ranks(kind,
                              [&](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
                                  Given given = given_to(layer, 0);
                                  if (comm.rank() == 1) std::swap(given.samples[0], given.samples[2]);
                                  auto flight = layer.start(given.ids.view(), given.samples);
                                  static_cast<void>(layer.forward(flight));
                              }),
                     sw::Mismatch);
    }
}

TEST(AtOwner, CallsThatMakeNoSenseAreRefused) {
    on_ranks(apart()[0], [](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
        EXPECT_EQ(refusal([&] { layer.start(batch_of(0, 0).view()).end(); }),
                  "this layer is given all ranks' ids (Ids<AtOwner>): say behind the batch how many of its samples are "
                  "each rank's");
        EXPECT_EQ(layer.given_features(), std::vector<int>{comm.rank()});
        Given good = given_to(layer, 0);
        layer.validate(good.ids.view());
        if (comm.rank() == 2) good.ids.values[0] = rows;
        EXPECT_NE(refusal([&] { layer.validate(good.ids.view()); }).find("rank 2: "), std::string::npos);
    });
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 1}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto layer = sw::make_layer(comm, tables(), {.optimizer = "frozen"});
        EXPECT_EQ(layer->given_features(), (std::vector<int>{0, 1, 2}));
        EXPECT_EQ(refusal([&] { layer->start(batch_of(0, 0).view(), std::vector<std::int64_t>{2}).end(); }),
                  "this layer's ranks have the ids of their own samples: give it these alone, or the layer "
                  "Ids<AtOwner>");
        sw::ThreadSlots slots{comm};
        const auto with = [&](const std::function<void(sw::BoundOptions&)>& change) {
            sw::LayerOptions options;
            options.bound = {.samples = 3};
            options.slots.emplace(slots);
            change(options.bound);
            return refusal([&] { static_cast<void>(sw::make_layer(comm, tables(), names_of(apart()[0]), options)); });
        };
        EXPECT_EQ(with([](sw::BoundOptions& bound) { bound.serve = sw::Serve::each; }),
                  "serve each has no effect with Ids<AtOwner>, where nobody asks: leave it out");
        EXPECT_EQ(with([](sw::BoundOptions& bound) { bound.progress = sw::Progress::thread; }),
                  "progress thread has no effect with Ids<AtOwner>, where nobody asks: leave it out");
    });
}

/// One more k takes as much as the slots of one more batch, or two where nobody asks: as predicted, and as held. Of the
/// paper's own case it says s * b * tables + s * s + b bytes, 856,576: rows of a batch once, whoever looks them up.
TEST(AtOwner, OneMoreKTakesWhatIsPredictedAndHeld) {
    constexpr int eight = 8;
    constexpr std::int64_t b = 512;
    constexpr std::int64_t s = 64;
    std::vector<sw::TableConfig> many;
    for (int t = 0; t < 26; ++t)
        many.push_back({.name = "t" + std::to_string(t), .rows = 10, .dim = s / 4});
    for (const bool at_owner : {false, true}) {
        std::vector<std::int64_t> held(3);
        std::vector<std::int64_t> predicted(3);
        std::int64_t tables_here = 0;
        for (int k = 0; k < 3; ++k) {
            sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = eight}};
            world.run([&](sw::ThreadCommunicator& comm) {
                sw::ThreadSlots slots{comm};
                sw::LayerOptions options;
                options.bound = {.k = k, .samples = b};
                options.slots.emplace(slots);
                const auto layer = sw::make_layer(comm, many,
                                                  {.shardings = {"table"},
                                                   .collective = "bounded_lag",
                                                   .optimizer = "frozen",
                                                   .ids = at_owner ? "at_owner" : "at_sample"},
                                                  options);
                if (comm.rank() == 3) {
                    held[static_cast<std::size_t>(k)] = slots.bytes();
                    predicted[static_cast<std::size_t>(k)] = layer->blueprint().slot_bytes(3);
                    layer->for_each_shard([&](const auto&, const auto&) { tables_here += k == 0 ? 1 : 0; });
                }
            });
        }
        const std::int64_t more = held[1] - held[0];
        EXPECT_EQ(more, held[2] - held[1]);
        EXPECT_EQ(more, predicted[1] - predicted[0]);
        EXPECT_EQ(more, predicted[2] - predicted[1]);
        const std::int64_t rows_of_others = s * b * (26 - tables_here);
        const std::int64_t ids_of_others = (eight - 1) * b * tables_here * (4 + 4);  // and lengths of bags
        const std::int64_t expected = at_owner ? 2 * rows_of_others : rows_of_others + ids_of_others;
        EXPECT_GE(more, expected);
        EXPECT_LE(more, expected + 2 * (eight - 1) * 1024) << "what is not rows or ids";
        EXPECT_GE(static_cast<double>(more) / (s * b * 26 + s * s + b), at_owner ? 1.7 : 0.8);
        EXPECT_LE(static_cast<double>(more) / (s * b * 26 + s * s + b), at_owner ? 1.8 : 1.1);
        std::printf("one more k, %s: %lld bytes, and %lld by the paper's formula\n",
                    at_owner ? "at owner" : "at sample", static_cast<long long>(more),
                    static_cast<long long>(s * b * 26 + s * s + b));
    }
}

/// By its types, in one call.
TEST(AtOwner, TypedLayersLookUpAndLearnInOneCall) {
    using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Table>, sw::Pooling<sw::Mean>, sw::Ids<sw::AtOwner>>;
    using Other = sw::EmbeddingLayer<sw::Sharding<sw::Table>, sw::Pooling<sw::Mean>>;
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = ranks}};
    world.run([](sw::ThreadCommunicator& comm) {
        Layer layer{comm, tables()};
        Other other{comm, tables()};
        for (int number = 0; number < 3; ++number) {
            const Given given = given_to(layer, number);
            const auto result = layer.forward(given.ids.view(), given.samples);
            const auto expected = other.forward(batch_of(comm.rank(), number).view());
            ASSERT_EQ(result.rows(), expected.rows());
            for (std::int64_t i = 0; i < result.rows(); ++i)
                for (std::int64_t d = 0; d < result.columns(); ++d)
                    EXPECT_EQ(result(i, d), expected(i, d));
            const std::vector<float> gradient(static_cast<std::size_t>(result.rows() * result.columns()), 0.5F);
            layer.backward({gradient.data(), result.rows(), result.columns()});
            other.backward({gradient.data(), result.rows(), result.columns()});
        }
    });
}

TEST(AtOwner, ConcatenatedIsOneBatchBehindTheOther) {
    Ids a{.samples = 2, .features = 2, .values = {1, 2, 3}, .lengths = {1, 0, 2, 0}};
    Ids b{.samples = 1, .features = 2, .values = {4, 5}, .lengths = {}, .weights = {2.0F, 3.0F}};
    const std::vector<sw::JaggedView<std::int64_t>> both{a.view(), b.view()};
    const auto all = sw::concatenated<std::int64_t>(both, std::vector<int>{1, 0});
    EXPECT_EQ(all.samples, 3);
    EXPECT_EQ(all.features, 2);
    EXPECT_EQ(all.values, (std::vector<std::int64_t>{2, 3, 5, 1, 4}));
    EXPECT_EQ(all.lengths, (std::vector<std::int32_t>{2, 0, 1, 1, 0, 1}));
    EXPECT_EQ(all.weights, (std::vector<float>{1.0F, 1.0F, 3.0F, 1.0F, 2.0F}));
    Ids ones = b;
    ones.weights.clear();
    const std::vector<sw::JaggedView<std::int64_t>> single{ones.view()};
    EXPECT_TRUE(sw::concatenated<std::int64_t>(single, std::vector<int>{0}).lengths.empty());
    EXPECT_EQ(refusal([&] { static_cast<void>(sw::concatenated<std::int64_t>(both, std::vector<int>{2})); }),
              "feature 2 of a batch of 2 features");
    const std::vector<std::string> keys{"b", "a"};
    auto keyed = both;
    keyed.at(1).keys = keys;
    EXPECT_EQ(refusal([&] { static_cast<void>(sw::concatenated<std::int64_t>(keyed, std::vector<int>{0})); }),
              "a batch with keys among those to concatenate: give its features in the layer's order");
    a.values.pop_back();
    const std::vector<sw::JaggedView<std::int64_t>> wrong{a.view()};
    EXPECT_THROW(static_cast<void>(sw::concatenated<std::int64_t>(wrong, std::vector<int>{0})), sw::BadInput);
}

}  // namespace
}  // namespace laws::at_owner
