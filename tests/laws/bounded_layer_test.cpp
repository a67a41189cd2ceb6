// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "laws/compositions.hpp"
#include "laws/scenario.hpp"
#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/counting_slots.hpp"
#include "shardwise/comm/message_slots.hpp"
#include "shardwise/comm/thread_slots.hpp"
#include "shardwise/comm/thread_world.hpp"

/// \file
/// Layers whose ranks may be apart: how far, what is refused, and what stays on the rank that did it.

namespace laws {
namespace {

constexpr std::int64_t rows = 40;
constexpr int dim = 4;
constexpr std::int64_t most_samples = 5;

sw::LayerNames names() {
    return {.shardings = {"row"}, .collective = "bounded_lag", .optimizer = "frozen"};
}
std::vector<sw::TableConfig> tables() {
    return {{.name = "t", .rows = rows, .dim = dim}};
}
sw::LayerOptions options_for(sw::OneSidedRef slots, int k, sw::Serve serve = sw::Serve::together,
                             sw::Progress progress = sw::Progress::calls) {
    sw::LayerOptions options;
    options.bound = {.k = k, .samples = most_samples, .ids = {2 * most_samples}, .serve = serve, .progress = progress};
    options.slots.emplace(slots);
    return options;
}

/// The n-th batch of a rank, of one feature, and what its lookup gives.
struct Lookup {
    Lookup(int rank, int number) : Lookup{static_cast<std::uint64_t>(rank * 1000 + number)} {}
    explicit Lookup(std::uint64_t seed) {
        Dice dice{seed};
        samples = dice.below(most_samples + 1);
        for (std::int64_t i = 0; i < samples; ++i) {
            lengths.push_back(static_cast<std::int32_t>(dice.below(3)));
            for (int k = 0; k < lengths.back(); ++k)
                ids.push_back(dice.below(rows));
        }
    }
    std::int64_t samples = 0;
    std::vector<std::int32_t> lengths;
    std::vector<std::int64_t> ids;
    std::vector<float> weights;

    [[nodiscard]] sw::JaggedView<std::int64_t> view() const {
        sw::JaggedView<std::int64_t> batch;
        batch.samples = samples;
        batch.features = 1;
        batch.values = ids;
        batch.lengths = lengths;
        batch.weights = weights;
        return batch;
    }
};

/// A table as one rank knows it: made alone, of the same seed.
class Reference {
  public:
    Reference() {
        sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 1}};
        world.run([&](sw::ThreadCommunicator& comm) {
            sw::LayerNames alone = names();
            alone.collective = "flat";
            const auto layer = sw::make_layer(comm, tables(), alone);
            layer->for_each_shard([&](const sw::ShardView& shard, const auto&) {
                weights_.assign(shard.weights, shard.weights + rows * dim);
            });
        });
    }
    /// \returns whether these are the sums of the batch's bags, of at most two rows each
    [[nodiscard]] bool is(const sw::MatrixView<const float>& pooled, const Lookup& batch) const {
        if (pooled.rows() != batch.samples) return false;
        std::size_t id = 0;
        for (std::int64_t i = 0; i < batch.samples; ++i) {
            std::vector<float> sum(dim, 0.0F);
            for (int k = 0; k < batch.lengths[static_cast<std::size_t>(i)]; ++k, ++id)
                for (int d = 0; d < dim; ++d)
                    sum[static_cast<std::size_t>(d)] += weights_[static_cast<std::size_t>(batch.ids[id] * dim + d)];
            for (int d = 0; d < dim; ++d)
                if (pooled(i, d) != sum[static_cast<std::size_t>(d)]) return false;
        }
        return true;
    }

  private:
    std::vector<float> weights_;
};

using Body = std::function<void(sw::ThreadCommunicator&, sw::LayerBase&)>;
/// Runs a body on so many ranks, each with a layer that answers in its calls, and with one that has a thread for it.
void on_ranks(int ranks, int k, sw::Serve serve, const Body& body) {
    for (const sw::Progress progress : {sw::Progress::calls, sw::Progress::thread}) {
        sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {.hosts = 1, .ranks_per_host = ranks},
                                                     .deadline = std::chrono::seconds{20}}};
        world.run([&](sw::ThreadCommunicator& comm) {
            sw::ThreadSlots slots{comm};
            const auto layer = sw::make_layer(comm, tables(), names(), options_for(slots, k, serve, progress));
            body(comm, *layer);
        });
    }
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
void expect_text(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\n  instead of: " << part;
}

/// Under `together` nobody starts more than k + 1 batches more than anybody else, and under a slow rank they do.
TEST(BoundedLayer, RanksAreAtMostKPlusOneBatchesApart) {
    for (const int k : {0, 1, 3}) {
        constexpr int ranks = 4;
        std::vector<std::atomic<int>> started(ranks);
        std::atomic<int> most{0};
        std::int64_t seen = 0;
        const Reference reference;
        on_ranks(ranks, k, sw::Serve::together, [&](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
            const auto me = static_cast<std::size_t>(comm.rank());
            std::deque<std::pair<sw::LayerFlight, int>> flights;
            started[me] = 0;
            sw::barrier(comm);
            for (int number = 0; number < 40; ++number) {
                if (comm.rank() == 2) std::this_thread::sleep_for(std::chrono::microseconds{1500});
                if (static_cast<int>(flights.size()) == k + 1) {
                    EXPECT_TRUE(reference.is(layer.forward(flights.front().first).pooled,
                                             Lookup(comm.rank(), flights.front().second)));
                    flights.pop_front();
                }
                ++started[me];  // before its answers may leave
                flights.emplace_back(layer.start(Lookup(comm.rank(), number).view()), number);
                for (const std::atomic<int>& other : started)
                    most = std::max(most.load(), started[me] - other);
            }
            layer.drain();
            if (comm.rank() == 2) seen = layer.most_ahead();
        });
        EXPECT_LE(most, k + 1);
        EXPECT_LE(seen, k + 1);
        EXPECT_GE(seen, k);
        EXPECT_GE(most, k);
    }
}

/// With a thread that answers, a rank that computes holds nobody up, and has as many batches answered as it has
/// started.
TEST(BoundedLayer, AThreadAnswersWhileItsRankComputes) {
    std::atomic<int> looked_up{0};
    sw::ThreadWorld world{
        sw::ThreadWorldOptions{.topology = {.hosts = 1, .ranks_per_host = 3}, .deadline = std::chrono::seconds{20}}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::ThreadSlots slots{comm};
        const auto layer =
            sw::make_layer(comm, tables(), names(), options_for(slots, 0, sw::Serve::together, sw::Progress::thread));
        auto flight = layer->start(Lookup(comm.rank(), 0).view());
        if (comm.rank() == 0)
            while (looked_up != 2)  // makes no call
                std::this_thread::yield();
        static_cast<void>(layer->forward(flight));
        ++looked_up;
        layer->drain();
    });
}

/// What a thread finds wrong ends the calls of its rank.
TEST(BoundedLayer, WhatEndsAThreadIsThrownByItsRank) {
    sw::ThreadWorld world{
        sw::ThreadWorldOptions{.topology = {.hosts = 1, .ranks_per_host = 2}, .deadline = std::chrono::seconds{20}}};
    EXPECT_THROW(world.run([&](sw::ThreadCommunicator& comm) {
        sw::ThreadSlots slots{comm};
        sw::LayerOptions options = options_for(slots, 1, sw::Serve::each, sw::Progress::thread);
        options.seed = static_cast<std::uint64_t>(comm.rank());
        const auto layer = sw::make_layer(comm, tables(), names(), options);
        auto flight = layer->start(Lookup(comm.rank(), 0).view());
        static_cast<void>(layer->forward(flight));
    }),
                 sw::Mismatch);
}

/// Under `each` a rank that only answers is no brake: the others look up as many batches as they like.
TEST(BoundedLayer, EachAnswersRanksThatAreFarAhead) {
    std::atomic<int> looked_up{0};
    on_ranks(3, 1, sw::Serve::each, [&](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
        looked_up = 0;
        sw::barrier(comm);
        if (comm.rank() != 0) {
            for (int number = 0; number < 50; ++number) {
                auto flight = layer.start(Lookup(comm.rank(), number).view());
                static_cast<void>(layer.forward(flight));
                ++looked_up;
            }
        }
        layer.drain();
        EXPECT_EQ(looked_up, 100);
        if (comm.rank() == 0) {
            EXPECT_EQ(layer.most_ahead(), 0);  // it started none
        }
    });
}

/// `ready` never waits: it is false while somebody's rows are missing, and once it is true forward needs nobody.
TEST(BoundedLayer, SaysWhetherItsRowsHaveCome) {
    for (const sw::Serve serve : {sw::Serve::together, sw::Serve::each}) {
        std::atomic<int> step{0};
        on_ranks(2, 1, serve, [&](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
            step = 0;
            sw::barrier(comm);
            EXPECT_FALSE(sw::LayerFlight{}.ready());
            if (comm.rank() == 1) {
                while (step < 1)  // in no call: nobody answers, but a thread those that are answered one by one
                    std::this_thread::yield();
            }
            auto flight = layer.start(Lookup(comm.rank(), 0).view());
            if (comm.rank() == 0) {
                if (serve == sw::Serve::together) {
                    for (int i = 0; i < 100; ++i)
                        EXPECT_FALSE(flight.ready());
                }
                step = 1;
            }
            while (!flight.ready())
                std::this_thread::yield();
            ++step;
            while (step < 3)  // both have all
                std::this_thread::yield();
            if (comm.rank() == 1) {
                while (step < 4)
                    std::this_thread::yield();
            }
            static_cast<void>(layer.forward(flight));  // rank 1 makes no call meanwhile
            ++step;
            layer.drain();
        });
    }
}

/// Where rows learn, all ranks refuse a batch that is wrong on one of them: the last before a drain, or under way in
/// it.
TEST(BoundedLayer, DrainsBehindABatchThatAllRefuse) {
    sw::ThreadWorld world{
        sw::ThreadWorldOptions{.topology = {.hosts = 1, .ranks_per_host = 3}, .deadline = std::chrono::seconds{20}}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::ThreadSlots slots{comm};
        sw::LayerNames learns = names();
        learns.optimizer = "sgd";
        sw::LayerOptions options;
        options.bound = {.samples = most_samples, .ids = {2 * most_samples}};
        options.slots.emplace(slots);
        const auto layer = sw::make_layer(comm, tables(), learns, options);
        const auto bad_on_one = [&](int number) {
            Lookup batch{comm.rank(), number};
            if (comm.rank() == 1) {
                batch.samples = 1;
                batch.lengths = {1};
                batch.ids = {rows};
            }
            return batch;
        };
        const auto is_refused = [&](sw::LayerFlight& flight) {
            try {
                static_cast<void>(layer->forward(flight));
                ADD_FAILURE() << "a wrong id was looked up";
            } catch (const sw::BadInput& error) {
                EXPECT_NE(std::string{error.what()}.find("rank 1: "), std::string::npos) << error.what();
            }
            EXPECT_FALSE(flight);
        };
        const auto learn = [&](int number) {
            const Lookup batch{comm.rank(), number};
            auto flight = layer->start(batch.view());
            const sw::LayerVectors vectors = layer->forward(flight);
            layer->backward(std::move(flight), vectors);
        };
        for (int turn = 0; turn < 3; ++turn) {
            const Lookup wrong = bad_on_one(2 * turn);
            auto flight = layer->start(wrong.view());
            if (turn != 1) is_refused(flight);
            layer->drain();
            if (turn == 1) {  // its refusal is kept while another one is under way
                const Lookup good{comm.rank(), 77};
                auto other = layer->start(good.view());
                is_refused(flight);
                const sw::LayerVectors vectors = layer->forward(other);
                EXPECT_EQ(vectors.pooled.rows(), good.samples);
                layer->backward(std::move(other), vectors);
            }
            learn(2 * turn + 1);
        }
        EXPECT_EQ(layer->steps(), 4);
        layer->drain();
    });
}

/// `validate` finds what `forward` would: also more samples and ids than declared.
TEST(BoundedLayer, ValidatesWhatIsDeclared) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::ThreadSlots slots{comm};
        const auto layer = sw::make_layer(comm, tables(), names(), options_for(slots, 1));
        Lookup good{comm.rank(), 1};
        layer->validate(good.view());
        const auto refused = [&](const Lookup& batch, const char* why) {
            try {
                layer->validate(batch.view());
                ADD_FAILURE() << why;
            } catch (const sw::BadInput& error) {
                EXPECT_NE(std::string{error.what()}.find(why), std::string::npos) << error.what();
            }
        };
        Lookup samples = good;
        Lookup ids = good;
        if (comm.rank() == 1) {
            samples.samples = most_samples + 1;
            samples.lengths.assign(most_samples + 1, 0);
            samples.ids.clear();
            ids.samples = 1;
            ids.lengths = {2 * most_samples + 1};
            ids.ids.assign(2 * most_samples + 1, 0);
        }
        refused(samples, "6 samples");
        refused(ids, "11 ids");
        layer->drain();
    });
}

TEST(BoundedLayer, GoesOnBehindADrain) {
    for (const sw::Serve serve : {sw::Serve::together, sw::Serve::each}) {
        const Reference reference;
        on_ranks(3, 2, serve, [&](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
            int number = 0;
            for (int turn = 0; turn < 6; ++turn) {
                std::deque<std::pair<sw::LayerFlight, int>> flights;
                for (int i = (comm.rank() + turn) % 4; i > 0; --i) {  // up to k + 1, or none
                    flights.emplace_back(layer.start(Lookup(comm.rank(), number).view()), number);
                    ++number;
                }
                layer.drain();
                for (auto& [flight, which] : flights)
                    EXPECT_TRUE(reference.is(layer.forward(flight).pooled, Lookup(comm.rank(), which)));
            }
        });
    }
}

/// Handles that end early, in any order, cost nobody a result.
TEST(BoundedLayer, ForgetsFlightsWhoseHandlesEnd) {
    for (const sw::Serve serve : {sw::Serve::together, sw::Serve::each}) {
        const Reference reference;
        on_ranks(3, 2, serve, [&](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
            Dice dice{static_cast<std::uint64_t>(comm.rank()) + 5};
            std::deque<std::pair<sw::LayerFlight, int>> flights;
            for (int number = 0; number < 60; ++number) {
                const bool full = number >= 3 && !flights.empty() && flights.front().second == number - 3;
                if (full) {
                    EXPECT_TRUE(reference.is(layer.forward(flights.front().first).pooled,
                                             Lookup(comm.rank(), flights.front().second)));
                    flights.pop_front();
                }
                flights.emplace_back(layer.start(Lookup(comm.rank(), number).view()), number);
                while (!flights.empty() && dice.one_in(3))
                    flights.erase(flights.begin() + dice.below(std::ssize(flights)));
            }
            flights.clear();
            layer.drain();
        });
    }
}

/// Results that nobody reads any more leave their memory, while it is in caches, to the next one; others stay.
TEST(BoundedLayer, WritesResultsWhereTheLastOneWas) {
    for (const sw::Serve serve : {sw::Serve::together, sw::Serve::each}) {
        const Reference reference;
        on_ranks(2, 2, serve, [&](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
            // Batches of one size, so that all have memory of one size.
            const auto batch = [&](int number) {
                std::uint64_t seed = static_cast<std::uint64_t>(comm.rank() * 100000 + number * 1000);
                while (Lookup{seed}.samples != most_samples)
                    ++seed;
                return Lookup{seed};
            };
            std::deque<std::pair<sw::LayerFlight, int>> flights;
            std::vector<std::pair<sw::LayerFlight, int>> held;
            std::vector<sw::MatrixView<const float>> results;
            const float* last = nullptr;
            for (int number = 0; number < 40; ++number) {
                flights.emplace_back(layer.start(batch(number).view()), number);
                if (flights.size() < 3) continue;
                const sw::MatrixView<const float> result = layer.forward(flights.front().first).pooled;
                EXPECT_TRUE(reference.is(result, batch(flights.front().second)));
                const bool hold = number % 10 == 9;
                const bool is_free = last != nullptr && number % 10 != 0;
                EXPECT_TRUE(!is_free || result.data() == last) << number;
                last = result.data();
                if (hold) {
                    for (const sw::MatrixView<const float>& other : results)
                        EXPECT_NE(result.data(), other.data());
                    results.push_back(result);
                    held.push_back(std::move(flights.front()));
                }
                flights.pop_front();
            }
            flights.clear();
            for (std::size_t i = 0; i < held.size(); ++i)
                EXPECT_TRUE(reference.is(results[i], batch(held[i].second)));
            layer.drain();
        });
    }
}

TEST(BoundedLayer, WhatIsWrongStaysOnItsRank) {
    const Reference reference;
    on_ranks(4, 2, sw::Serve::together, [&](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
        std::vector<std::pair<std::string, std::function<void(Lookup&)>>> wrong{
            {"id 40 is not a row of table 't'", [](Lookup& b) { b.ids.at(0) = rows; }},
            {"id -1 is not a row of table 't'", [](Lookup& b) { b.ids.at(0) = -1; }},
            {"a batch of 6 samples, and LayerOptions::bound.samples says at most 5",
             [](Lookup& b) {
                 b.samples = most_samples + 1;
                 b.lengths.assign(most_samples + 1, 1);
                 b.ids.assign(most_samples + 1, 3);
             }},
            {"feature 't' has 11 ids, and LayerOptions::bound.ids says at most 10",
             [](Lookup& b) {
                 b.samples = 1;
                 b.lengths = {11};
                 b.ids.assign(11, 3);
             }},
            {"a batch with weights, and LayerOptions::bound.weighted says that there are none",
             [](Lookup& b) { b.weights.assign(b.ids.size(), 1.0F); }},
            {"a length of -1", [](Lookup& b) { b.lengths.at(0) = -1; }}};
        int number = 0;
        for (const auto& [text, spoil] : wrong) {
            Lookup batch{9'000'007};
            ASSERT_FALSE(batch.ids.empty());
            if (comm.rank() == 1) spoil(batch);
            auto flight = layer.start(batch.view());
            auto next = layer.start(Lookup(comm.rank(), number).view());
            if (comm.rank() != 1) {
                EXPECT_TRUE(reference.is(layer.forward(flight).pooled, batch));
            } else {
                const std::string refused = refusal([&] { static_cast<void>(layer.forward(flight)); });
                expect_text(refused, text);
                expect_text(refused, "rank 1: ");
                EXPECT_FALSE(flight);
            }
            EXPECT_TRUE(reference.is(layer.forward(next).pooled, Lookup(comm.rank(), number++)));
        }
        layer.drain();
    });
}

TEST(BoundedLayer, CallsOutOfTurnAreRefused) {
    const Reference reference;
    on_ranks(2, 1, sw::Serve::together, [&](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
        auto first = layer.start(Lookup(comm.rank(), 0).view());
        auto second = layer.start(Lookup(comm.rank(), 1).view());
        expect_text(refusal([&] { layer.start(Lookup(comm.rank(), 2).view()).end(); }),
                    "2 batches are under way, and ranks may be 1 apart: call forward for the oldest first");
        sw::LayerFlight later = std::move(second);
        expect_text(refusal([&] { static_cast<void>(layer.forward(later)); }),
                    "forward of batch 2 while batch 1 is under way: call forward in the order of start");
        EXPECT_TRUE(later);  // and goes on
        EXPECT_TRUE(reference.is(layer.forward(first).pooled, Lookup(comm.rank(), 0)));
        EXPECT_TRUE(reference.is(layer.forward(later).pooled, Lookup(comm.rank(), 1)));
        for (int number = 2; number < 6; ++number) {
            auto next = layer.start(Lookup(comm.rank(), number).view());
            EXPECT_TRUE(reference.is(layer.forward(next).pooled, Lookup(comm.rank(), number)));
        }
        expect_text(refusal([&] { layer.backward(std::move(first), {}); }),
                    "backward of a layer whose optimizer 'frozen' learns nothing");
        layer.drain();
    });
}

/// Those that ask as fast as they are answered do not keep a rank in a call of its own.
TEST(BoundedLayer, WhoAsksWithoutEndHoldsNobodyUp) {
    constexpr int k = 4;
    constexpr int ranks = 3;
    std::atomic<bool> returned{false};
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {.hosts = 1, .ranks_per_host = ranks},
                                                 .deadline = std::chrono::seconds{20}}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::ThreadSlots below{comm};
        sw::CountingSlots slots{below};
        sw::LayerNames whole = names();
        whole.shardings = {"table"};  // on rank 0
        const auto layer = sw::make_layer(comm, tables(), whole, options_for(slots, k, sw::Serve::each));
        const auto puts = [&] {
            std::int64_t sum = 0;
            for (int peer = 0; peer < ranks; ++peer)
                sum += slots.sent().at(comm.rank(), peer).messages;
            return sum;
        };
        sw::barrier(comm);
        if (comm.rank() == 0) {
            for (int number = 0; number < 200; ++number) {
                const std::int64_t before = puts();
                auto flight = layer->start(Lookup(0, number).view());
                EXPECT_LE(puts() - before, (k + 1) * (ranks - 1) + ranks - 1);  // answers, and its own requests
                static_cast<void>(layer->forward(flight));
            }
            returned = true;
        } else {
            std::deque<sw::LayerFlight> under_way;
            for (int number = 0; !returned; ++number) {
                if (static_cast<int>(under_way.size()) == k + 1) {
                    static_cast<void>(layer->forward(under_way.front()));
                    under_way.pop_front();
                }
                under_way.push_back(layer->start(Lookup(comm.rank(), number).view()));
            }
        }
        layer->drain();
    });
}

/// A rank that only answers may do so for longer than the deadline of a wait.
TEST(BoundedLayer, WhoIsAskedInItsDrainWaitsForLongerThanItsDeadline) {
    for (const sw::Progress progress : {sw::Progress::calls, sw::Progress::thread}) {
        sw::ThreadWorld world{
            sw::ThreadWorldOptions{.topology = {.hosts = 1, .ranks_per_host = 3}, .deadline = std::chrono::seconds{1}}};
        world.run([&](sw::ThreadCommunicator& comm) {
            sw::ThreadSlots slots{comm};
            const auto layer =
                sw::make_layer(comm, tables(), names(), options_for(slots, 1, sw::Serve::each, progress));
            const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{2500};
            for (int number = 0; comm.rank() != 0 && std::chrono::steady_clock::now() < end; ++number) {
                auto flight = layer->start(Lookup(comm.rank(), number).view());
                static_cast<void>(layer->forward(flight));
                std::this_thread::sleep_for(std::chrono::milliseconds{20});
            }
            layer->drain();
        });
    }
}

/// `poll` answers over slots that move in calls alone, too.
TEST(BoundedLayer, APollAnswersOverMessages) {
    std::atomic<bool> answered{false};
    sw::ThreadWorld world{
        sw::ThreadWorldOptions{.topology = {.hosts = 1, .ranks_per_host = 2}, .deadline = std::chrono::seconds{20}}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::ThreadCommunicator own = comm.duplicate();
        sw::MessageSlots slots{own, std::chrono::seconds{20}};
        const auto layer = sw::make_layer(comm, tables(), names(), options_for(slots, 1, sw::Serve::each));
        auto flight = layer->start(Lookup(comm.rank(), 0).view());
        while (comm.rank() == 0 && !answered)
            flight.poll();
        static_cast<void>(layer->forward(flight));
        answered = true;
        layer->drain();
    });
}

/// A layer is made on slots that the thread of another one uses meanwhile.
TEST(BoundedLayer, IsMadeWhileTheThreadOfAnotherAnswers) {
    const Reference reference;
    on_ranks(3, 1, sw::Serve::each, [&](sw::ThreadCommunicator& comm, sw::LayerBase& first) {
        static_cast<void>(first);
        sw::ThreadSlots slots{comm};
        const auto options = options_for(slots, 1, sw::Serve::each, sw::Progress::thread);
        std::vector<std::unique_ptr<sw::LayerBase>> layers;
        for (int number = 0; number < 8; ++number) {
            layers.push_back(sw::make_layer(comm, tables(), names(), options));
            for (const auto& layer : layers) {
                auto flight = layer->start(Lookup(comm.rank(), number).view());
                EXPECT_TRUE(reference.is(layer->forward(flight).pooled, Lookup(comm.rank(), number)));
            }
        }
        for (const auto& layer : layers)
            layer->drain();
        first.drain();
    });
}

TEST(BoundedLayer, SlotsOfOtherRanksAreRefused) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::ThreadWorld alone{sw::Topology{.hosts = 1, .ranks_per_host = 1}};
        alone.run([&](sw::ThreadCommunicator& other) {
            sw::ThreadSlots slots{other};
            expect_text(
                refusal([&] { static_cast<void>(sw::make_layer(comm, tables(), names(), options_for(slots, 1))); }),
                "LayerOptions::slots has rank 0 of 1, and the communicator rank " + std::to_string(comm.rank()));
        });
    });
}

TEST(BoundedLayer, OptionsThatMakeNoSenseAreRefused) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 1}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::ThreadSlots slots{comm};
        const auto with = [&](const sw::LayerNames& policies, const std::function<void(sw::LayerOptions&)>& change) {
            sw::LayerOptions options = options_for(slots, 1);
            change(options);
            return refusal([&] { static_cast<void>(sw::make_layer(comm, tables(), policies, options)); });
        };
        sw::LayerNames flat = names();
        flat.collective = "flat";
        sw::LayerNames learning = names();
        learning.optimizer = "sgd";
        expect_text(with(flat, [](auto&) {}), "LayerOptions::bound has no effect where ranks go step by step");
        expect_text(with(flat, [](auto& o) { o.bound = {}; }), "LayerOptions::slots has no effect");
        expect_text(with(names(), [](auto& o) { o.slots.reset(); }), "give LayerOptions::slots");
        expect_text(with(names(), [](auto& o) { o.bound.k = -1; }), "a lag of -1 batches: give a number from 0 to ");
        expect_text(with(names(), [](auto& o) { o.bound.samples = 0; }), "batches of at most 0 samples");
        expect_text(with(names(),
                         [](auto& o) {
                             o.bound.ids = {1, 2};
                         }),
                    "2 numbers of ids at most for 1 features: give one for each, or one for all");
        expect_text(with(names(), [](auto& o) { o.bound.ids = {-3}; }), "at most -3 ids of a feature");
        expect_text(with(names(), [](auto& o) { o.bound.ids = {std::int64_t{1} << 31}; }), "give a number from 0 to ");
        expect_text(with(names(), [](auto& o) { o.bound.samples = std::int64_t{1} << 58; }), "give at most 2147483647");
        expect_text(with(learning, [](auto& o) { o.bound.serve.reset(); }), "a lag of 1 batches where rows learn");
        expect_text(with(learning, [](auto& o) { o.bound.k = 0; }), "serve together has no effect where rows learn");
        expect_text(with(learning,
                         [](auto& o) {
                             o.bound.k = 0;
                             o.bound.serve.reset();
                         }),
                    "progress calls has no effect where rows learn");
        sw::ThreadCommunicator own = comm.duplicate();
        sw::MessageSlots messages{own};
        expect_text(with(names(),
                         [&](auto& o) {
                             o.slots.emplace(messages);
                             o.bound.progress = sw::Progress::thread;
                         }),
                    "these slots are of one thread");
    });
}

TEST(BoundedLayer, RanksThatDeclareOtherThingsAreTold) {
    for (const bool each : {false, true}) {
        sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {.hosts = 1, .ranks_per_host = 2},
                                                     .deadline = std::chrono::seconds{20}}};
        EXPECT_THROW(world.run([&](sw::ThreadCommunicator& comm) {
            sw::ThreadSlots slots{comm};
            sw::LayerOptions options = options_for(slots, 1);
            if (comm.rank() == 1 && each) options.bound.serve = sw::Serve::each;
            if (comm.rank() == 1 && !each) options.bound.k = 2;
            const auto layer = sw::make_layer(comm, tables(), names(), options);
            auto flight = layer->start(Lookup(comm.rank(), 0).view());
            static_cast<void>(layer->forward(flight));
            layer->drain();
        }),
                     sw::Mismatch);
    }
}

/// Where rows learn, all ranks may end a flight before its lookup, and go on.
TEST(BoundedLayer, LearnsOnBehindFlightsThatAllHaveEnded) {
    const auto weights_after = [](const char* collective) {
        std::vector<float> weights;
        sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {.hosts = 1, .ranks_per_host = 2},
                                                     .deadline = std::chrono::seconds{20}}};
        world.run([&](sw::ThreadCommunicator& comm) {
            sw::ThreadSlots slots{comm};
            sw::LayerNames policies = names();
            policies.collective = collective;
            policies.optimizer = "sgd";
            sw::LayerOptions options;
            if (policies.collective == "bounded_lag") {
                options.bound = {.samples = most_samples, .ids = {2 * most_samples}};
                options.slots.emplace(slots);
            }
            const auto layer = sw::make_layer(comm, tables(), policies, options);
            for (int number = 0; number < 14; ++number) {  // the last is one that ends early
                auto flight = layer->start(Lookup(comm.rank(), number).view());
                if (number % 3 == 1) {
                    flight.end();
                    continue;
                }
                const sw::LayerVectors result = layer->forward(flight);
                if (number % 3 == 2) layer->backward(std::move(flight), result);
            }
            layer->drain();
            if (comm.rank() == 1)
                layer->for_each_shard([&](const sw::ShardView& shard, const auto&) {
                    weights.assign(shard.weights, shard.weights + shard.rows * shard.dim);
                });
        });
        return weights;
    };
    EXPECT_EQ(weights_after("bounded_lag"), weights_after("flat"));
}

TEST(BoundedLayer, AWarmBatchAllocatesNothing) {
    for (const sw::Serve serve : {sw::Serve::together, sw::Serve::each})
        on_ranks(3, 2, serve, [&](sw::ThreadCommunicator& comm, sw::LayerBase& layer) {
            std::deque<sw::LayerFlight> flights;
            std::int64_t before = 0;
            for (int number = 0; number < 60; ++number) {
                if (flights.size() == 3) {
                    static_cast<void>(layer.forward(flights.front()));
                    flights.pop_front();
                }
                flights.push_back(layer.start(Lookup(comm.rank(), number % 5).view()));
                if (number == 40) before = layer.memory().allocations();
            }
            while (!flights.empty()) {
                static_cast<void>(layer.forward(flights.front()));
                flights.pop_front();
            }
            EXPECT_EQ(layer.memory().allocations(), before);
            layer.drain();
        });
}

/// What a lag of one more costs, as predicted and as held.
TEST(BoundedLayer, SlotsTakeWhatIsPredicted) {
    constexpr int ranks = 3;
    std::vector<std::int64_t> of_a_slot(ranks);
    for (const int k : {0, 1, 5}) {
        sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = ranks}};
        world.run([&](sw::ThreadCommunicator& comm) {
            sw::ThreadSlots slots{comm};
            const auto layer = sw::make_layer(comm, tables(), names(), options_for(slots, k));
            const std::int64_t predicted = layer->blueprint().slot_bytes(comm.rank());
            const std::int64_t when_done = 2 * (ranks - 1) * 128;  // what says that a rank is
            EXPECT_EQ(slots.bytes(), predicted + when_done);
            // 16 bytes of envelope; 8 of samples and flags, 8 of counts; lengths, samples and rows of 4 bytes
            const std::int64_t ids = 16 + 8 + 8 + 4 * 10;
            const std::int64_t more = 64 + (ids + 4 * 5 + 63) / 64 * 64 + 64 + (16 + 5 * dim * 4 + 63) / 64 * 64;
            EXPECT_EQ(predicted, (k + 1) * (ranks - 1) * more);
            layer->drain();
        });
    }
}

}  // namespace
}  // namespace laws
