// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/comm/communicator.hpp"
#include "shardwise/comm/thread_state.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// A rank that is a thread.

namespace shardwise::inline SHARDWISE_ABI {

/// One rank of a ThreadWorld; belongs to its thread. Satisfies Communicator. A round costs one copy a message, made by
/// the receiver; nothing is allocated once the pools are warm.
class ThreadCommunicator {
  public:
    ThreadCommunicator(detail::ThreadWorldState& state, int rank, std::size_t channel = 0)
        : state_{&state}, rank_{rank}, channel_{channel} {}
    ThreadCommunicator(const ThreadCommunicator&) = delete;
    ThreadCommunicator& operator=(const ThreadCommunicator&) = delete;

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int enroll() noexcept { return enrolled_++; }
    [[nodiscard]] int size() const noexcept { return topology().ranks(); }
    [[nodiscard]] Topology topology() const noexcept { return state_->options.topology; }

    /// A communicator of the same ranks whose rounds are matched apart from this one's. Ranks make theirs in one order.
    [[nodiscard]] ThreadCommunicator duplicate();

    Ticket post(const Label& label, std::span<const OutMessage> out, std::span<const InMessage> in);

    [[nodiscard]] bool test(Ticket ticket);

    void wait(Ticket ticket);

    /// Gives the round a second to complete, since all ranks may be withdrawing; then poisons the world.
    void abandon(Ticket ticket) noexcept;

    void fail(const std::string& reason);

  private:
    friend class ThreadSlots;

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

    std::size_t free_operation();
    Operation* find(Ticket ticket) noexcept;
    static void retire(Operation& op) noexcept;
    /// Waits until a peer has done something for this rank. \returns false when it became late
    bool wait_until(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point deadline);
    [[nodiscard]] detail::Mailbox& box(int from, int to) const { return state_->box(channel_, from, to); }
    void throw_if_poisoned() const;
    /// In a world that has failed, ranks finish what they can among themselves: so an error that all have agreed on is
    /// thrown by all. \throws PeerFailed where a round needs a rank that is gone
    void throw_if_hopeless(const Operation& op) const;
    [[nodiscard]] bool is_gone(int peer) const;
    void throw_if_a_peer_has_ended(const Operation& op) const;

    /// Copies what has arrived, for every round: a peer may wait for another one than this rank. Then forgets what is
    /// done of this one; true when nothing is left. Unlocks while it copies.
    bool progress(Operation& op, std::unique_lock<std::mutex>& lock);
    /// Takes what stands in the mailboxes at this moment; false when there was nothing.
    bool copy_arrived(Operation& op, std::unique_lock<std::mutex>& lock);

    static void note_wait(const Operation& op, detail::ThreadWait& mine);
    [[noreturn]] void throw_deadline_passed(const Operation& op);
    [[noreturn]] void throw_other_step(const Operation& op, const In& m, const detail::Parcel& parcel) const;
    [[noreturn]] void throw_mismatch(const Operation& op, const In& m, const detail::Parcel& parcel) const;

    detail::ThreadWorldState* state_;
    int rank_;
    std::size_t channel_;
    int enrolled_ = 0;
    std::vector<Operation> operations_;
    std::vector<std::pair<Buffer<std::byte>*, std::span<const std::byte>>> copies_;
};

static_assert(Communicator<ThreadCommunicator>);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/comm/thread_communicator.ipp"
#endif
