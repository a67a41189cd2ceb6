// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/bytes.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/source_location.hpp"
#include "shardwise/plan/agreement.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/plan/trace.hpp"

/// \file
/// The run reader: one batch on its way through a program, segment by segment.

namespace shardwise::inline SHARDWISE_ABI {

/// Runs one batch after the other through a program, on the parts of a frame that belongs to the caller.
///
/// Segments of all flights of a rank start in one order that is the same on all ranks; `poll` only completes what was
/// posted. Not thread safe; a destroyed flight that is not finished withdraws from its flush and fails the peers.
class FlightCore {
  public:
    /// \param topology  the communicator's, with the towers that the plan's groups see
    FlightCore(const Program& program, void* const* parts, CommunicatorRef comm, const Topology& topology,
               std::pmr::memory_resource& memory)
        : program_{&program}, agreements_{agreements(program, topology)}, parts_{parts}, comm_{comm}, memory_{&memory} {
        SHARDWISE_ASSERT(topology.ranks() == comm.size());
        env_.rank = comm.rank();
        env_.topology = topology;
        const auto ranks = static_cast<std::size_t>(comm.size());
        sent_.reserve(ranks);
        for (std::size_t i = 0; i < ranks; ++i)
            sent_.emplace_back(memory);
        received_.resize(program.segments.size());
        for (std::size_t s = 0; s < program.segments.size(); ++s)
            for (std::size_t i = 0; i < (program.segments[s].posts.empty() ? 0 : ranks); ++i)
                received_[s].emplace_back(memory);
    }
    FlightCore(const FlightCore&) = delete;
    FlightCore& operator=(const FlightCore&) = delete;
    ~FlightCore() {
        if (in_flight_) comm_.abandon(ticket_);
    }

    [[nodiscard]] StepEnv& env() noexcept { return env_; }
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
    void trace(Tracer* tracer) noexcept { tracer_ = tracer; }

    /// Names the call that the next exchanges belong to, in errors and reports.
    void called_from(const SourceLocation& where) noexcept { where_ = where; }
    /// True between `start` and the end of the forward plan (or of the backward plan, once that has begun).
    [[nodiscard]] bool active() const noexcept { return active_; }

    /// Makes ready for flight `number`: errors noted between here and `start` travel with its first flush. All ranks
    /// have to give the same digest.
    void prepare(std::uint32_t number, std::uint16_t digest = 0) {
        SHARDWISE_ASSERT(!active_);
        number_ = number;
        digest_ = digest;
        next_ = 0;
        env_.error.clear();
        travelling_ = 0;
    }
    /// Runs the first segment. Collective in order, does not wait.
    void start() {
        active_ = true;
        advance();
    }
    /// Completes the flush that is in flight if that is possible without waiting.
    void poll() {
        if (in_flight_ && !arrived_) arrived_ = comm_.test(ticket_);
    }
    /// Runs the rest of the forward plan. \throws BadInput on every rank when any rank noted bad input
    void finish_forward() {
        while (next_ < program_->forward)
            advance();
    }
    /// Runs the backward plan. \throws BadInput on every rank, before any row changes
    void finish_backward() {
        SHARDWISE_ASSERT(next_ >= program_->forward);
        while (next_ < program_->segments.size())
            advance();
        active_ = false;
        throw_alone();
    }
    /// Ends a flight where it is. One whose flush has not come back fails the peers that wait for it.
    void withdraw() noexcept {
        if (in_flight_) comm_.abandon(ticket_);
        in_flight_ = false;
        active_ = false;
    }

  private:
    void advance() {
        if (in_flight_) complete(next_ - 1);
        const Segment& segment = program_->segments[next_];
        for (const Instruction& step : segment.local) {
            const std::int64_t begin = tracer_ == nullptr ? 0 : tracer_->now();
            step.calls->run(parts_of(step), env_);
            if (tracer_ != nullptr) tracer_->add(step.name, SpanKind::compute, number_, begin);
        }
        if (!segment.posts.empty()) post(next_);
        ++next_;
    }

    void post(std::size_t s) {
        const Segment& segment = program_->segments[s];
        const std::int64_t begin = tracer_ == nullptr ? 0 : tracer_->now();
        if (agreements_[s].opens) travelling_ = env_.error.word();
        for (const Instruction& step : segment.posts)
            step.calls->exchange->begin(parts_of(step), env_);
        out_.clear();
        in_.clear();
        std::int64_t total = 0;
        for (int peer = 0; peer < comm_.size(); ++peer) {
            if (!Program::exchanges(segment, env_.topology, env_.rank, peer)) continue;
            std::int64_t payload = 0;
            std::int64_t bytes = sizeof(Envelope);
            std::int64_t expected = sizeof(Envelope);
            for (const Instruction& step : segment.posts) {
                if (!step.calls->exchange->exchanges(env_.topology, env_.rank, peer)) continue;
                const PartSize part = step.calls->exchange->size(parts_of(step), env_, peer);
                payload += part.payload;
                bytes += padded_part(part.payload + part.control);
                const std::int64_t theirs = step.calls->exchange->expected(parts_of(step), env_, peer);
                expected = theirs == PartSize::unknown || expected == InMessage::any_size
                               ? InMessage::any_size
                               : expected + padded_part(theirs);
            }
            auto& buffer = sent_[static_cast<std::size_t>(peer)];
            buffer.resize(static_cast<std::size_t>(bytes));
            ByteWriter to{buffer.data()};
            to.put(Envelope{.flight = number_,
                            .segment = static_cast<std::uint8_t>(s),
                            .error = travelling_,
                            .digest = digest_,
                            .bytes = static_cast<std::uint64_t>(bytes)});
            for (const Instruction& step : segment.posts) {
                if (!step.calls->exchange->exchanges(env_.topology, env_.rank, peer)) continue;
                const std::byte* part = to.position();
                step.calls->exchange->pack(parts_of(step), env_, peer, to);
                to.pad(part);
            }
            SHARDWISE_ASSERT(to.position() == buffer.data() + bytes);
            out_.push_back({.to = peer, .bytes = buffer.span(), .payload = payload});
            in_.push_back({.from = peer, .into = &received_[s][static_cast<std::size_t>(peer)], .expected = expected});
            total += bytes;
        }
        ticket_ = comm_.post(label(segment), out_, in_);
        in_flight_ = true;
        arrived_ = false;
        if (tracer_ != nullptr) tracer_->add(segment.posts.front().name, SpanKind::pack, number_, begin, total);
    }

    void complete(std::size_t s) {
        const Segment& segment = program_->segments[s];
        const std::int64_t begin = tracer_ == nullptr ? 0 : tracer_->now();
        if (!arrived_) comm_.wait(ticket_);
        in_flight_ = false;
        if (tracer_ != nullptr) tracer_->add(segment.posts.front().name, SpanKind::wait, number_, begin);
        for (const InMessage& message : in_)
            check_envelope(s, message);
        if (agreements_[s].agrees && travelling_ != 0) throw_agreed();
        for (const InMessage& message : in_) {
            ByteReader from{message.into->span()};
            static_cast<void>(from.get<Envelope>());
            for (const Instruction& step : segment.posts) {
                if (!step.calls->exchange->exchanges(env_.topology, env_.rank, message.from)) continue;
                step.calls->exchange->unpack(parts_of(step), env_, message.from, from);
                from.skip_padding();
            }
            if (!from.complete())
                throw Mismatch{at(segment) + ": the message from rank " + std::to_string(message.from) + " of " +
                               std::to_string(message.into->size()) +
                               " bytes does not have the parts that it announces"};
        }
        for (const Instruction& step : segment.posts)
            step.calls->exchange->end(parts_of(step), env_);
    }

    void check_envelope(std::size_t s, const InMessage& message) {
        ByteReader reader{message.into->span()};
        const auto envelope = reader.get<Envelope>();
        if (reader.overrun() || envelope.flight != number_ || envelope.segment != s ||
            envelope.bytes != message.into->size())
            throw Mismatch{at(program_->segments[s]) + ", segment " + std::to_string(s) + ": the " +
                           std::to_string(message.into->size()) + " bytes that rank " + std::to_string(message.from) +
                           " sent say that they are " + std::to_string(envelope.bytes) + " bytes of flight " +
                           std::to_string(envelope.flight) + ", segment " + std::to_string(envelope.segment) +
                           ": all ranks start, look up and learn from the same batches in one order"};
        if (envelope.digest != digest_)
            throw Mismatch{
                at(program_->segments[s]) + ": rank " + std::to_string(message.from) +
                " runs another layer: give every rank the same policies, tables, options and number of steps"};
        travelling_ = static_cast<std::uint8_t>(travelling_ | envelope.error);
    }

    /// An error that no flush made everybody's is thrown on this rank alone. The plans of layers have none: all of
    /// theirs are agreed on before anything changes.
    void throw_alone() {
        if (env_.error.word() == 0) return;
        active_ = false;
        throw BadInput{env_.error.text() + " (noted where no later exchange of the plan tells all ranks)"};
    }

    /// Every rank knows that some rank noted an error: all exchange the texts, and all throw the first one.
    [[noreturn]] void throw_agreed() {
        active_ = false;
        out_.clear();
        in_.clear();
        const std::string& mine = env_.error.text();
        std::vector<Buffer<std::byte>> texts;
        for (int peer = 0; peer < comm_.size(); ++peer)
            texts.emplace_back(*memory_);
        for (int peer = 0; peer < comm_.size(); ++peer) {
            if (peer == env_.rank) continue;
            out_.push_back({.to = peer, .bytes = std::as_bytes(std::span{mine}), .payload = 0});
            in_.push_back(
                {.from = peer, .into = &texts[static_cast<std::size_t>(peer)], .expected = InMessage::any_size});
        }
        wait_or_abandon(comm_,
                        comm_.post({.step = "agree on an error", .flight = number_, .where = where_}, out_, in_));
        std::string text;
        int more = 0;
        for (int rank = 0; rank < comm_.size(); ++rank) {
            const auto& theirs = texts[static_cast<std::size_t>(rank)];
            const std::string its =
                rank == env_.rank ? mine : std::string{reinterpret_cast<const char*>(theirs.data()), theirs.size()};
            if (its.empty()) continue;
            if (text.empty()) {
                text = "rank " + std::to_string(rank) + ": " + its;
            } else {
                ++more;
            }
        }
        if (more != 0) text += " (and " + std::to_string(more) + " more ranks found something wrong)";
        throw BadInput{text};
    }

    [[nodiscard]] void* const* parts_of(const Instruction& step) const { return parts_ + step.first_part; }
    [[nodiscard]] Label label(const Segment& segment) const {
        return {.step = segment.posts.front().name.c_str(), .flight = number_, .where = where_};
    }
    [[nodiscard]] std::string at(const Segment& segment) const {
        return "rank " + std::to_string(env_.rank) + ", " + describe_with_place(label(segment));
    }

    const Program* program_;
    std::vector<Agreement> agreements_;  // (segment)
    void* const* parts_;
    CommunicatorRef comm_;
    std::pmr::memory_resource* memory_;
    StepEnv env_;
    Tracer* tracer_ = nullptr;
    SourceLocation where_ = SourceLocation::current();
    std::uint32_t number_ = 0;
    std::uint16_t digest_ = 0;
    std::size_t next_ = 0;
    bool active_ = false;
    bool in_flight_ = false;
    bool arrived_ = false;
    std::uint8_t travelling_ = 0;
    Ticket ticket_;
    std::vector<OutMessage> out_;
    std::vector<InMessage> in_;
    std::vector<Buffer<std::byte>> sent_;                   // a peer
    std::vector<std::vector<Buffer<std::byte>>> received_;  // (segment, peer): blocks of later steps lie in them
};

}  // namespace shardwise::inline SHARDWISE_ABI
