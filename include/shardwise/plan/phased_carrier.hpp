// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/plan/carrier.hpp"
#include "shardwise/plan/itinerary.hpp"
#include "shardwise/plan/round_carrier.hpp"
#include "shardwise/plan/slot_carrier.hpp"

/// \file
/// Messages of flights that learn: there over slots, back over rounds.

namespace shardwise::inline SHARDWISE_ABI {

/// The plan's messages over slots, those of its adjoint over the rounds of a communicator. What the adjoint reads of
/// the plan's messages leaves its slots.
class PhasedCarrier final : public Carrier {
  public:
    PhasedCarrier(const Itinerary& itinerary, SlotRounds& rounds, CommunicatorRef comm,
                  std::pmr::memory_resource& memory)
        : forward_{itinerary.program().forward},
          there_{itinerary, rounds, memory, last_round(itinerary)},
          back_{itinerary, comm, memory} {}

    void begin(std::size_t segment, std::uint64_t flight) override {
        going_back_ = segment >= forward_;
        now().begin(segment, flight);
    }
    [[nodiscard]] std::span<std::byte> room(int to, std::int64_t bytes, std::int64_t payload) override {
        return now().room(to, bytes, payload);
    }
    void expect(int from, std::int64_t bytes) override { now().expect(from, bytes); }
    void post(const Label& label) override { now().post(label); }
    [[nodiscard]] bool test() override { return now().test(); }
    void wait() override { now().wait(); }
    [[nodiscard]] std::span<const std::byte> message(std::size_t segment, int from) const override {
        return segment >= forward_ ? back_.message(segment, from) : there_.message(segment, from);
    }
    /// Slots do not tell peers that nothing will come: who waits for it does so until the deadline.
    void abandon() noexcept override {
        if (going_back_) back_.abandon();
    }

  private:
    [[nodiscard]] Carrier& now() noexcept { return going_back_ ? static_cast<Carrier&>(back_) : there_; }
    [[nodiscard]] static std::size_t last_round(const Itinerary& itinerary) {
        std::size_t last = itinerary.program().forward;
        while (last > 0 && itinerary.stages()[last - 1].posts.empty())
            --last;
        return last == 0 ? 0 : last - 1;
    }

    std::size_t forward_;
    bool going_back_ = false;
    SlotCarrier there_;
    RoundCarrier back_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
