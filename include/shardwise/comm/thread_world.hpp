// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shardwise/comm/communicator.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Ranks as threads of one process, with a pretended topology: the reference communicator, and the embedded default.

namespace shardwise::inline SHARDWISE_ABI {

/// What a ThreadWorld is made of.
struct ThreadWorldOptions {
    Topology topology;
    /// How long a wait may last before it ends with the report of who waits for whom.
    std::chrono::milliseconds deadline = std::chrono::minutes{5};
    /// How long after a failure a thread that does not end may go on before it ends the process.
    std::chrono::milliseconds grace = std::chrono::seconds{10};
};

namespace detail {

/// One message on its way between two threads: the receiver copies it out of the sender's memory.
struct Parcel {
    Parcel(std::span<const std::byte> b, const Label& l) : bytes{b}, label{l} {}
    std::span<const std::byte> bytes;
    Label label;
    bool busy = false;   // being copied
    bool taken = false;  // copied, or withdrawn
};

/// The messages of one ordered pair of ranks. The n-th posted meets the n-th expected.
struct Mailbox {
    std::uint64_t base = 0;  // number of the first parcel kept
    std::vector<Parcel> parcels;
    std::uint64_t expected = 0;  // receives posted so far; used by the receiver alone

    [[nodiscard]] Parcel* find(std::uint64_t number) {
        if (number < base || number - base >= parcels.size()) return nullptr;
        return &parcels[number - base];
    }
    [[nodiscard]] bool taken(std::uint64_t number) { return number < base || parcels[number - base].taken; }
    void drop_taken() {
        const auto end = std::find_if(parcels.begin(), parcels.end(), [](const Parcel& p) { return !p.taken; });
        base += static_cast<std::uint64_t>(end - parcels.begin());
        parcels.erase(parcels.begin(), end);
    }
};

struct ThreadWait {
    bool active = false;
    Label label;
    std::vector<int> peers;
};

/// What the threads of a world share; everything is guarded by `mutex`.
struct ThreadWorldState {
    explicit ThreadWorldState(const ThreadWorldOptions& o)
        : options{o},
          boxes(static_cast<std::size_t>(o.topology.ranks()) * static_cast<std::size_t>(o.topology.ranks())),
          wake(static_cast<std::size_t>(o.topology.ranks())),
          waits(static_cast<std::size_t>(o.topology.ranks())),
          ended(static_cast<std::size_t>(o.topology.ranks()), false) {}

    ThreadWorldOptions options;
    std::mutex mutex;
    std::vector<Mailbox> boxes;  // (from, to)
    std::vector<std::condition_variable> wake;
    std::condition_variable world_changed;
    std::vector<ThreadWait> waits;
    std::vector<bool> ended;
    bool poisoned = false;
    int culprit = -1;
    std::string reason;

    Mailbox& box(int from, int to) {
        return boxes[static_cast<std::size_t>(from) * static_cast<std::size_t>(options.topology.ranks()) +
                     static_cast<std::size_t>(to)];
    }
    void poison(int rank, const std::string& why) {
        if (poisoned) return;
        poisoned = true;
        culprit = rank;
        reason = why;
        for (auto& w : wake)
            w.notify_all();
        world_changed.notify_all();
    }
    /// A line a rank: what it waits for. Call with the mutex held.
    [[nodiscard]] std::string report() const {
        std::string text;
        for (std::size_t r = 0; r < waits.size(); ++r) {
            text += "  rank " + std::to_string(r);
            if (ended[r]) {
                text += " has ended\n";
            } else if (!waits[r].active) {
                text += " is in no exchange\n";
            } else {
                text += " waits for rank";
                for (const int peer : waits[r].peers)
                    text += " " + std::to_string(peer);
                text += " in " + describe(waits[r].label) + " (" + waits[r].label.where.file + ":" +
                        std::to_string(waits[r].label.where.line) + ")\n";
            }
        }
        return text;
    }
};

}  // namespace detail

/// One rank of a ThreadWorld; belongs to its thread. Satisfies Communicator. A flush costs one copy a message, made by
/// the receiver; nothing is allocated once the pools are warm.
class ThreadCommunicator {
  public:
    ThreadCommunicator(detail::ThreadWorldState& state, int rank) : state_{&state}, rank_{rank} {}
    ThreadCommunicator(const ThreadCommunicator&) = delete;
    ThreadCommunicator& operator=(const ThreadCommunicator&) = delete;

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept { return topology().ranks(); }
    [[nodiscard]] Topology topology() const noexcept { return state_->options.topology; }

    Ticket post(const Label& label, std::span<const OutMessage> out, std::span<const InMessage> in) {
        const auto slot = free_operation();
        Operation& op = operations_[slot];
        op.label = label;
        const std::lock_guard lock{state_->mutex};
        throw_if_poisoned();
        for (const OutMessage& message : out) {
            auto& box = state_->box(rank_, message.to);
            op.out.push_back({message.to, box.base + box.parcels.size()});
            box.parcels.emplace_back(message.bytes, label);
            state_->wake[static_cast<std::size_t>(message.to)].notify_one();
        }
        for (const InMessage& message : in)
            op.in.push_back({message, state_->box(message.from, rank_).expected++, false});
        return Ticket{op.generation << 16U | slot};
    }

    [[nodiscard]] bool test(Ticket ticket) {
        Operation* op = find(ticket);
        if (op == nullptr) return true;
        std::unique_lock lock{state_->mutex};
        return progress(*op, lock);
    }

    void wait(Ticket ticket) {
        Operation* op = find(ticket);
        if (op == nullptr) return;
        const auto deadline = std::chrono::steady_clock::now() + state_->options.deadline;
        std::unique_lock lock{state_->mutex};
        auto& mine = state_->waits[static_cast<std::size_t>(rank_)];
        const Waiting until_return{mine};
        for (bool late = false; !progress(*op, lock);) {
            if (late) throw_deadline_passed(*op);
            throw_if_a_peer_has_ended(*op);
            note_wait(*op, mine);
            late = state_->wake[static_cast<std::size_t>(rank_)].wait_until(lock, deadline) == std::cv_status::timeout;
        }
    }

    /// Gives the flush a second to complete, since all ranks may be withdrawing; then poisons the world.
    void abandon(Ticket ticket) noexcept {
        Operation* op = find(ticket);
        if (op == nullptr) return;
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{1};
        std::unique_lock lock{state_->mutex};
        try {
            for (bool late = false; !late && !state_->poisoned;) {
                if (progress(*op, lock)) return;
                late = state_->wake[static_cast<std::size_t>(rank_)].wait_until(lock, until) == std::cv_status::timeout;
            }
        } catch (...) {  // it cannot complete: withdraw
        }
        if (!lock.owns_lock()) lock.lock();
        state_->poison(rank_, "rank " + std::to_string(rank_) + " left " + describe(op->label) + " unfinished");
        for (const auto& m : op->out) {
            auto& box = state_->box(rank_, m.to);
            while (true) {
                detail::Parcel* parcel = box.find(m.number);
                if (parcel == nullptr || parcel->taken) break;
                if (!parcel->busy) {
                    parcel->taken = true;
                    break;
                }
                state_->wake[static_cast<std::size_t>(rank_)].wait(lock);
            }
        }
        retire(*op);
    }

    void fail(const std::string& reason) {
        const std::lock_guard lock{state_->mutex};
        state_->poison(rank_, reason);
    }

  private:
    struct Out {
        int to;
        std::uint64_t number;
    };
    struct In {
        InMessage message;
        std::uint64_t number;
        bool copying;  // only inside copy_arrived
    };
    struct Operation {
        Label label;
        std::vector<Out> out;
        std::vector<In> in;
        std::uint64_t generation = 1;
        bool active = false;
    };

    /// A wait is reported while it lasts, and no longer: its label's text may be gone afterwards. Ends with the lock
    /// held.
    struct Waiting {
        explicit Waiting(detail::ThreadWait& w) : wait{w} {}
        Waiting(const Waiting&) = delete;
        Waiting& operator=(const Waiting&) = delete;
        ~Waiting() { wait.active = false; }
        detail::ThreadWait& wait;
    };

    std::size_t free_operation() {
        auto it = std::find_if(operations_.begin(), operations_.end(), [](const Operation& o) { return !o.active; });
        if (it == operations_.end()) it = operations_.emplace(operations_.end());
        it->active = true;
        it->out.clear();
        it->in.clear();
        return static_cast<std::size_t>(it - operations_.begin());
    }
    Operation* find(Ticket ticket) noexcept {
        const std::uint64_t slot = ticket.value() & 0xffffU;
        if (slot >= operations_.size()) return nullptr;
        Operation& op = operations_[slot];
        return op.active && op.generation == ticket.value() >> 16U ? &op : nullptr;
    }
    static void retire(Operation& op) noexcept {
        op.active = false;
        ++op.generation;
    }
    void throw_if_poisoned() const {
        if (state_->poisoned) throw PeerFailed{state_->culprit, state_->reason};
    }
    void throw_if_a_peer_has_ended(const Operation& op) const {
        const auto ended = [&](int peer) {
            if (state_->ended[static_cast<std::size_t>(peer)])
                throw PeerFailed{peer, "it has ended, while rank " + std::to_string(rank_) + " waits for it in " +
                                           describe(op.label)};
        };
        for (const auto& m : op.in)
            ended(m.message.from);
        for (const auto& m : op.out)
            ended(m.to);
    }

    /// Copies what has arrived, for every flush: a peer may wait for another one than this rank. Then forgets what is
    /// done of this one; true when nothing is left. Unlocks while it copies.
    bool progress(Operation& op, std::unique_lock<std::mutex>& lock) {
        throw_if_poisoned();
        for (bool copied = true; copied;) {
            copied = false;
            for (Operation& each : operations_)
                if (each.active && copy_arrived(each, lock)) copied = true;
        }
        std::erase_if(op.out, [&](const Out& m) { return state_->box(rank_, m.to).taken(m.number); });
        if (!op.in.empty() || !op.out.empty()) return false;
        retire(op);
        return true;
    }
    /// Takes what stands in the mailboxes at this moment; false when there was nothing.
    bool copy_arrived(Operation& op, std::unique_lock<std::mutex>& lock) {
        copies_.clear();
        for (In& m : op.in) {
            detail::Parcel* parcel = state_->box(m.message.from, rank_).find(m.number);
            if (parcel == nullptr || parcel->taken) continue;
            if (m.message.expected != InMessage::any_size &&
                m.message.expected != static_cast<std::int64_t>(parcel->bytes.size()))
                throw_mismatch(op, m, *parcel);
            m.copying = true;
            copies_.push_back({m.message.into, parcel->bytes});
        }
        if (copies_.empty()) return false;
        for (const In& m : op.in)
            if (m.copying) state_->box(m.message.from, rank_).find(m.number)->busy = true;
        lock.unlock();
        for (const auto& [into, bytes] : copies_) {
            into->resize(bytes.size());
            if (!bytes.empty()) std::memcpy(into->data(), bytes.data(), bytes.size());
        }
        lock.lock();
        for (const In& m : op.in) {
            if (!m.copying) continue;
            auto& box = state_->box(m.message.from, rank_);
            detail::Parcel& parcel = *box.find(m.number);
            parcel.busy = false;
            parcel.taken = true;
            box.drop_taken();
            state_->wake[static_cast<std::size_t>(m.message.from)].notify_one();
        }
        std::erase_if(op.in, [](const In& m) { return m.copying; });
        return true;
    }

    static void note_wait(const Operation& op, detail::ThreadWait& mine) {
        mine.active = true;
        mine.label = op.label;
        mine.peers.clear();
        for (const In& m : op.in)
            mine.peers.push_back(m.message.from);
        for (const Out& m : op.out)
            if (std::find(mine.peers.begin(), mine.peers.end(), m.to) == mine.peers.end()) mine.peers.push_back(m.to);
    }
    [[noreturn]] void throw_deadline_passed(const Operation& op) {
        const std::string text = "rank " + std::to_string(rank_) + " waited " +
                                 std::to_string(state_->options.deadline.count()) + " ms in " + describe(op.label) +
                                 "\n" + state_->report();
        state_->poison(rank_, text);
        throw DeadlinePassed{text};
    }
    [[noreturn]] void throw_mismatch(const Operation& op, const In& m, const detail::Parcel& parcel) const {
        throw Mismatch{"rank " + std::to_string(rank_) + ", " + describe(op.label) + ": " +
                       std::to_string(m.message.expected) + " bytes expected from rank " +
                       std::to_string(m.message.from) + ", which sent " + std::to_string(parcel.bytes.size()) + " in " +
                       describe(parcel.label)};
    }

    detail::ThreadWorldState* state_;
    int rank_;
    std::vector<Operation> operations_;
    std::vector<std::pair<Buffer<std::byte>*, std::span<const std::byte>>> copies_;
};

static_assert(Communicator<ThreadCommunicator>);

/// A world of threads. `run` may be called several times; a world that failed cannot be run again.
class ThreadWorld {
  public:
    explicit ThreadWorld(Topology topology) : ThreadWorld{ThreadWorldOptions{.topology = topology}} {}
    explicit ThreadWorld(const ThreadWorldOptions& options) : state_{options} {}

    [[nodiscard]] Topology topology() const noexcept { return state_.options.topology; }

    /// Runs `body(ThreadCommunicator&)` on every rank, each on a thread of its own, and waits for all of them.
    /// When a rank throws, the waits of the others end with PeerFailed, and `run` rethrows the first rank's exception.
    /// A thread that is still stuck after the grace time ends the process with a report and status 3.
    template <class Body>
    void run(Body body) {
        const int ranks = topology().ranks();
        std::exception_ptr first;
        int running = ranks;
        std::fill(state_.ended.begin(), state_.ended.end(), false);
        std::vector<std::thread> threads;
        threads.reserve(static_cast<std::size_t>(ranks));
        for (int rank = 0; rank < ranks; ++rank) {
            threads.emplace_back([&, rank] {
                std::exception_ptr failure;
                std::string what = "an exception that is no std::exception";
                try {
                    ThreadCommunicator comm{state_, rank};
                    body(comm);
                } catch (const std::exception& error) {
                    failure = std::current_exception();
                    what = error.what();
                } catch (...) {
                    failure = std::current_exception();
                }
                const std::lock_guard lock{state_.mutex};
                if (failure) {
                    if (!first) first = failure;
                    if (state_.culprit == rank) first = failure;
                    state_.poison(rank, what);
                }
                state_.ended[static_cast<std::size_t>(rank)] = true;
                --running;
                for (auto& w : state_.wake)
                    w.notify_all();
                state_.world_changed.notify_all();
            });
        }
        {
            std::unique_lock lock{state_.mutex};
            state_.world_changed.wait(lock, [&] { return running == 0 || state_.poisoned; });
            if (!state_.world_changed.wait_for(lock, state_.options.grace, [&] { return running == 0; })) {
                std::fprintf(stderr, "shardwise: rank %d failed (%s), and %lld ms later some ranks have not ended:\n%s",
                             state_.culprit, state_.reason.c_str(),
                             static_cast<long long>(state_.options.grace.count()), state_.report().c_str());
                std::fflush(stderr);
                std::_Exit(3);
            }
        }
        for (auto& thread : threads)
            thread.join();
        if (first) std::rethrow_exception(first);
    }

  private:
    detail::ThreadWorldState state_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
