// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/plan/carrier.hpp"
#include "shardwise/plan/itinerary.hpp"

/// \file
/// Messages of a flight over the rounds of a communicator.

namespace shardwise::inline SHARDWISE_ABI {

/// Two-sided: messages are packed into buffers of one's own, and arrive in buffers of one's own. A buffer a rank for
/// what leaves, and one a round and rank for what comes: steps leave blocks in place.
class RoundCarrier final : public Carrier {
  public:
    RoundCarrier(const Itinerary& itinerary, CommunicatorRef comm, std::pmr::memory_resource& memory) : comm_{comm} {
        const auto ranks = static_cast<std::size_t>(comm.size());
        sent_.reserve(ranks);
        for (std::size_t i = 0; i < ranks; ++i)
            sent_.emplace_back(memory);
        received_.resize(itinerary.stages().size());
        for (std::size_t s = 0; s < received_.size(); ++s)
            for (std::size_t i = 0; i < (itinerary.stages()[s].posts.empty() ? 0 : ranks); ++i)
                received_[s].emplace_back(memory);
    }

    void begin(std::size_t segment, std::uint64_t) override {
        segment_ = segment;
        out_.clear();
        in_.clear();
    }
    [[nodiscard]] std::span<std::byte> room(int to, std::int64_t bytes, std::int64_t payload) override {
        Buffer<std::byte>& buffer = at(sent_, to);
        buffer.resize(static_cast<std::size_t>(bytes));
        out_.push_back({.to = to, .bytes = buffer.span(), .payload = payload});
        return buffer.span();
    }
    void expect(int from, std::int64_t bytes) override {
        in_.push_back({.from = from, .into = &at(received_[segment_], from), .expected = bytes});
    }
    void post(const Label& label) override { ticket_ = comm_.post(label, out_, in_); }
    [[nodiscard]] bool test() override { return comm_.test(ticket_); }
    void wait() override { comm_.wait(ticket_); }
    [[nodiscard]] std::span<const std::byte> message(std::size_t segment, int from) const override {
        return at(received_[segment], from).span();
    }
    void abandon() noexcept override { comm_.abandon(ticket_); }

  private:
    CommunicatorRef comm_;
    Ticket ticket_;
    std::size_t segment_ = 0;
    std::vector<OutMessage> out_;
    std::vector<InMessage> in_;
    std::vector<Buffer<std::byte>> sent_;                   // (rank of the world)
    std::vector<std::vector<Buffer<std::byte>>> received_;  // (segment, the same)
};

}  // namespace shardwise::inline SHARDWISE_ABI
