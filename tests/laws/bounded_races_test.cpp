// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "laws/compositions.hpp"
#include "laws/scenario.hpp"
#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/counting_slots.hpp"
#include "shardwise/comm/thread_slots.hpp"
#include "shardwise/comm/thread_world.hpp"

/// \file
/// Ranks that are stopped between two looks at their slots, so that more has come by the second one than by the first.

namespace laws::races {
namespace {

/// Slots of a rank that is stopped whenever it has looked for a message in vain, and that sees those of some windows
/// only when it has looked so often: behind messages that were put later.
class StallingSlots : public sw::CountingSlots<sw::ThreadSlots> {
  public:
    using Stall = std::function<std::chrono::microseconds(int window)>;
    using Looks = std::function<int(int window)>;
    StallingSlots(
        sw::ThreadSlots& below, Stall stall, Looks looks = [](int) { return 1; })
        : CountingSlots{below}, stall_{std::move(stall)}, looks_{std::move(looks)} {}

    [[nodiscard]] bool has(const sw::SlotId& id, std::uint64_t tag) {
        if (CountingSlots::has(id, tag)) {
            const bool hidden = ++looked_[{id.window, id.peer, tag}] < looks_(id.window);
            hides_ = hides_ || hidden;
            return !hidden;
        }
        if (const auto pause = stall_(id.window); pause.count() > 0) std::this_thread::sleep_for(pause);
        return false;
    }
    void pause(sw::SlotWait& wait) {
        if (!std::exchange(hides_, false)) CountingSlots::pause(wait);
    }

  private:
    Stall stall_;
    Looks looks_;
    bool hides_ = false;
    std::map<std::tuple<int, int, std::uint64_t>, int> looked_;
};

using Ids = sw::JaggedBatch<std::int64_t>;
constexpr std::int64_t rows = 30;
constexpr int columns = 4;

sw::ThreadWorld world_of(int ranks) {
    return sw::ThreadWorld{
        sw::ThreadWorldOptions{.topology = {.hosts = 1, .ranks_per_host = ranks}, .deadline = std::chrono::seconds{5}}};
}
std::vector<sw::TableConfig> tables(int count) {
    std::vector<sw::TableConfig> all;
    for (int t = 0; t < count; ++t)
        all.push_back({.name = "t" + std::to_string(t), .rows = rows, .dim = columns});
    return all;
}
/// Two samples of each table, one id each.
Ids batch_of(int turn, int rank, int features) {
    Ids batch{.samples = 2, .features = features, .values = {}};
    for (int i = 0; i < 2 * features; ++i)
        batch.values.push_back((7 * turn + 3 * rank + i) % rows);
    return batch;
}

/// A rank that has its rows has answered those who sent them, so it may wait for them elsewhere: in another layer, or
/// at a barrier.
TEST(BoundedRaces, WhoHasItsRowsHoldsNobodyUpElsewhere) {
    struct Case {
        int ranks;
        int k;
        sw::Serve serve;
        int looks;  // for a request
    };
    for (const Case& one :
         {Case{2, 0, sw::Serve::together, 1}, Case{2, 0, sw::Serve::together, 4}, Case{2, 0, sw::Serve::each, 1},
          Case{3, 0, sw::Serve::together, 4}, Case{3, 1, sw::Serve::together, 4}}) {
        sw::ThreadWorld world = world_of(one.ranks);
        world.run([&](sw::ThreadCommunicator& comm) {
            sw::ThreadSlots slots{comm};
            Dice dice{static_cast<std::uint64_t>(comm.rank()) + 1};
            constexpr int windows = 3;  // of a layer: the first has requests
            StallingSlots late{slots,
                               [&](int window) {
                                   const bool stalls = window % windows == 0 && dice.one_in(4);
                                   return std::chrono::microseconds{stalls ? dice.below(300) : 0};
                               },
                               [&](int window) { return window % windows == 0 ? one.looks : 1; }};
            sw::LayerOptions options;
            options.bound = {.k = one.k, .samples = 2, .ids = {2}, .serve = one.serve};
            options.slots.emplace(late);
            const sw::LayerNames names{.shardings = {"row"}, .collective = "bounded_lag", .optimizer = "frozen"};
            const auto first = sw::make_layer(comm, tables(1), names, options);
            const auto second = sw::make_layer(comm, tables(1), names, options);
            for (int turn = 0; turn < 200; ++turn) {
                for (sw::LayerBase* const layer : {first.get(), second.get()}) {
                    const Ids batch = batch_of(turn, comm.rank(), 1);
                    sw::LayerFlight flight = layer->start(batch.view());
                    EXPECT_EQ(layer->forward(flight).pooled.rows(), 2);
                }
                if (turn % 3 == 0) sw::barrier(comm);
            }
            first->drain();
            second->drain();
        });
    }
}

/// The first batch behind a drain is none of those that the drain takes part in: with ids at their owners, a flight
/// that is one too many makes all others look wrong.
TEST(BoundedRaces, ADrainEndsWhereOthersGoOn) {
    constexpr int ranks = 2;
    sw::ThreadWorld world = world_of(ranks);
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::ThreadSlots slots{comm};
        constexpr int done = 1;  // the window behind that of the exchange
        StallingSlots late{slots, [&](int window) {
                               const bool stalls = comm.rank() == ranks - 1 && window == done;
                               return std::chrono::microseconds{stalls ? 3000 : 0};
                           }};
        sw::LayerOptions options;
        options.bound = {.k = 1, .samples = 2, .ids = {2}};
        options.slots.emplace(late);
        const auto layer = sw::make_layer(
            comm, tables(ranks),
            {.shardings = {"table"}, .collective = "bounded_lag", .optimizer = "frozen", .ids = "at_owner"}, options);
        for (int turn = 0; turn < 6; ++turn) {
            const Ids batches[] = {batch_of(turn, 0, ranks), batch_of(turn, 1, ranks)};
            const std::vector<sw::JaggedView<std::int64_t>> views{batches[0].view(), batches[1].view()};
            const Ids given = sw::concatenated<std::int64_t>(views, layer->given_features());
            sw::LayerFlight flight = layer->start(given.view(), std::vector<std::int64_t>(ranks, 2));
            EXPECT_EQ(layer->forward(flight).pooled.rows(), 2) << "turn " << turn;
            flight.end();
            if (comm.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds{1});
            layer->drain();
        }
    });
}

}  // namespace
}  // namespace laws::races
