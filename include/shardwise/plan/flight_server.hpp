// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <string>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/plan/flight.hpp"
#include "shardwise/plan/itinerary.hpp"
#include "shardwise/plan/slot_carrier.hpp"
#include "shardwise/plan/trace.hpp"

/// \file
/// The half of every flight that answers other ranks.

namespace shardwise::inline SHARDWISE_ABI {

/// When a rank answers the requests of a flight.
enum class Serve : std::uint8_t {
    together,  ///< all at once, and once it has started that flight itself: no rank is more than k + 1 flights ahead
    each  ///< every one as it comes: a rank waits for nobody but its owners; memory is bounded, the distance is not
};
/// "together" or "each".
[[nodiscard]] inline std::string name_of(Serve serve) {
    return serve == Serve::together ? "together" : "each";
}

/// Answers the ranks that ask this one, flight by flight, on the parts of one frame. Never waits. One thread serves;
/// `begin` is anybody's.
class FlightServer {
  public:
    /// \param whole   the itinerary of this rank, of which flights have halves
    /// \param parts   of a frame whose batch is empty \param rounds  outlives this, as do the parts
    /// \param k       how far ranks may be apart
    FlightServer(const Itinerary& whole, void* const* parts, CommunicatorRef comm, SlotRounds& rounds, Serve serve,
                 int k, std::pmr::memory_resource& memory);

    /// \param digest  as Flight::prepare
    void begin(std::uint16_t digest) noexcept { digest_ = digest; }
    void trace(Tracer* tracer, SpanOf of);
    void count(std::span<std::int64_t> payload) noexcept;

    /// Answers all that is there to be answered, each rank in its turn, but no more than a rank may have under way: one
    /// that asks as fast as it is answered would keep this one for itself.
    /// \param started  the last flight that this rank has started itself
    /// \returns whether there was anything
    bool serve(std::uint64_t started);
    /// The last flight of which all ranks have their answers, that they ask for in their order. Any thread asks.
    [[nodiscard]] std::uint64_t answered() const noexcept { return answered_.load(std::memory_order_acquire); }
    /// The last flight of which some rank has its answer. Any thread asks.
    [[nodiscard]] std::uint64_t furthest() const noexcept { return furthest_.load(std::memory_order_acquire); }
    /// How many answers there were. Any thread asks.
    [[nodiscard]] std::uint64_t answers() const noexcept { return answers_.load(std::memory_order_acquire); }

  private:
    /// Ranks that are answered at once.
    struct Asker {
        Asker(const Itinerary& half, std::vector<int> in_world, void* const* parts, CommunicatorRef comm,
              SlotRounds& rounds, std::pmr::memory_resource& memory)
            : itinerary{half},
              ranks{std::move(in_world)},
              flight{itinerary, parts, comm, memory, std::make_unique<SlotCarrier>(itinerary, rounds, memory)} {}
        Itinerary itinerary;
        std::vector<int> ranks;  // of the world
        Flight flight;
        std::uint64_t next = 1;
    };
    [[nodiscard]] bool has_asked(const Asker& asker);
    void answer(Asker& asker);

    SlotRounds* rounds_;
    Serve serve_;
    int under_way_;            // of a rank, at most
    std::size_t request_ = 0;  // segment
    std::atomic<std::uint16_t> digest_{0};
    std::atomic<std::uint64_t> answered_{0};
    std::atomic<std::uint64_t> furthest_{0};
    std::atomic<std::uint64_t> answers_{0};
    std::deque<Asker> askers_;
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/plan/flight_server.ipp"
#endif
