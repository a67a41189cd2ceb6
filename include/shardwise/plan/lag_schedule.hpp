// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shardwise/comm/one_sided_ref.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/source_location.hpp"
#include "shardwise/plan/flight_server.hpp"
#include "shardwise/plan/itinerary.hpp"
#include "shardwise/plan/serving_thread.hpp"
#include "shardwise/plan/slot_carrier.hpp"
#include "shardwise/plan/trace.hpp"

/// \file
/// Which flight goes next where ranks may be apart. (Bounded lag, section III)

namespace shardwise::inline SHARDWISE_ABI {

/// Counts the flights of a rank, of which at most k + 1 are under way: started, and their last messages not taken.
/// Every wait answers other ranks meanwhile.
class LagSchedule {
  public:
    /// \param way     of a flight: what it waits for last \param rounds  outlives this, as does the server
    /// \param server  null: flights have no halves
    /// \param takes_part  whether flights that others have started need this rank to start them, too
    LagSchedule(const Itinerary& way, int k, SlotRounds& rounds, FlightServer* server, bool takes_part);
    /// Where a thread answers, and not the calls of this one: tells it what this rank has started, and throws what it
    /// throws. \param thread  outlives this
    void served_by(ServingThread& thread) {
        thread_ = &thread;
        thread_->started(started_);
    }

    /// Adds a span for each wait for rows, in which others may be answered.
    void trace(Tracer* tracer) noexcept { tracer_ = tracer; }

    [[nodiscard]] std::uint64_t started() const noexcept { return started_; }
    [[nodiscard]] std::uint64_t finished() const noexcept { return finished_; }
    [[nodiscard]] int under_way() const noexcept { return static_cast<int>(started_ - finished_); }
    [[nodiscard]] bool full() const noexcept;
    [[nodiscard]] int bound() const noexcept { return k_; }
    /// How many flights another rank was ahead at most, as this one saw whenever it started one.
    [[nodiscard]] std::uint64_t most_ahead() const noexcept { return most_ahead_; }

    /// Before a flight starts: sees how far others are. Behind its first message they may be a step further.
    void look_ahead();
    /// A flight has started; its number is `started()` from here on. Answers what is there.
    void start();
    /// Answers what is there to be answered.
    void serve();
    /// Whether all that a flight waits for has come. Never waits.
    [[nodiscard]] bool has_come(std::uint64_t flight);
    /// Waits until all up to that flight have what they wait for, so that their slots may be taken.
    /// \throws what a transport's `pause` throws
    void finish(std::uint64_t flight, const SourceLocation& where);
    /// That flight has taken all that it waits for by itself.
    void finished(std::uint64_t flight) noexcept { finished_ = flight; }
    /// Serves on until every rank is here. Where others have started more flights, this one takes part in them.
    /// Collective. \param start_empty  starts a flight with an empty batch, and calls `start`
    void drain(const std::function<void()>& start_empty, const SourceLocation& where);

  private:
    bool answer();
    [[nodiscard]] bool has_answered(std::uint64_t flight) const;
    [[nodiscard]] bool leaves_nobody(std::uint64_t flight) const;
    [[nodiscard]] static Label label(const char* what, std::uint64_t flight, const SourceLocation& where) {
        return {.step = what, .flight = static_cast<std::uint32_t>(flight), .where = where};
    }
    void wait_until(SlotWait& wait, const Label& label, const std::function<bool(SlotWait&)>& step);

    SlotRounds* rounds_;
    FlightServer* server_;
    ServingThread* thread_ = nullptr;
    int k_;
    bool takes_part_;
    std::size_t first_ = 0;     // segment of the first round
    std::size_t last_ = 0;      // and of the last one
    std::string last_name_;     // of its exchange
    std::vector<int> askers_;   // whose first messages come here, ranks of the world
    std::vector<int> sources_;  // of the last messages, ranks of the world
    std::vector<int> peers_;    // ranks of the world
    int done_ = 0;              // window of what says that a rank is done
    std::uint64_t started_ = 0;
    std::uint64_t finished_ = 0;
    std::uint64_t drains_ = 0;
    std::uint64_t most_ahead_ = 0;
    SlotWait wait_;  // for rows
    Tracer* tracer_ = nullptr;
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/plan/lag_schedule.ipp"
#endif
