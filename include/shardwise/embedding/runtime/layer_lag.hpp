// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/comm/one_sided_ref.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/lanes.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"
#include "shardwise/plan/carrier.hpp"
#include "shardwise/plan/flight_server.hpp"
#include "shardwise/plan/frame.hpp"
#include "shardwise/plan/itinerary.hpp"
#include "shardwise/plan/lag_schedule.hpp"
#include "shardwise/plan/serving_thread.hpp"
#include "shardwise/plan/slot_carrier.hpp"

/// \file
/// What a layer with Collective<BoundedLag<>> has beside its flights: slots, who answers others, and when.

namespace shardwise::inline SHARDWISE_ABI::detail {

class LayerLag {
  public:
    /// \param way  of a whole flight \param states  of the frame that answers others; both outlive this
    /// \throws Mismatch where ranks disagree on the slots
    LayerLag(const LayerBlueprint& blueprint, const Itinerary& way, const States& states, CommunicatorRef comm,
             OneSidedRef slots, std::pmr::memory_resource& memory);

    /// Of a flight that this rank starts.
    [[nodiscard]] std::unique_ptr<Carrier> carrier(const Itinerary& way, CommunicatorRef comm,
                                                   std::pmr::memory_resource& memory);
    /// Whether nothing sees where a flight's result goes before all has come: no plan inside the plan.
    [[nodiscard]] bool results_come_last() const noexcept { return results_come_last_; }
    [[nodiscard]] LagSchedule& schedule() noexcept { return *schedule_; }
    /// Null: flights have no halves.
    [[nodiscard]] FlightServer* server() noexcept { return server_ ? &*server_ : nullptr; }
    /// Answers others from here on, on a thread where that was asked for: tables are loaded.
    void begin_to_serve();

  private:
    [[nodiscard]] static SlotRounds open(const LayerBlueprint& blueprint, OneSidedRef slots);

    bool learns_;
    bool on_thread_;
    bool results_come_last_;
    SlotRounds rounds_;
    std::optional<Frame<steps::Lanes>> frame_;  // of others' flights
    std::optional<FlightServer> server_;
    std::optional<LagSchedule> schedule_;
    std::optional<ServingThread> thread_;
};

}  // namespace shardwise::inline SHARDWISE_ABI::detail

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/runtime/layer_lag.ipp"
#endif
