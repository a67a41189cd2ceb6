// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "shardwise/comm/communicator.hpp"
#include "shardwise/comm/one_sided_ref.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/plan/carrier.hpp"
#include "shardwise/plan/itinerary.hpp"

/// \file
/// Messages of a flight over slots.

namespace shardwise::inline SHARDWISE_ABI {

/// The windows of a program's rounds. A flight's messages are tagged with its number, and take turns in the slots.
struct SlotRounds {
    /// Where the messages of a round go.
    struct Round {
        int window = -1;  ///< none: its messages travel another way
        int slots = 1;    ///< of each pair of ranks

        [[nodiscard]] SlotId at(int peer, std::uint64_t flight) const noexcept {
            return {
                .window = window, .peer = peer, .slot = static_cast<int>(flight % static_cast<std::uint64_t>(slots))};
        }
    };
    OneSidedRef slots;
    std::vector<Round> rounds;  ///< (segment)

    /// Whether a flight's message of that round has come.
    [[nodiscard]] bool has(std::size_t segment, int peer, std::uint64_t flight) {
        return slots.has(rounds[segment].at(peer, flight), flight);
    }
};

/// One-sided: a message is packed where the transport wants it, in shared memory the receiver's slot, and read where it
/// arrived. Nobody waits for what leaves.
class SlotCarrier final : public Carrier {
  public:
    /// \param rounds  outlives this
    /// \param keeps   segments below this one are read after their slots are free: their messages are copied
    SlotCarrier(const Itinerary& itinerary, SlotRounds& rounds, std::pmr::memory_resource& memory,
                std::size_t keeps = 0)
        : rounds_{&rounds} {
        const auto ranks = static_cast<std::size_t>(rounds.slots.size());
        wait_.peers.reserve(ranks);
        out_.reserve(ranks);
        in_.reserve(ranks);
        kept_.resize(keeps);
        for (std::size_t s = 0; s < keeps; ++s)
            for (std::size_t i = 0; i < (itinerary.stages()[s].posts.empty() ? 0 : ranks); ++i)
                kept_[s].emplace_back(memory);
    }

    void begin(std::size_t segment, std::uint64_t flight) override {
        segment_ = segment;
        flight_ = flight;
        out_.clear();
        in_.clear();
    }
    /// \throws BadInput for a message above its slot; nothing has left then
    [[nodiscard]] std::span<std::byte> room(int to, std::int64_t bytes, std::int64_t payload) override;
    void expect(int from, std::int64_t bytes) override { in_.push_back({.peer = from, .bytes = bytes}); }
    void post(const Label& label) override;
    [[nodiscard]] bool test() override;
    void wait() override;
    [[nodiscard]] std::span<const std::byte> message(std::size_t segment, int from) const override {
        if (segment < kept_.size()) return at(kept_[segment], from).span();
        return rounds_->slots.message(rounds_->rounds[segment].at(from, flight_));
    }
    void abandon() noexcept override {}

  private:
    struct Message {
        int peer;
        std::int64_t bytes;
    };
    void arrive();

    SlotRounds* rounds_;
    std::size_t segment_ = 0;
    std::uint64_t flight_ = 0;
    std::vector<Message> out_;
    std::vector<Message> in_;
    SlotWait wait_;
    std::vector<std::vector<Buffer<std::byte>>> kept_;  // (segment, rank of the world)
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/plan/slot_carrier.ipp"
#endif
