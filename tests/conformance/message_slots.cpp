// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/comm/message_slots.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/checks.hpp"
#include "conformance/slot_checks.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"

namespace {

using namespace shardwise;

ThreadWorldOptions world_of_ranks() {
    const char* text = std::getenv("SHARDWISE_TEST_RANKS");
    return {.topology = Topology::of(text == nullptr ? 4 : std::atoi(text), 1), .deadline = std::chrono::seconds{30}};
}

TEST(MessageSlots, DoWhatAllTransportsDo) {
    for (const conformance::SlotCheck& check : conformance::slot_checks()) {
        SCOPED_TRACE(check.name);
        ThreadWorld world{world_of_ranks()};
        const int runs = check.name == "what is put is there" ? 2 : 1;
        for (int run = 0; run < runs; ++run)
            ASSERT_NO_THROW(world.run([&](ThreadCommunicator& comm) {
                ThreadCommunicator own = comm.duplicate();
                MessageSlots slots{own};
                check.run(slots, comm);
            }));
    }
}

TEST(MessageSlots, DuplicatesAreApartFromWhatTheyAreMadeOf) {
    ThreadWorld world{world_of_ranks()};
    world.run([&](ThreadCommunicator& comm) {
        ThreadCommunicator one = comm.duplicate();
        ThreadCommunicator two = one.duplicate();
        ThreadCommunicator three = comm.duplicate();
        MessageSlots slots_of_one{one};
        MessageSlots slots_of_two{two};
        conformance::what_is_put_is_there(slots_of_two, comm);
        conformance::what_is_put_is_there(slots_of_one, three);
    });
}

TEST(MessageSlots, WaitForAsLongAsThereIsTime) {
    ThreadWorld world{world_of_ranks()};
    world.run([&](ThreadCommunicator& comm) {
        ThreadCommunicator own = comm.duplicate();
        MessageSlots slots{own, std::chrono::milliseconds::max()};
        BoundedAllToAllV<std::uint32_t> exchange{slots, 0, 8};
        if (comm.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds{20});
        conformance::start(exchange, comm.rank(), comm.size(), 8);
        conformance::check_blocks(exchange.wait(), comm.rank(), 0, 8);
    });
}

TEST(MessageSlots, AsManyAsCannotBeToldApartAreRefused) {
    ThreadWorld world{world_of_ranks()};
    world.run([&](ThreadCommunicator& comm) {
        ThreadCommunicator own = comm.duplicate();
        MessageSlots slots{own};
        EXPECT_THROW((BoundedAllToAllV<std::uint32_t>{slots, 50'000'000, 8}), BadInput);
    });
}

/// A message a put, of its bytes and 24 more.
TEST(MessageSlots, CostAMessageAPut) {
    ThreadWorld world{world_of_ranks()};
    world.run([&](ThreadCommunicator& comm) {
        ThreadCommunicator own = comm.duplicate();
        CountingCommunicator counted{own};
        MessageSlots slots{counted};
        BoundedAllToAllV<std::uint32_t> exchange{slots, 1, 30};
        const TrafficMatrix before = counted.sent();
        std::vector<std::int64_t> bytes(static_cast<std::size_t>(comm.size()));
        for (int i = 0; i < 5; ++i) {
            for (int peer = 0; peer < comm.size(); ++peer)
                bytes[static_cast<std::size_t>(peer)] +=
                    4 * std::ssize(conformance::block_of(comm.rank(), peer, exchange.started(), 30));
            conformance::start(exchange, comm.rank(), comm.size(), 30);
            static_cast<void>(exchange.wait());
        }
        for (int peer = 0; peer < comm.size(); ++peer) {
            if (peer == comm.rank()) continue;
            const TierTraffic& now = counted.sent().at(comm.rank(), peer);
            const TierTraffic& then = before.at(comm.rank(), peer);
            EXPECT_EQ(now.messages - then.messages, 5);
            EXPECT_EQ(now.payload - then.payload, bytes[static_cast<std::size_t>(peer)]);
            EXPECT_EQ(now.control - then.control, 5 * 24);
        }
    });
}

TEST(MessageSlots, WaitsEndWhenAPeerFailsAndByTheDeadline) {
    std::atomic<int> told{0};
    ThreadWorld world{world_of_ranks()};
    EXPECT_THROW(world.run([&](ThreadCommunicator& comm) {
        ThreadCommunicator own = comm.duplicate();
        MessageSlots slots{own};
        BoundedAllToAllV<std::uint32_t> exchange{slots, 1, 8};
        if (comm.rank() == 0) throw std::runtime_error{"enough"};
        try {
            conformance::start(exchange, comm.rank(), comm.size(), 8);
            static_cast<void>(exchange.wait());
        } catch (const PeerFailed&) {
            ++told;
            throw;
        }
    }),
                 std::runtime_error);
    EXPECT_EQ(told, world_of_ranks().topology.ranks() - 1);

    ThreadWorld other{world_of_ranks()};
    try {
        other.run([&](ThreadCommunicator& comm) {
            ThreadCommunicator own = comm.duplicate();
            MessageSlots slots{own, std::chrono::milliseconds{100}};
            BoundedAllToAllV<std::uint32_t> exchange{slots, 0, 8};
            if (comm.rank() == 0) return barrier(comm);
            conformance::start(exchange, comm.rank(), comm.size(), 8);
            static_cast<void>(exchange.wait());
        });
        FAIL();
    } catch (const DeadlinePassed& error) {
        EXPECT_NE(std::string{error.what()}.find("waited 100 ms in step 'bounded all-to-all' of flight 0, for ranks 0"),
                  std::string::npos)
            << error.what();
    }
}

TEST(MessageSlots, AWarmExchangeAllocatesNothing) {
    ThreadWorld world{world_of_ranks()};
    world.run([&](ThreadCommunicator& comm) {
        ThreadCommunicator own = comm.duplicate();
        MessageSlots slots{own};
        BoundedAllToAllV<std::uint32_t> exchange{slots, 1, 64};
        const std::vector<std::uint32_t> block(64, 7);
        const std::vector<std::span<const std::uint32_t>> blocks(static_cast<std::size_t>(comm.size()), block);
        const auto run = [&] {
            exchange.start(blocks);
            exchange.start(blocks);
            exchange.drain();
        };
        std::int64_t fewest = 1;  // pools grow to what some pace of the ranks needs, sooner or later
        for (int i = 0; i < 30; ++i) {
            const std::int64_t before = conformance::allocations;
            for (int n = 0; n < 20; ++n)
                run();
            fewest = std::min(fewest, conformance::allocations - before);
        }
        EXPECT_EQ(fewest, 0);
    });
}

}  // namespace
