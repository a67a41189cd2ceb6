// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/bytes.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/facts.hpp"
#include "shardwise/core/source_location.hpp"
#include "shardwise/plan/carrier.hpp"
#include "shardwise/plan/itinerary.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/plan/round_carrier.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/plan/trace.hpp"

/// \file
/// The run reader: one batch on its way through a program, segment by segment.

namespace shardwise::inline SHARDWISE_ABI {

/// Runs one batch after the other through a program, on the parts of a frame that belongs to the caller.
///
/// Segments of all flights of a rank start in one order that is the same on all ranks; `poll` only completes what was
/// posted. Not thread safe; a destroyed flight that is not finished withdraws from its round and fails the peers.
class Flight {
  public:
    /// Over the rounds of a communicator. \param itinerary  of this rank; outlives the flight, as do the parts
    Flight(const Itinerary& itinerary, void* const* parts, CommunicatorRef comm, std::pmr::memory_resource& memory)
        : Flight{itinerary, parts, comm, memory, std::make_unique<RoundCarrier>(itinerary, comm, memory)} {}
    /// \param comm  on which ranks agree on errors
    Flight(const Itinerary& itinerary, void* const* parts, CommunicatorRef comm, std::pmr::memory_resource& memory,
           std::unique_ptr<Carrier> carrier);
    Flight(const Flight&) = delete;
    Flight& operator=(const Flight&) = delete;
    ~Flight() {
        if (in_flight_) carrier_->abandon();
    }

    [[nodiscard]] StepEnv& env() noexcept { return env_; }
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    /// \param of  what all its spans are part of; other: steps that look rows up are told apart
    void trace(Tracer* tracer, SpanOf of = SpanOf::other) noexcept {
        tracer_ = tracer;
        spans_of_ = of;
    }
    /// Adds the payload of every message from here on to `payload`: (exchange of the program), bytes, as it is packed.
    void count(std::span<std::int64_t> payload) noexcept { payload_ = payload; }

    /// Says what all ranks have to agree on, where their digests differ and an error is to say why. Of flights over
    /// rounds: another message is exchanged then.
    void agree_on(std::function<std::vector<Fact>()> facts) { facts_ = std::move(facts); }

    /// Names the call that the next exchanges belong to, in errors and reports.
    void called_from(const SourceLocation& where) noexcept { where_ = where; }
    /// True between `start` and the end of the forward plan (or of the backward plan, once that has begun).
    [[nodiscard]] bool active() const noexcept { return active_; }

    /// Makes ready for flight `number`: errors noted between here and `start` travel with its first round. All ranks
    /// have to give the same digest.
    void prepare(std::uint64_t number, std::uint16_t digest = 0);
    /// Runs the first segment. Collective in order, does not wait.
    void start() {
        active_ = true;
        advance();
    }
    /// Completes the round that is in flight if that is possible without waiting. \returns whether the next segment
    /// has nothing to wait for
    bool poll() {
        if (in_flight_ && !arrived_) arrived_ = carrier_->test();
        return !in_flight_ || arrived_;
    }
    /// Completes the round that is under way and runs the next segment. Collective in order. \returns whether there is
    /// another one; for programs without an adjoint
    bool proceed() {
        if (active_) advance();
        active_ = active_ && next_ < itinerary_->stages().size();
        return active_;
    }
    /// Ends a flight where it is, once what it sent has been taken. Where that cannot be, for a peer has failed, all
    /// others fail, too.
    void leave() noexcept;
    /// Runs the rest of the forward plan. \throws BadInput on every rank when any rank noted bad input
    void finish_forward();
    /// Runs the rest of a plan on an itinerary without agreements. \throws BadInput on this rank alone when it noted
    /// bad input; the flight has ended then
    void finish_alone();
    /// Runs the backward plan. \throws BadInput on every rank, before any row changes
    /// \param hold  leaves out the steps that commit, for `run_held`: as often as one likes, until the next flight
    void finish_backward(bool hold = false);
    void run_held();
    /// Ends a flight where it is. One whose round has not come back fails the peers that wait for it.
    void withdraw() noexcept;

  private:
    void advance();
    void run(const PlacedStep& step);
    [[nodiscard]] SpanOf span_of(bool looks_up) const noexcept {
        return looks_up && spans_of_ == SpanOf::other ? SpanOf::lookup : spans_of_;
    }
    void post(std::size_t s);
    void pack(std::size_t s, int peer, std::int64_t& total);
    [[nodiscard]] std::int64_t expected_from(int peer) const;
    void pack_envelope(std::size_t s, int rank, std::int64_t& total);
    std::span<std::byte> message_to(std::size_t s, int rank, std::int64_t bytes, std::int64_t payload);
    void complete(std::size_t s);
    [[nodiscard]] bool check_envelope(std::size_t s, int rank);
    [[nodiscard]] std::string difference_among(const std::vector<int>& others);
    [[noreturn]] void throw_other_layer(std::size_t s, const std::vector<int>& others);
    void throw_alone();
    [[noreturn]] void throw_agreed();
    void enter(const PlacedStep& step) {
        env_.group = step.group;
        env_.under = step.under;
    }
    [[nodiscard]] void* const* parts_of(const PlacedStep& step) const { return parts_ + step.step->first_part; }
    [[nodiscard]] Label label(std::size_t s) const;
    [[nodiscard]] std::uint32_t short_number() const noexcept { return static_cast<std::uint32_t>(number_); }
    [[nodiscard]] std::string at(std::size_t s) const;

    /// A post that is under way: its part of each message goes to the members of its group.
    struct Part {
        Exchange* exchange;
        const PlacedStep* step;
        [[nodiscard]] bool with(int me, int peer) const { return step->group.together(me, peer); }
    };

    const Itinerary* itinerary_;
    void* const* parts_;
    CommunicatorRef comm_;
    std::pmr::memory_resource* memory_;
    std::unique_ptr<Carrier> carrier_;
    StepEnv env_;
    Tracer* tracer_ = nullptr;
    SpanOf spans_of_ = SpanOf::other;
    std::span<std::int64_t> payload_;  // (exchange of the program), or nobody counts
    SourceLocation where_ = SourceLocation::current();
    std::uint64_t number_ = 0;
    std::uint16_t digest_ = 0;
    std::function<std::vector<Fact>()> facts_;
    std::size_t next_ = 0;
    bool active_ = false;
    bool in_flight_ = false;
    bool arrived_ = false;
    std::uint8_t travelling_ = 0;
    bool holds_ = false;
    std::vector<const PlacedStep*> held_;
    std::vector<Part> exchanges_;
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/plan/flight.ipp"
#endif
