// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/comm/thread_slots.hpp"

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
#include "shardwise/comm/counting_slots.hpp"
#include "shardwise/comm/delaying_slots.hpp"
#include "shardwise/comm/thread_world.hpp"

namespace {

using namespace shardwise;

int ranks() {
    const char* text = std::getenv("SHARDWISE_TEST_RANKS");
    return text == nullptr ? 4 : std::atoi(text);
}
ThreadWorldOptions options(std::chrono::milliseconds deadline = std::chrono::seconds{30}) {
    return {.topology = Topology::of(ranks(), 1), .deadline = deadline};
}

TEST(ThreadSlots, DoWhatAllTransportsDo) {
    for (const conformance::SlotCheck& check : conformance::slot_checks()) {
        SCOPED_TRACE(check.name);
        ThreadWorld world{options()};
        ASSERT_NO_THROW(world.run([&](ThreadCommunicator& comm) {
            ThreadSlots slots{comm};
            check.run(slots, comm);
        }));
    }
}

TEST(ThreadSlots, AWorldOpensThemAnew) {
    ThreadWorld world{options()};
    for (int run = 0; run < 3; ++run)
        world.run([&](ThreadCommunicator& comm) {
            ThreadSlots first{comm};
            ThreadSlots second{comm};
            conformance::what_is_put_is_there(second, comm);
            conformance::what_is_put_is_there(first, comm);
        });
}

TEST(ThreadSlots, OfACommunicatorAndOfItsDuplicateAreOthers) {
    ThreadWorld world{options()};
    world.run([&](ThreadCommunicator& comm) {
        ThreadCommunicator other = comm.duplicate();
        ThreadSlots first{comm};
        ThreadSlots second{other};
        BoundedAllToAllV<std::uint32_t> here{first, 0, 8};
        BoundedAllToAllV<std::uint32_t> there{second, 1, 30};
        for (std::uint64_t i = 0; i < 20; ++i) {
            conformance::start(here, comm.rank(), comm.size(), 8);
            conformance::start(there, comm.rank(), comm.size(), 30);
            conformance::check_blocks(there.wait(), comm.rank(), i, 30);
            conformance::check_blocks(here.wait(), comm.rank(), i, 8);
        }
    });
}

TEST(ThreadSlots, PutsAndBytesAreCounted) {
    constexpr std::size_t most = 30;
    ThreadWorld world{options()};
    world.run([&](ThreadCommunicator& comm) {
        ThreadSlots below{comm};
        CountingSlots slots{below};
        BoundedAllToAllV<std::uint32_t> exchange{slots, 2, static_cast<std::int64_t>(most)};
        for (int i = 0; i < 3; ++i)
            conformance::start(exchange, comm.rank(), comm.size(), most);
        exchange.drain();
        for (int peer = 0; peer < comm.size(); ++peer) {
            std::int64_t bytes = 0;
            for (std::uint64_t i = 0; i < 3 && peer != comm.rank(); ++i)
                bytes += 4 * std::ssize(conformance::block_of(comm.rank(), peer, i, most));
            const TierTraffic sent = slots.sent().at(comm.rank(), peer);
            EXPECT_EQ(sent.payload, bytes);
            EXPECT_EQ(sent.messages, peer == comm.rank() ? 0 : 3);
        }
    });
}

/// A rank waits exactly when k + 1 exchanges are under way and the oldest is not there; nobody is more than k + 1
/// ahead.
TEST(ThreadSlots, RanksAreAtMostSoFarApart) {
    for (const int k : {0, 1, 3}) {
        std::vector<std::atomic<int>> posted(static_cast<std::size_t>(ranks()));
        std::atomic<int> most{0};
        ThreadWorld world{options()};
        world.run([&](ThreadCommunicator& comm) {
            ThreadSlots below{comm};
            std::mt19937 dice{static_cast<std::uint32_t>(comm.rank())};
            DelayingSlots slots{below, [&] { return std::chrono::microseconds{comm.rank() == 1 ? 3000 : 10}; }};
            BoundedAllToAllV<std::uint32_t> exchange{slots, k, 8};
            for (int i = 0; i < 30; ++i) {
                if (exchange.outstanding() == k + 1)
                    conformance::check_blocks(exchange.wait(), comm.rank(), static_cast<std::uint64_t>(i - k - 1), 8);
                ++posted[static_cast<std::size_t>(comm.rank())];
                conformance::start(exchange, comm.rank(), comm.size(), 8);
                for (const std::atomic<int>& other : posted)
                    most = std::max(most.load(), posted[static_cast<std::size_t>(comm.rank())] - other);
            }
            exchange.drain();
        });
        EXPECT_LE(most, k + 1);
        EXPECT_GE(most, k);  // and they do go ahead of the slow one
    }
}

TEST(ThreadSlots, ASlowRankHoldsUpNobodyUntilThen) {
    constexpr int k = 2;
    std::atomic<bool> slow_started{false};
    std::atomic<int> ahead{0};
    ThreadWorld world{options()};
    world.run([&](ThreadCommunicator& comm) {
        ThreadSlots slots{comm};
        BoundedAllToAllV<std::uint32_t> exchange{slots, k, 8};
        if (comm.rank() == 0) {
            while (ahead != (k + 1) * (comm.size() - 1))  // the others start k + 1 without it
                std::this_thread::yield();
            slow_started = true;
        }
        for (int i = 0; i < k + 1; ++i) {
            conformance::start(exchange, comm.rank(), comm.size(), 8);
            if (comm.rank() != 0) ++ahead;
        }
        conformance::check_blocks(exchange.wait(), comm.rank(), 0, 8);
        EXPECT_TRUE(slow_started);
        exchange.drain();
    });
}

TEST(ThreadSlots, RanksThatDisagreeAreTold) {
    ThreadWorld world{options()};
    try {
        world.run([&](ThreadCommunicator& comm) {
            ThreadSlots slots{comm};
            BoundedAllToAllV<std::uint32_t>{slots, comm.rank() == 0 ? 1 : 2, 8};
        });
        FAIL();
    } catch (const Mismatch& error) {
        EXPECT_NE(std::string{error.what()}.find("the number of slots a pair of ranks is"), std::string::npos)
            << error.what();
    }
    ThreadWorld other{options()};
    EXPECT_THROW(other.run([&](ThreadCommunicator& comm) {
        ThreadSlots slots{comm};
        BoundedAllToAllV<std::uint32_t>{slots, 1, comm.rank() == 0 ? 8 : 9};
    }),
                 Mismatch);
}

TEST(ThreadSlots, WaitsEndWhenAPeerFailsOrEnds) {
    for (const bool throws : {true, false}) {
        std::atomic<int> told{0};
        ThreadWorld world{options()};
        const auto body = [&](ThreadCommunicator& comm) {
            ThreadSlots slots{comm};
            BoundedAllToAllV<std::uint32_t> exchange{slots, 1, 8};
            if (comm.rank() == 0) {
                if (throws) throw std::runtime_error{"enough"};
                return;
            }
            conformance::start(exchange, comm.rank(), comm.size(), 8);
            try {
                static_cast<void>(exchange.wait());
            } catch (const PeerFailed& error) {
                const std::string text = error.what();
                EXPECT_NE(text.find(throws ? "rank 0 failed: enough" : "has ended, while rank"), std::string::npos)
                    << text;
                ++told;
                if (!throws) return;
                throw;
            }
        };
        if (throws)
            EXPECT_THROW(world.run(body), std::runtime_error);
        else
            world.run(body);
        EXPECT_EQ(told, ranks() - 1);
    }
}

TEST(ThreadSlots, WaitsHaveADeadline) {
    ThreadWorld world{options(std::chrono::milliseconds{100})};
    try {
        world.run([&](ThreadCommunicator& comm) {
            ThreadSlots slots{comm};
            BoundedAllToAllV<std::uint32_t> exchange{slots, 0, 8};
            if (comm.rank() == 0) {
                std::this_thread::sleep_for(std::chrono::seconds{1});
                return;
            }
            conformance::start(exchange, comm.rank(), comm.size(), 8);
            static_cast<void>(exchange.wait());
        });
        FAIL();
    } catch (const DeadlinePassed& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("waited 100 ms in step 'bounded all-to-all' of flight 0"), std::string::npos) << text;
        EXPECT_NE(text.find("rank 0 is in no exchange"), std::string::npos) << text;
    }
}

/// Long, under delays, stops and bursts, with every byte checked: 1,500 exchanges, or with SHARDWISE_FULL a million of
/// up to 3 ranks.
TEST(ThreadSlots, NothingIsLostOrMixedInTheLongRun) {
    const bool full = std::getenv("SHARDWISE_FULL") != nullptr;
    const std::uint64_t all = !full ? 1'500 : ranks() > 3 ? 100'000 : 1'000'000;
    constexpr int k = 2;
    ThreadWorld world{options()};
    world.run([&](ThreadCommunicator& comm) {
        ThreadSlots slots{comm};
        BoundedAllToAllV<std::uint32_t> exchange{slots, k, 6};
        std::mt19937 dice{static_cast<std::uint32_t>(comm.rank()) + 77};
        std::uint64_t waited = 0;
        const auto wait = [&] { conformance::check_blocks(exchange.wait(), comm.rank(), waited++, 6); };
        bool slow = false;
        while (exchange.started() < all) {
            if (dice() % 500 == 0) slow = dice() % 4 == 0;
            if (slow && dice() % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds{dice() % 300});
            if (exchange.outstanding() == k + 1 || (exchange.outstanding() > 0 && dice() % 3 == 0))
                wait();
            else
                conformance::start(exchange, comm.rank(), comm.size(), 6);
        }
        while (exchange.outstanding() != 0)
            wait();
        conformance::require(waited == all, "an exchange was lost");
    });
}

TEST(ThreadSlots, AWarmExchangeAllocatesNothing) {
    ThreadWorld world{options()};
    world.run([&](ThreadCommunicator& comm) {
        ThreadSlots slots{comm};
        BoundedAllToAllV<std::uint32_t> exchange{slots, 1, 64};
        const std::vector<std::uint32_t> block(64, 7);
        const std::vector<std::span<const std::uint32_t>> blocks(static_cast<std::size_t>(comm.size()), block);
        const auto run = [&] {
            exchange.start(blocks);
            exchange.start(blocks);
            exchange.drain();
        };
        run();
        run();
        const std::int64_t before = conformance::allocations;
        for (int i = 0; i < 20; ++i)
            run();
        EXPECT_EQ(conformance::allocations, before);
    });
}

}  // namespace
