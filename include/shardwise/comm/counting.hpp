// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "shardwise/comm/communicator.hpp"
#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/config.hpp"

/// \file
/// A decorator that counts what is handed to the communicator below it.

namespace shardwise::inline SHARDWISE_ABI {

/// Forwards everything to `C` and counts bytes and messages by destination. One a rank, like the communicator below.
template <Communicator C>
class CountingCommunicator {
  public:
    explicit CountingCommunicator(C& below) : below_{&below}, sent_{below.topology()} {}

    [[nodiscard]] int rank() const noexcept { return below_->rank(); }
    [[nodiscard]] int size() const noexcept { return below_->size(); }
    [[nodiscard]] Topology topology() const noexcept { return below_->topology(); }

    Ticket post(const Label& label, std::span<const OutMessage> out, std::span<const InMessage> in) {
        for (const OutMessage& message : out)
            sent_.at(rank(), message.to) +=
                TierTraffic{.payload = message.payload,
                            .control = static_cast<std::int64_t>(message.bytes.size()) - message.payload,
                            .messages = 1};
        return below_->post(label, out, in);
    }
    [[nodiscard]] bool test(Ticket ticket) { return below_->test(ticket); }
    void wait(Ticket ticket) { below_->wait(ticket); }
    void abandon(Ticket ticket) noexcept { below_->abandon(ticket); }
    void fail(const std::string& reason) { below_->fail(reason); }
    [[nodiscard]] int enroll() noexcept requires Enrolling<C> { return below_->enroll(); }

    /// What this rank has sent so far; only its own row is filled.
    [[nodiscard]] const TrafficMatrix& sent() const noexcept { return sent_; }
    /// Starts again from zero.
    void reset() { sent_ = TrafficMatrix{topology()}; }

  private:
    C* below_;
    TrafficMatrix sent_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
