// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "shardwise/comm/checking.hpp"
#include "shardwise/comm/communicator.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/error.hpp"

/// \file
/// What every communicator has to do, as checks that run on each rank of any backend. A check throws when it fails.

namespace conformance {

using namespace shardwise;

/// Counts this thread's allocations where the program replaces operator new (allocations.cpp).
inline thread_local std::int64_t allocations = 0;

inline void require(bool condition, const std::string& what) {
    if (!condition) throw std::runtime_error{"conformance: " + what};
}
inline void require_text(const std::string& text, std::initializer_list<std::string> parts) {
    for (const std::string& part : parts)
        require(text.find(part) != std::string::npos, "'" + part + "' is missing in: " + text);
}

/// SplitMix64, spelt out once more: what messages are compared with is not made by the library under test.
inline std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
}
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    return mix(mix(a) ^ b);
}

/// Word i of the content is mix(key + i); the last word may be cut.
inline void fill(std::span<std::byte> bytes, std::uint64_t key) {
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
        const std::uint64_t word = mix(key + i);
        std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, bytes.size() - i));
    }
}
inline bool filled(std::span<const std::byte> bytes, std::uint64_t key) {
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
        const std::uint64_t word = mix(key + i);
        if (std::memcmp(bytes.data() + i, &word, std::min<std::size_t>(8, bytes.size() - i)) != 0) return false;
    }
    return true;
}

/// Who sends how much to whom in round `number`; a pure function, so that all ranks know it.
struct Pattern {
    static constexpr std::int64_t none = -1;

    std::uint64_t seed;
    int ranks;
    int density;  ///< of 8 pairs, how many exchange a message

    [[nodiscard]] std::uint64_t key(int number, int from, int to) const {
        return mix(mix(seed, static_cast<std::uint64_t>(number)), static_cast<std::uint64_t>(from * ranks + to));
    }
    [[nodiscard]] std::int64_t size(int number, int from, int to) const {
        const std::uint64_t random = key(number, from, to);
        if (from == to || static_cast<int>(random % 8) >= density) return none;
        const auto pick = static_cast<std::int64_t>(random >> 8U & 0xffffffU);
        switch (random >> 40U & 0xfU) {
            case 0:
            case 1:
                return 0;
            case 2:
            case 3:
                return 1024 * (pick % 6);  // multiples of the chunks of some backends
            case 4:
                return 1024 * (1 + pick % 6) + (pick % 2 == 0 ? 1 : -1);
            case 5:
                return pick % 16 == 0 ? 3'000'000 + pick % 1'000'000 : pick % 100'000;
            default:
                return pick % 200;
        }
    }
    [[nodiscard]] bool announced(int number, int from, int to) const {
        return (key(number, from, to) >> 50U & 1U) != 0;
    }
};

/// One round of a pattern on this rank, with its memory.
template <class C>
class PatternRound {
  public:
    PatternRound(C& comm, const Pattern& pattern, int number)
        : pattern_{pattern}, number_{number}, rank_{comm.rank()}, in_(static_cast<std::size_t>(comm.size())) {
        std::vector<OutMessage> outs;
        std::vector<InMessage> ins;
        for (int peer = 0; peer < comm.size(); ++peer) {
            if (const std::int64_t bytes = pattern.size(number, rank_, peer); bytes != Pattern::none) {
                out_.emplace_back();
                fill(out_.back().resize(static_cast<std::size_t>(bytes)), pattern.key(number, rank_, peer));
                outs.push_back({.to = peer, .bytes = out_.back().span(), .payload = bytes});
            }
            if (const std::int64_t bytes = pattern.size(number, peer, rank_); bytes != Pattern::none)
                ins.push_back(
                    {.from = peer,
                     .into = &in_[static_cast<std::size_t>(peer)],
                     .expected = pattern.announced(number, peer, rank_) ? bytes : std::int64_t{InMessage::any_size}});
        }
        ticket_ = comm.post({.step = "pattern", .flight = static_cast<std::uint32_t>(number)}, outs, ins);
    }
    [[nodiscard]] Ticket ticket() const { return ticket_; }
    void check() const {
        for (int from = 0; from < static_cast<int>(in_.size()); ++from) {
            const std::int64_t bytes = pattern_.size(number_, from, rank_);
            if (bytes == Pattern::none) continue;
            const auto& got = in_[static_cast<std::size_t>(from)];
            const std::string what = "round " + std::to_string(number_) + ", from rank " + std::to_string(from) +
                                     " to " + std::to_string(rank_);
            require(static_cast<std::int64_t>(got.size()) == bytes,
                    what + ": " + std::to_string(got.size()) + " bytes came instead of " + std::to_string(bytes));
            require(filled(got.span(), pattern_.key(number_, from, rank_)), what + ": other bytes came");
        }
    }

  private:
    Pattern pattern_;
    int number_;
    int rank_;
    std::deque<Buffer<std::byte>> out_;
    std::vector<Buffer<std::byte>> in_;
    Ticket ticket_;
};

/// Every rank completes its outstanding rounds in an order of its own.
struct RandomRounds {
    static constexpr const char* name = "random_rounds";
    template <Communicator C>
    static void run(C& comm) {
        for (const int density : {8, 3, 1})
            run_pattern(comm, {static_cast<std::uint64_t>(density), comm.size(), density}, 40);
    }
    template <class C>
    static void run_pattern(C& comm, const Pattern& pattern, int rounds) {
        std::minstd_rand random{static_cast<unsigned>(17 * comm.rank() + pattern.density + 1)};
        const auto dice = [&](std::size_t sides) { return static_cast<std::size_t>(random() / 7 % sides); };
        std::vector<std::unique_ptr<PatternRound<C>>> outstanding;
        const auto remove = [&](std::size_t i) {
            outstanding[i]->check();
            outstanding.erase(outstanding.begin() + static_cast<std::ptrdiff_t>(i));
        };
        for (int number = 0; number < rounds || !outstanding.empty();) {
            const bool can_post = number < rounds && outstanding.size() < 5;
            if (can_post && (outstanding.empty() || dice(2) == 0)) {
                outstanding.push_back(std::make_unique<PatternRound<C>>(comm, pattern, number++));
                continue;
            }
            const std::size_t i = dice(outstanding.size());
            if (dice(3) == 0) {
                comm.wait(outstanding[i]->ticket());
                remove(i);
            } else if (comm.test(outstanding[i]->ticket())) {
                remove(i);
            }
        }
    }
};

/// Three flights, each a chain of exchanges whose content depends on all that came before; progress is random on each
/// rank. One byte of another flight or step changes the end of the chain.
struct ThreeFlights {
    static constexpr const char* name = "three_flights";
    static constexpr int flights = 3;
    static constexpr int steps = 25;

    static std::size_t words(int flight, int step, int from, int to) {
        return mix(static_cast<std::uint64_t>(flight * 1000 + step), static_cast<std::uint64_t>(from * 100 + to)) % 40;
    }
    /// What a rank knows after it got messages of these sizes, made from what their senders knew.
    static std::uint64_t absorb(std::uint64_t knows, std::span<const std::uint64_t> message) {
        for (const std::uint64_t word : message)
            knows = mix(knows, word);
        return knows;
    }
    static std::vector<std::uint64_t> message(std::uint64_t knows, int flight, int step, int from, int to) {
        std::vector<std::uint64_t> result(words(flight, step, from, to));
        for (std::size_t i = 0; i < result.size(); ++i)
            result[i] = mix(knows, i);
        return result;
    }
    static std::uint64_t begin(int flight, int rank) { return mix(static_cast<std::uint64_t>(100 * flight + rank)); }

    template <Communicator C>
    static void run(C& comm) {
        struct Flight {
            std::uint64_t knows = 0;
            bool posted = false;
            Ticket ticket;
            std::vector<std::vector<std::uint64_t>> out;
            std::vector<Buffer<std::byte>> in;
        };
        std::array<Flight, flights> all;
        const int me = comm.rank();
        std::minstd_rand random{static_cast<unsigned>(me + 5)};
        for (int f = 0; f < flights; ++f) {
            all[static_cast<std::size_t>(f)].knows = begin(f, me);
            all[static_cast<std::size_t>(f)].out.resize(static_cast<std::size_t>(comm.size()));
            all[static_cast<std::size_t>(f)].in.resize(static_cast<std::size_t>(comm.size()));
        }
        const auto post = [&](int f, int step) {
            Flight& flight = all[static_cast<std::size_t>(f)];
            std::vector<OutMessage> outs;
            std::vector<InMessage> ins;
            for (int peer = 0; peer < comm.size(); ++peer) {
                if (peer == me) continue;
                auto& out = flight.out[static_cast<std::size_t>(peer)];
                out = message(flight.knows, f, step, me, peer);
                outs.push_back({.to = peer, .bytes = std::as_bytes(std::span{out}), .payload = 0});
                const std::int64_t size = static_cast<std::int64_t>(8 * words(f, step, peer, me));
                ins.push_back({.from = peer,
                               .into = &flight.in[static_cast<std::size_t>(peer)],
                               .expected = step % 2 == 0 ? size : std::int64_t{InMessage::any_size}});
            }
            flight.ticket = comm.post({.step = "three flights", .flight = static_cast<std::uint32_t>(f)}, outs, ins);
            flight.posted = true;
        };
        const auto finish = [&](Flight& flight) {
            flight.posted = false;
            for (int peer = 0; peer < comm.size(); ++peer) {
                if (peer == me) continue;
                const auto& in = flight.in[static_cast<std::size_t>(peer)];
                std::vector<std::uint64_t> got(in.size() / 8);
                if (!got.empty()) std::memcpy(got.data(), in.data(), in.size());
                flight.knows = absorb(flight.knows, got);
            }
        };
        for (int step = 0; step < steps; ++step)
            for (int f = 0; f < flights; ++f) {
                for (int i = static_cast<int>(random() / 7 % 6); i > 0; --i) {
                    Flight& some = all[random() / 7 % flights];
                    if (some.posted && comm.test(some.ticket)) finish(some);
                }
                Flight& mine = all[static_cast<std::size_t>(f)];
                if (mine.posted) {
                    comm.wait(mine.ticket);
                    finish(mine);
                }
                post(f, step);
            }
        for (const std::size_t f : {std::size_t{2}, std::size_t{0}, std::size_t{1}}) {
            comm.wait(all[f].ticket);
            if (all[f].posted) finish(all[f]);
        }

        for (int f = 0; f < flights; ++f)
            require(all[static_cast<std::size_t>(f)].knows == expected(comm.size(), f)[static_cast<std::size_t>(me)],
                    "flight " + std::to_string(f) + " ends with other content");
    }
    static std::vector<std::uint64_t> expected(int ranks, int flight) {
        std::vector<std::uint64_t> knows;
        for (int rank = 0; rank < ranks; ++rank)
            knows.push_back(begin(flight, rank));
        for (int step = 0; step < steps; ++step) {
            const std::vector<std::uint64_t> before = knows;
            for (int to = 0; to < ranks; ++to)
                for (int from = 0; from < ranks; ++from)
                    if (from != to)
                        knows[static_cast<std::size_t>(to)] =
                            absorb(knows[static_cast<std::size_t>(to)],
                                   message(before[static_cast<std::size_t>(from)], flight, step, from, to));
        }
        return knows;
    }
};

/// Ranks wait for two rounds in opposite orders: waiting for one makes progress on the other.
struct OppositeWaits {
    static constexpr const char* name = "opposite_waits";
    template <Communicator C>
    static void run(C& comm) {
        const Pattern pattern{.seed = 5, .ranks = comm.size(), .density = 8};
        for (int number = 0; number < 40; number += 2) {
            const PatternRound<C> first{comm, pattern, number};
            const PatternRound<C> second{comm, pattern, number + 1};
            comm.wait(comm.rank() % 2 == 0 ? first.ticket() : second.ticket());
            comm.wait(comm.rank() % 2 == 0 ? second.ticket() : first.ticket());
            first.check();
            second.check();
        }
    }
};

/// Rank, size and topology; a round without messages; tickets that are complete.
struct Basics {
    static constexpr const char* name = "basics";
    template <Communicator C>
    static void run(C& comm) {
        require(comm.size() == comm.topology().ranks(), "size and topology differ");
        require(comm.rank() >= 0 && comm.rank() < comm.size(), "rank out of range");
        const Ticket waited = comm.post({.step = "empty"}, {}, {});
        comm.wait(waited);
        const Ticket tested = comm.post({.step = "empty"}, {}, {});
        require(!(waited == tested), "a ticket came twice");
        require(comm.test(tested), "a round without messages is complete at once");
        comm.abandon(tested);  // complete, so there is nothing to abandon
        comm.abandon(waited);
        RandomRounds::run_pattern(comm, {.seed = 3, .ranks = comm.size(), .density = 8}, 2);
    }
};

/// A round like an earlier one allocates nothing.
struct WarmPosts {
    static constexpr const char* name = "warm_posts";
    template <Communicator C>
    static void run(C& comm) {
        const auto ranks = static_cast<std::size_t>(comm.size());
        constexpr std::size_t depth = 3;
        std::vector<std::byte> content(2'500, std::byte{1});
        std::vector<Buffer<std::byte>> in(depth * ranks);
        std::vector<OutMessage> out;
        std::array<std::vector<InMessage>, depth> ins;
        std::array<Ticket, depth> tickets;
        for (std::size_t peer = 0; peer < ranks; ++peer) {
            if (static_cast<int>(peer) == comm.rank()) continue;
            out.push_back({.to = static_cast<int>(peer), .bytes = content, .payload = 0});
            for (std::size_t d = 0; d < depth; ++d)
                ins[d].push_back({.from = static_cast<int>(peer), .into = &in[d * ranks + peer], .expected = 2'500});
        }
        // How far ranks run ahead of each other varies, so pools may still grow in some window, but not in all of them.
        std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
        for (int window = 0; window < 10; ++window) {
            const std::int64_t before = allocations;
            for (int round = 0; round < 20; ++round) {
                for (std::size_t d = 0; d < depth; ++d)
                    tickets[d] = comm.post({.step = "warm", .flight = static_cast<std::uint32_t>(d)}, out, ins[d]);
                for (std::size_t d = 0; d < depth; ++d)
                    comm.wait(tickets[d]);
            }
            fewest = std::min(fewest, allocations - before);
        }
        require(fewest == 0, "at least " + std::to_string(fewest) + " allocations in 20 warm rounds");
    }
};

/// Each rank sends `sent` bytes to the next one, which expects `expected`.
template <int Sent, int Expected>
struct WrongSize {
    static inline const std::string title = "wrong_size_" + std::to_string(Sent) + "_for_" + std::to_string(Expected);
    static constexpr const char* name = "wrong_size";
    /// Throws Mismatch, or PeerFailed where another rank was first.
    template <Communicator C>
    static void run(C& comm) {
        const int next = (comm.rank() + 1) % comm.size();
        const int previous = (comm.rank() + comm.size() - 1) % comm.size();
        const std::vector<std::byte> content(Sent);
        Buffer<std::byte> into;
        const OutMessage out{.to = next, .bytes = content, .payload = Sent};
        const InMessage in{.from = previous, .into = &into, .expected = Expected};
        const Label label{.step = "ring", .flight = 7};
        const Ticket ticket = comm.post(label, {&out, 1}, {&in, 1});
        try {
            if (comm.rank() % 2 == 0)
                comm.wait(ticket);
            else
                while (!comm.test(ticket)) {
                }
        } catch (const Mismatch& error) {
            comm.abandon(ticket);
            require_text(error.what(),
                         {"rank " + std::to_string(comm.rank()), "rank " + std::to_string(previous), "step 'ring'",
                          "flight 7", std::to_string(Sent) + " ", std::to_string(Expected) + " bytes"});
            require(error.exit_status() == 3, "exit status");
            throw;
        } catch (...) {
            comm.abandon(ticket);
            throw;
        }
        require(false, "a wrong size went unnoticed");
    }
};

/// What the checking decorator finds: on every rank, the same text.
struct CheckingFinds {
    static constexpr const char* name = "checking_finds";
    template <Communicator C>
    static void run(C& below) {
        CheckingCommunicator<C> comm{below};
        const int me = comm.rank();
        const int last = comm.size() - 1;
        if (last == 0) return;
        const std::vector<std::byte> content(12);
        Buffer<std::byte> into;
        const OutMessage to_last{.to = last, .bytes = content, .payload = 0};
        const InMessage from_first{.from = 0, .into = &into, .expected = 12};
        const InMessage too_small{.from = 0, .into = &into, .expected = 8};
        const OutMessage to_first{.to = 0, .bytes = content, .payload = 0};
        const InMessage from_last{.from = last, .into = &into, .expected = InMessage::any_size};
        using Outs = std::span<const OutMessage>;
        using Ins = std::span<const InMessage>;
        const auto finds = [&](const char* step, std::uint32_t flight, Outs outs, Ins ins,
                               std::initializer_list<std::string> parts) {
            const Label label{.step = step, .flight = flight};
            bool found = false;
            try {
                comm.wait(comm.post(label, outs, ins));
            } catch (const Mismatch& error) {
                found = true;
                require_text(error.what(), parts);
                require_text(error.what(), {"checks.hpp:" + std::to_string(label.where.line)});
            }
            require(found, "a disagreement went unnoticed: " + *parts.begin());
        };
        const std::string first = "rank 0 at step 'reduce' of flight 1 (";
        const std::string end = "rank " + std::to_string(last) + " at step '";
        finds(me == last ? "gather" : "reduce", 1, {}, {}, {first, end + "gather' of flight 1 ("});
        finds("reduce", me == last ? 2 : 1, {}, {}, {first, end + "reduce' of flight 2 ("});
        finds(
            "reduce", 1, me == 0 ? Outs{&to_last, 1} : Outs{}, me == last ? Ins{&too_small, 1} : Ins{},
            {first, " sends 12 bytes to rank " + std::to_string(last), end + "reduce'", "expects 8 bytes from rank 0"});
        finds("reduce", 1, me == 0 ? Outs{&to_last, 1} : Outs{}, {}, {first, "sends 12 bytes", "expects nothing"});
        finds("reduce", 1, {}, me == 0 ? Ins{&from_last, 1} : Ins{},
              {first, "sends nothing", "expects a message of any size"});
        const OutMessage twice[] = {to_first, to_first};
        finds("reduce", 1, me == last ? Outs{twice} : Outs{}, me == 0 ? Ins{&from_last, 1} : Ins{},
              {end, "sends to rank 0: the same rank twice"});
        const OutMessage nowhere{.to = comm.size(), .bytes = content, .payload = 0};
        finds("reduce", 1, me == 0 ? Outs{&nowhere, 1} : Outs{}, {},
              {first, "sends to rank " + std::to_string(comm.size()) + ": no such rank"});
        // Nothing of that reached the communicator below, and it goes on.
        comm.wait(comm.post({.step = "reduce"}, me == 0 ? Outs{&to_last, 1} : Outs{},
                            me == last ? Ins{&from_first, 1} : Ins{}));
        require(me != last || into.size() == 12, "the message after the disagreements");
    }
};

/// A check of communicators of type C. `mismatch`: it ends with a Mismatch, and the communicator is of no use after it.
template <class C>
struct Check {
    std::string name;
    void (*run)(C&);
    bool mismatch = false;
};

template <class T, class C>
void directly(C& comm) {
    T::run(comm);
}
template <class T, class C>
void by_reference(C& comm) {
    CommunicatorRef reference{comm};
    T::run(reference);
}
template <class T, class C>
void checked(C& comm) {
    CheckingCommunicator<C> checking{comm};
    T::run(checking);
}
template <class T, class C>
void counted(C& comm) {
    CountingCommunicator<C> counting{comm};
    T::run(counting);
}

/// All checks, directly and through each decorator.
template <class C>
std::vector<Check<C>> checks(int ranks) {
    std::vector<Check<C>> all;
    const auto add = [&]<class T>(T) {
        all.push_back({T::name, directly<T, C>});
        all.push_back({std::string{T::name} + ".by_reference", by_reference<T, C>});
        all.push_back({std::string{T::name} + ".checked", checked<T, C>});
        all.push_back({std::string{T::name} + ".counted", counted<T, C>});
    };
    add(Basics{});
    add(RandomRounds{});
    add(ThreeFlights{});
    add(OppositeWaits{});
    add(WarmPosts{});
    all.push_back({CheckingFinds::name, directly<CheckingFinds, C>});
    const auto add_wrong = [&]<class T>(T) {
        if (ranks > 1) all.push_back({T::title, by_reference<T, C>, true});
    };
    add_wrong(WrongSize<12, 8>{});
    add_wrong(WrongSize<4, 8>{});
    add_wrong(WrongSize<0, 8>{});
    add_wrong(WrongSize<8, 0>{});
    add_wrong(WrongSize<5'000, 3'000>{});
    add_wrong(WrongSize<5'120, 9'000>{});
    add_wrong(WrongSize<200'000, 8>{});
    return all;
}

}  // namespace conformance
