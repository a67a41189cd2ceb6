// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/plan/flight.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <latch>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/plan/frame.hpp"
#include "toy.hpp"

/// \file
/// Flights one inside the other, and errors that a plan inside a plan notes.

namespace shardwise_test::toy {
namespace {

using sw::OneHost;
using sw::Peers;
using sw::Plan;
using sw::World;

/// A flight with a frame of its own, on one rank's communicator.
class Trip {
  public:
    Trip(const sw::Program& program, sw::ThreadCommunicator& comm)
        : room_{&account_.work()},
          frame_{program, states()},
          itinerary_{program, comm.topology(), comm.rank()},
          flight_{itinerary_, frame_.parts(), comm, account_.work()} {}

    Numbers& lane() { return frame_.lanes().values; }
    sw::Flight& flight() { return flight_; }
    void start(std::uint32_t number, Numbers in) {
        lane() = std::move(in);
        flight_.prepare(number);
        flight_.start();
    }
    Weight weight{.value = 3, .gradient = 0};

  private:
    sw::States states() {
        sw::States states;
        states.bind({}, room_);
        states.bind({}, weight);
        return states;
    }
    sw::MemoryAccount account_;
    Room room_;
    sw::Frame<Domain::Lanes> frame_;
    sw::Itinerary itinerary_;
    sw::Flight flight_;
};

void run(const sw::Topology& topology, const std::function<void(sw::ThreadCommunicator&)>& body) {
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = topology, .deadline = std::chrono::seconds{20}}};
    world.run(body);
}

TEST(Flight, TheNextMayStartBeforeThisOnesUpdate) {
    const sw::Program program = program_of<Side<0, Plan<Gather<World>, Square<>>, Plan<Weigh<>>>>();
    run({.hosts = 2, .ranks_per_host = 2}, [&](sw::ThreadCommunicator& comm) {
        Trip a{program, comm};
        Trip b{program, comm};
        const auto me = static_cast<Number>(comm.rank());
        a.start(1, {me, 10});
        EXPECT_TRUE(a.flight().active());
        EXPECT_EQ(a.flight().number(), 1U);
        a.flight().finish_forward();
        b.start(2, {2 * me, 20});
        b.weight.value = 4;  // what an update between them changes, b's second segment sees
        EXPECT_EQ(a.lane(), (Numbers{0, 1, 4, 9, 30}));
        a.flight().poll();
        b.flight().poll();
        a.lane() = {1, 1, 1, 1, 2};
        a.flight().finish_backward();
        EXPECT_FALSE(a.flight().active());
        EXPECT_EQ(a.lane(), (Numbers{4 * 2 * me, 6}));
        EXPECT_EQ(a.weight.gradient, 20U);
        a.start(3, {1, 1});
        b.flight().finish_forward();
        EXPECT_EQ(b.lane(), (Numbers{0, 4, 16, 36, 80}));
        b.flight().withdraw();  // behind its last round: nobody waits for it
        EXPECT_FALSE(b.flight().active());
        a.flight().finish_forward();
        EXPECT_EQ(a.lane(), (Numbers{1, 1, 1, 1, 3}));
    });
}

/// (rank): what it throws when the first plan of rank `bad` gets a 13, in the forward plan or, if that holds, backward.
template <class P>
std::vector<std::string> complaints(int bad, std::size_t at, bool& forward_done) {
    const sw::Program program = sw::make_program<Domain, P>();
    std::vector<std::string> all(4);
    forward_done = true;
    std::vector<char> done(4, 0);
    run({.hosts = 2, .ranks_per_host = 2}, [&](sw::ThreadCommunicator& comm) {
        const auto rank = static_cast<std::size_t>(comm.rank());
        Trip trip{program, comm};
        Numbers in{1, 2, 3};
        if (comm.rank() == bad) in[at] = 13;
        trip.start(1, in);
        try {
            trip.flight().finish_forward();
            done[rank] = 1;
            trip.flight().finish_backward();
        } catch (const sw::BadInput& error) {
            all[rank] = error.what();
        }
        EXPECT_FALSE(trip.flight().active());
        trip.start(2, {1, 2, 3});  // and it goes on
        trip.flight().finish_forward();
        trip.flight().finish_backward();
    });
    for (const char d : done)
        forward_done = forward_done && d == done[0] && d != 0;
    return all;
}

/// Refuses the backward numbers, too.
struct RefuseBoth : Refuse {
    using Adjoint = Plan<Refuse>;
};

TEST(Flight, WhatAPlanInsideFindsWrongIsThrownEverywhere) {
    using Two = Plan<Side<0, Plan<Refuse, Gather<OneHost>, Gather<Peers>>, Plan<Scale<1>>>>;
    const std::vector<std::string> rank2(4, "rank 2: 13 is no number");
    bool forward_done = true;
    EXPECT_EQ(complaints<Two>(2, 0, forward_done), rank2);
    EXPECT_FALSE(forward_done);
    EXPECT_EQ(complaints<Two>(2, 1, forward_done), std::vector<std::string>(4));  // the other plan takes it
    EXPECT_TRUE(forward_done);
    EXPECT_EQ(
        (complaints<Plan<Gather<World>, Side<0, Plan<>, Plan<Square<>>, Plan<Scale<1>, Refuse>>, Gather<World, 1>>>(
            3, 2, forward_done)),
        std::vector<std::string>(4, "rank 0: 13 is no number (and 3 more ranks found something wrong)"));
}

// Behind the last exchange, nobody tells the others.
TEST(Flight, WhatNoExchangeTellsIsThrownAlone) {
    using Late = Plan<Gather<OneHost>, Side<0, Plan<RefuseBoth>>>;
    bool forward_done = false;
    const std::string text = "13 is no number (noted where no later exchange of the plan tells all ranks)";
    EXPECT_EQ(complaints<Late>(3, 2, forward_done), (std::vector<std::string>{"", "", text, text}));
    EXPECT_TRUE(forward_done);
}

TEST(Flight, OneThatIsDestroyedWithdrawsFromItsRound) {
    const sw::Program program = program_of<Side<0, Plan<Gather<World>>>>();
    std::latch destroyed{1};
    std::latch told{1};
    const auto body = [&](sw::ThreadCommunicator& comm) {
        if (comm.rank() == 0) {
            Trip{program, comm}.start(1, {1});
            destroyed.count_down();
            told.wait();  // a rank that has ended fails the others anyway
            return;
        }
        destroyed.wait();
        Trip trip{program, comm};
        EXPECT_THROW((trip.start(1, {2}), trip.flight().finish_forward()), sw::PeerFailed);
        told.count_down();
    };
    run({.hosts = 1, .ranks_per_host = 2}, body);
}

TEST(Flight, RanksWithOtherDigestsDoNotUnderstandEachOther) {
    const sw::Program program = program_of<Gather<World>>();
    EXPECT_THROW(run({.hosts = 1, .ranks_per_host = 2},
                     [&](sw::ThreadCommunicator& comm) {
                         Trip trip{program, comm};
                         trip.flight().prepare(1, static_cast<std::uint16_t>(comm.rank()));
                         trip.flight().start();
                         trip.flight().finish_forward();
                     }),
                 sw::Mismatch);
}

/// Puts down how large the groups are that it names.
struct Sizes : Scale<1> {
    using Adjoint = Plan<>;
    using In = Peers;
    using Under = OneHost;
    template <class V>
    static void run(sw::StepEnv& env, V& view) {
        view.lanes().values = {static_cast<Number>(env.group.size), static_cast<Number>(env.under.size)};
    }
};
TEST(Flight, ALocalStepKnowsTheGroupsThatItNames) {
    const sw::Program program = program_of<Sizes>();
    run({.hosts = 3, .ranks_per_host = 2}, [&](sw::ThreadCommunicator& comm) {
        Trip trip{program, comm};
        trip.start(1, {});
        EXPECT_EQ(trip.lane(), (Numbers{3, 2}));
    });
}

TEST(Flight, SpansAreNamedAfterSteps) {
    const sw::Program program = program_of<Scale<2>, Side<0, Plan<Gather<World>>, Plan<Gather<OneHost>>>>();
    run({.hosts = 1, .ranks_per_host = 2}, [&](sw::ThreadCommunicator& comm) {
        Trip trip{program, comm};
        sw::Tracer tracer;
        tracer.record(true);
        trip.flight().trace(&tracer);
        trip.start(5, {1, 2});
        trip.flight().finish_forward();
        std::vector<std::string> names;
        for (const sw::Span& span : tracer.spans()) {
            EXPECT_EQ(span.flight, 5U);
            names.push_back((span.kind == sw::SpanKind::compute ? ""
                             : span.kind == sw::SpanKind::pack  ? ">"
                                                                : "<") +
                            span.name);
        }
        EXPECT_EQ(names, (std::vector<std::string>{"Scale2", "Deal", ">Gather<World>", "<Gather<World>", "Append"}));
    });
}

}  // namespace
}  // namespace shardwise_test::toy
