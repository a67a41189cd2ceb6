// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>
#include <string>

#include "shardwise/comm/communicator.hpp"
#include "shardwise/core/config.hpp"

/// \file
/// Any communicator behind one type, so that layers and plans are compiled once for all of them.

namespace shardwise::inline SHARDWISE_ABI {

/// Refers to a communicator of any type; costs one indirect call a round. Does not own it.
class CommunicatorRef {
  public:
    template <Communicator C>
        requires(!std::same_as<C, CommunicatorRef>)
    CommunicatorRef(C& comm) : object_{&comm}, calls_{&calls_of<C>}, rank_{comm.rank()}, topology_{comm.topology()} {}

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept { return topology_.ranks(); }
    [[nodiscard]] Topology topology() const noexcept { return topology_; }
    Ticket post(const Label& label, std::span<const OutMessage> out, std::span<const InMessage> in) {
        return calls_->post(object_, label, out, in);
    }
    [[nodiscard]] bool test(Ticket ticket) { return calls_->test(object_, ticket); }
    void wait(Ticket ticket) { calls_->wait(object_, ticket); }
    void abandon(Ticket ticket) noexcept { calls_->abandon(object_, ticket); }
    void fail(const std::string& reason) { calls_->fail(object_, reason); }
    /// The number of a new user of the communicator, a layer as a rule: 0, 1, ... on every rank, where it counts them.
    [[nodiscard]] int enroll() noexcept { return calls_->enroll(object_); }

  private:
    struct Calls {
        Ticket (*post)(void*, const Label&, std::span<const OutMessage>, std::span<const InMessage>);
        bool (*test)(void*, Ticket);
        void (*wait)(void*, Ticket);
        void (*abandon)(void*, Ticket) noexcept;
        void (*fail)(void*, const std::string&);
        int (*enroll)(void*) noexcept;
    };
    template <class C>
    static constexpr Calls calls_of{
        .post = [](void* c, const Label& label, std::span<const OutMessage> out,
                   std::span<const InMessage> in) { return static_cast<C*>(c)->post(label, out, in); },
        .test = [](void* c, Ticket ticket) { return static_cast<C*>(c)->test(ticket); },
        .wait = [](void* c, Ticket ticket) { static_cast<C*>(c)->wait(ticket); },
        .abandon = [](void* c, Ticket ticket) noexcept { static_cast<C*>(c)->abandon(ticket); },
        .fail = [](void* c, const std::string& reason) { static_cast<C*>(c)->fail(reason); },
        .enroll = [](void* c) noexcept -> int {
            if constexpr (Enrolling<C>) {
                return static_cast<C*>(c)->enroll();
            } else {
                static_cast<void>(c);
                return 0;
            }
        },
    };

    void* object_;
    const Calls* calls_;
    int rank_;
    Topology topology_;
};

static_assert(Communicator<CommunicatorRef>);

/// Waits for a round whose buffers die with the caller: when the wait throws, withdraws before it rethrows.
inline void wait_or_abandon(CommunicatorRef comm, Ticket ticket) {
    try {
        comm.wait(ticket);
    } catch (...) {
        comm.abandon(ticket);
        throw;
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
