// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "plan/toy.hpp"
#include "shardwise/comm/thread_slots.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/plan/flight.hpp"
#include "shardwise/plan/frame.hpp"
#include "shardwise/plan/itinerary.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/plan/slot_carrier.hpp"

/// \file
/// Flights whose messages travel over slots.

namespace shardwise_test::toy {
namespace {

/// Flights are numbered by 64 bits, and messages say 32 of them: whoever flies for that long goes on.
TEST(SlotFlight, GoesOnWhereNumbersWrap) {
    constexpr int ranks = 3;
    constexpr int slots_a_pair = 4;  // 2k + 2
    const sw::Program program = program_of<Gather<sw::World>>();
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {.hosts = 1, .ranks_per_host = ranks},
                                                 .deadline = std::chrono::seconds{20}}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::ThreadSlots transport{comm};
        sw::MemoryAccount account;
        Room room{&account.work()};
        Weight weight;
        sw::States states;
        states.bind({}, room);
        states.bind({}, weight);
        const sw::Itinerary whole{program, comm.topology(), comm.rank()};
        const sw::Itinerary way = whole.alone();
        sw::SlotRounds rounds{.slots = transport, .rounds = std::vector<sw::SlotRounds::Round>(program.forward)};
        for (std::size_t s = 0; s < program.forward; ++s) {
            if (way.stages()[s].posts.empty()) continue;
            const std::vector<std::int64_t> most(ranks, 256);
            rounds.rounds[s] = {.window = transport.open({.slots = slots_a_pair, .from = most, .to = most}),
                                .slots = slots_a_pair};
        }
        struct OverSlots {
            OverSlots(const sw::Itinerary& way, const sw::States& states, sw::ThreadCommunicator& comm,
                      sw::SlotRounds& rounds, sw::MemoryAccount& account)
                : frame{way.program(), states},
                  flight{way, frame.parts(), comm, account.work(),
                         std::make_unique<sw::SlotCarrier>(way, rounds, account.work())} {}
            sw::Frame<Domain::Lanes> frame;
            sw::Flight flight;
        };
        std::deque<OverSlots> trips;
        for (int i = 0; i < 2; ++i)
            trips.emplace_back(way, states, comm, rounds, account);
        const std::uint64_t first = (std::uint64_t{1} << 32) - 5;
        const auto me = static_cast<Number>(comm.rank());
        const auto start = [&](std::uint64_t number) {
            OverSlots& trip = trips[number % 2];
            trip.frame.lanes().values = {me, static_cast<Number>(number)};
            trip.flight.prepare(number);
            trip.flight.start();
        };
        start(first);
        for (std::uint64_t number = first; number < first + 12; ++number) {
            start(number + 1);
            OverSlots& trip = trips[number % 2];
            trip.flight.finish_alone();
            Numbers expected;
            for (Number rank = 0; rank < ranks; ++rank)
                expected.insert(expected.end(), {rank, static_cast<Number>(number)});
            EXPECT_EQ(trip.frame.lanes().values, expected) << number;
            trip.flight.withdraw();
        }
    });
}

}  // namespace
}  // namespace shardwise_test::toy
