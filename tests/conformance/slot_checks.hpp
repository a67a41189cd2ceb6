// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "conformance/checks.hpp"
#include "shardwise/comm/bounded_all_to_all.hpp"
#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/one_sided_ref.hpp"
#include "shardwise/comm/slot_counts.hpp"

/// \file
/// What every OneSided transport does: one list, run by the tests of each.

namespace conformance {

namespace sw = shardwise;

struct SlotCheck {
    std::string name;
    std::function<void(sw::OneSidedRef, sw::CommunicatorRef)> run;
};

/// Waits until `there` says so.
template <class There>
void wait_for(sw::OneSidedRef slots, int peer, There there) {
    sw::SlotWait wait{.label = {.step = "check"}, .peers = {peer}};
    while (true) {
        slots.progress(wait);
        if (there()) return;
        slots.pause(wait);
    }
}

/// The i-th byte of a message.
inline std::byte byte_of(int from, int to, int slot, std::uint64_t tag, std::size_t i) {
    return static_cast<std::byte>(from * 131 + to * 31 + slot * 7 + static_cast<int>(tag % 251) + static_cast<int>(i));
}
inline void put(sw::OneSidedRef slots, const sw::SlotId& id, std::uint64_t tag, std::int64_t bytes) {
    const auto room = slots.room(id);
    require(std::ssize(room) >= bytes, "no room");
    for (std::size_t i = 0; i < static_cast<std::size_t>(bytes); ++i)
        room[i] = byte_of(slots.rank(), id.peer, id.slot, tag, i);
    slots.put(id, tag, bytes);
}
inline void expect(sw::OneSidedRef slots, const sw::SlotId& id, std::uint64_t tag, std::int64_t bytes) {
    wait_for(slots, id.peer, [&] { return slots.has(id, tag); });
    const auto message = slots.message(id);
    require(std::ssize(message) == bytes,
            "a message of " + std::to_string(message.size()) + " bytes instead of " + std::to_string(bytes));
    for (std::size_t i = 0; i < message.size(); ++i)
        require(message[i] == byte_of(id.peer, slots.rank(), id.slot, tag, i), "another byte");
}

/// What a message from one rank to another may have; some have none.
inline std::int64_t size_between(int from, int to) {
    return (from + 2 * to) % 3 == 2 ? 0 : 1 + (from * 37 + to * 101) % 900;
}
inline sw::SlotLayout layout_of(sw::OneSidedRef slots, int count) {
    sw::SlotLayout layout{.slots = count, .from = {}, .to = {}};
    for (int peer = 0; peer < slots.size(); ++peer) {
        layout.from.push_back(peer == slots.rank() ? 0 : size_between(peer, slots.rank()));
        layout.to.push_back(peer == slots.rank() ? 0 : size_between(slots.rank(), peer));
    }
    return layout;
}

/// Every slot of every pair, full, half full and empty, in one window after the other.
inline void what_is_put_is_there(sw::OneSidedRef slots, sw::CommunicatorRef comm) {
    for (const int count : {1, 3}) {
        const int window = slots.open(layout_of(slots, count));
        for (std::uint64_t round = 0; round < 6; ++round) {
            const auto bytes_of = [&](std::int64_t most) { return most * static_cast<std::int64_t>(round % 3) / 2; };
            const std::uint64_t tag = round * 0x1234567890ABCDU;
            for (int peer = 0; peer < slots.size(); ++peer)
                for (int slot = 0; slot < count && peer != slots.rank(); ++slot)
                    if (const auto most = size_between(slots.rank(), peer); most != 0)
                        put(slots, {window, peer, slot}, tag, bytes_of(most));
            slots.flush();
            for (int peer = 0; peer < slots.size(); ++peer)
                for (int slot = 0; slot < count && peer != slots.rank(); ++slot)
                    if (const auto most = size_between(peer, slots.rank()); most != 0)
                        expect(slots, {window, peer, slot}, tag, bytes_of(most));
            barrier(comm);  // before slots are written again
        }
    }
}

/// A message is found by its tag alone; tags may be any number but the one that no message has.
inline void tags_tell_messages_apart(sw::OneSidedRef slots, sw::CommunicatorRef comm) {
    const auto ranks = static_cast<std::size_t>(slots.size());
    sw::SlotLayout layout{.slots = 2, .from = std::vector<std::int64_t>(ranks, 8), .to = {}};
    layout.from[static_cast<std::size_t>(slots.rank())] = 0;
    layout.to = layout.from;
    const int window = slots.open(layout);
    const int next = (slots.rank() + 1) % slots.size();
    const int before = (slots.rank() + slots.size() - 1) % slots.size();
    for (const std::uint64_t tag : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32U, ~std::uint64_t{1}}) {
        require(!slots.has({window, before, 0}, tag), "a tag before its message");
        barrier(comm);
        put(slots, {window, next, 0}, tag, 8);
        slots.flush();
        expect(slots, {window, before, 0}, tag, 8);
        require(!slots.has({window, before, 0}, tag + 5), "another tag");
        require(!slots.has({window, before, 1}, tag), "another slot");
        barrier(comm);
    }
}

using Block = std::vector<std::uint32_t>;
/// What a rank sends to another in an exchange: of a length that nobody can guess.
inline Block block_of(int from, int to, std::uint64_t exchange, std::size_t most) {
    std::mt19937 dice{static_cast<std::uint32_t>(exchange * 977 + static_cast<std::uint64_t>(from) * 31 +
                                                 static_cast<std::uint64_t>(to))};
    Block block(dice() % 4 == 0 ? 0 : dice() % (most + 1));
    for (std::uint32_t& x : block)
        x = static_cast<std::uint32_t>(dice());
    return block;
}
/// Starts an exchange of such blocks.
inline void start(sw::BoundedAllToAllV<std::uint32_t>& exchange, int rank, int ranks, std::size_t most) {
    std::vector<Block> blocks;
    for (int peer = 0; peer < ranks; ++peer)
        blocks.push_back(block_of(rank, peer, exchange.started(), most));
    const std::vector<std::span<const std::uint32_t>> views(blocks.begin(), blocks.end());
    exchange.start(views);
}
inline void check_blocks(sw::BoundedAllToAllV<std::uint32_t>::Blocks blocks, int rank, std::uint64_t number,
                         std::size_t most) {
    for (int peer = 0; peer < static_cast<int>(blocks.size()); ++peer) {
        const Block expected = block_of(peer, rank, number, most);
        const auto actual = blocks[static_cast<std::size_t>(peer)];
        require(std::equal(actual.begin(), actual.end(), expected.begin(), expected.end()),
                "exchange " + std::to_string(number) + " from rank " + std::to_string(peer) + " has another block");
    }
}

/// Ranks that start and wait as they like, some of them slow, and stop now and then.
inline void exchanges_at_any_pace(sw::OneSidedRef slots, sw::CommunicatorRef comm) {
    constexpr std::size_t most = 50;
    for (const int k : {0, 1, 2, 4, 8}) {
        sw::BoundedAllToAllV<std::uint32_t> exchange{slots, k, static_cast<std::int64_t>(most)};
        std::mt19937 dice{static_cast<std::uint32_t>(k * 100 + slots.rank())};
        std::uint64_t waited = 0;
        const std::uint64_t all = 120;
        const auto wait = [&] { check_blocks(exchange.wait(), slots.rank(), waited++, most); };
        while (exchange.started() < all) {
            if (exchange.outstanding() == k + 1 || (exchange.outstanding() > 0 && dice() % 3 == 0)) {
                wait();
                continue;
            }
            if (dice() % 40 == 0) std::this_thread::sleep_for(std::chrono::microseconds{dice() % 2000});
            start(exchange, slots.rank(), slots.size(), most);
        }
        while (exchange.outstanding() != 0)
            wait();
        require(waited == all, "an exchange was lost");
        exchange.drain();  // of nothing
    }
    barrier(comm);
}

/// The schedule that needs every slot: rank 0 does not read while all others go on as far as they can.
inline void no_slot_is_written_before_it_was_read(sw::OneSidedRef slots, sw::CommunicatorRef comm) {
    constexpr std::size_t most = 20;
    for (const int k : {0, 1, 2, 3}) {
        sw::BoundedAllToAllV<std::uint32_t> exchange{slots, k, static_cast<std::int64_t>(most)};
        const auto ahead = static_cast<std::uint64_t>(2 * k + 2);
        std::uint64_t waited = 0;
        const auto wait = [&] { check_blocks(exchange.wait(), slots.rank(), waited++, most); };
        const auto go_on = [&](std::uint64_t end) {
            while (exchange.started() < end) {
                if (exchange.outstanding() == k + 1) wait();
                start(exchange, slots.rank(), slots.size(), most);
            }
        };
        go_on(static_cast<std::uint64_t>(k) + 1);
        if (slots.rank() != 0) go_on(ahead);
        barrier(comm);  // rank 0 has read nothing, and 2k + 2 messages of each peer
        go_on(ahead);
        while (exchange.outstanding() != 0)
            wait();
        barrier(comm);
    }
}

/// Blocks may lie in what `wait` gave last: sent back to where they came from, or to any other rank.
inline void what_wait_gave_is_sent_on(sw::OneSidedRef slots, sw::CommunicatorRef comm) {
    constexpr std::size_t most = 4000;
    const auto ranks = static_cast<std::size_t>(slots.size());
    for (const int k : {0, 1})
        for (const std::size_t shift : {std::size_t{0}, std::size_t{1}, ranks - 1}) {
            sw::BoundedAllToAllV<std::uint32_t> exchange{slots, k, static_cast<std::int64_t>(most)};
            std::vector<std::vector<std::uint32_t>> sent;  // (from, to): what a block is full of
            for (std::size_t from = 0; from < ranks; ++from)
                for (std::size_t to = 0; to < ranks; ++to) {
                    if (to == 0) sent.emplace_back();
                    sent.back().push_back(static_cast<std::uint32_t>(100 * from + to));
                }
            const auto me = static_cast<std::size_t>(slots.rank());
            std::vector<Block> mine;
            for (const std::uint32_t number : sent[me])
                mine.emplace_back(most, number);
            const std::vector<std::span<const std::uint32_t>> views(mine.begin(), mine.end());
            exchange.start(views);
            for (int turn = 0; turn < 100; ++turn) {
                const auto blocks = exchange.wait();
                std::vector<std::span<const std::uint32_t>> next;
                for (std::size_t peer = 0; peer < ranks; ++peer) {
                    const auto& block = blocks[peer];
                    require(block.size() == most && std::all_of(block.begin(), block.end(),
                                                                [&](std::uint32_t x) { return x == sent[peer][me]; }),
                            "turn " + std::to_string(turn) + ": another block from rank " + std::to_string(peer));
                    next.push_back(blocks[(peer + shift) % ranks]);
                }
                const auto before = sent;
                for (std::size_t from = 0; from < ranks; ++from)
                    for (std::size_t to = 0; to < ranks; ++to)
                        sent[from][to] = before[(to + shift) % ranks][from];
                exchange.start(next);
            }
            exchange.drain();
        }
    barrier(comm);
}

/// Two threads of each rank, each with exchanges of its own.
inline void two_threads_of_a_rank(sw::OneSidedRef slots, sw::CommunicatorRef comm) {
    if (!slots.any_thread()) return;
    constexpr std::size_t most = 30;
    constexpr int k = 1;
    sw::BoundedAllToAllV<std::uint32_t> one{slots, k, static_cast<std::int64_t>(most)};
    sw::BoundedAllToAllV<std::uint32_t> other{slots, k, static_cast<std::int64_t>(most)};
    const auto run = [&](sw::BoundedAllToAllV<std::uint32_t>& exchange) {
        std::uint64_t waited = 0;
        while (waited < 150) {
            if (exchange.outstanding() <= k && exchange.started() < 150)
                start(exchange, slots.rank(), slots.size(), most);
            else
                check_blocks(exchange.wait(), slots.rank(), waited++, most);
        }
    };
    std::exception_ptr failed;
    std::thread beside{[&] {
        try {
            run(other);
        } catch (...) {
            failed = std::current_exception();
        }
    }};
    sw::BoundedAllToAllV<std::uint32_t> made_meanwhile{slots, k, static_cast<std::int64_t>(most)};
    run(one);
    run(made_meanwhile);
    beside.join();
    if (failed) std::rethrow_exception(failed);
    barrier(comm);
}

inline void what_does_not_fit_is_refused(sw::OneSidedRef slots, sw::CommunicatorRef comm) {
    const auto refused = [](const std::string& expected, const auto& call) {
        try {
            call();
        } catch (const sw::BadInput& error) {
            require(std::string{error.what()}.find(expected) != std::string::npos, error.what());
            return;
        }
        throw std::runtime_error{"not refused: " + expected};
    };
    sw::BoundedAllToAllV<std::uint32_t> exchange{slots, 1, 4};
    const Block four(4);
    const Block five(5);
    std::vector<std::span<const std::uint32_t>> blocks(static_cast<std::size_t>(slots.size()), four);
    blocks.back() = five;
    refused("a block of 5 elements, 20 bytes, for rank " + std::to_string(slots.size() - 1) +
                ": slots have room for 4 elements",
            [&] { exchange.start(blocks); });
    blocks.back() = four;
    refused("wait without an exchange", [&] { static_cast<void>(exchange.wait()); });
    exchange.start(blocks);
    exchange.start(blocks);
    refused("2 exchanges are under way, and ranks may be 1 apart: call wait for the oldest first",
            [&] { exchange.start(blocks); });
    blocks.pop_back();
    refused("blocks for", [&] { exchange.start(blocks); });
    exchange.drain();
    refused("give a number from 0 to ", [&] { sw::BoundedAllToAllV<float>{slots, 0, std::int64_t{1} << 62}; });
    refused("give a number from 0 to ", [&] { sw::BoundedAllToAllV<float>{slots, 0, -1}; });
    refused("more bytes than can be counted", [&] {
        sw::BoundedAllToAllV<char>{slots, 1, (std::int64_t{1} << 62) - 64};
    });
    refused("a lag of -1", [&] { sw::BoundedAllToAllV<int>{slots, -1, 4}; });
    refused("0 slots a pair of ranks", [&] {
        const std::vector<std::int64_t> none(static_cast<std::size_t>(slots.size()));
        static_cast<void>(slots.open({.slots = 0, .from = none, .to = none}));
    });
    refused("messages from 1 ranks", [&] { static_cast<void>(slots.open({.from = {0}, .to = {}})); });
    barrier(comm);
}

inline std::vector<SlotCheck> slot_checks() {
    return {{"what is put is there", what_is_put_is_there},
            {"tags tell messages apart", tags_tell_messages_apart},
            {"exchanges at any pace", exchanges_at_any_pace},
            {"no slot is written before it was read", no_slot_is_written_before_it_was_read},
            {"what wait gave is sent on", what_wait_gave_is_sent_on},
            {"two threads of a rank", two_threads_of_a_rank},
            {"what does not fit is refused", what_does_not_fit_is_refused}};
}

}  // namespace conformance
