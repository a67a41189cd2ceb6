// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <atomic>
#include <span>
#include <string_view>
#include <utility>

#include "shardwise/core/text.hpp"
#include "shardwise/plan/flight.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE Flight::Flight(const Itinerary& itinerary, void* const* parts, CommunicatorRef comm,
                                std::pmr::memory_resource& memory, std::unique_ptr<Carrier> carrier)
    : itinerary_{&itinerary}, parts_{parts}, comm_{comm}, memory_{&memory}, carrier_{std::move(carrier)} {
    SHARDWISE_ASSERT(itinerary.groups().world.ranks() == comm.size() &&
                     itinerary.in_world(itinerary.rank()) == comm.rank());
    env_.rank = itinerary.rank();
    env_.topology = itinerary.topology();
    env_.errors_stay = !itinerary.agrees();
    env_.peers = itinerary.groups().group;
    env_.world_rank = itinerary.in_world(itinerary.rank());
}

SHARDWISE_INLINE void Flight::prepare(std::uint64_t number, std::uint16_t digest) {
    SHARDWISE_ASSERT(!active_);
    number_ = number;
    digest_ = digest;
    next_ = 0;
    env_.error.clear();
    travelling_ = 0;
}

SHARDWISE_INLINE void Flight::finish_forward() {
    while (next_ < itinerary_->program().forward)
        advance();
}

SHARDWISE_INLINE void Flight::finish_alone() {
    finish_forward();
    if (env_.error.word() == 0) return;
    active_ = false;
    throw BadInput{concat({"rank ", comm_.rank(), ": ", env_.error.text()})};
}

SHARDWISE_INLINE void Flight::finish_backward(bool hold) {
    SHARDWISE_ASSERT(next_ >= itinerary_->program().forward);
    holds_ = hold;
    held_.clear();
    while (next_ < itinerary_->stages().size())
        advance();
    active_ = false;
    throw_alone();
}

SHARDWISE_INLINE void Flight::run_held() {
    for (const PlacedStep* const step : held_)
        run(*step);
}

SHARDWISE_INLINE void Flight::withdraw() noexcept {
    if (in_flight_) carrier_->abandon();
    in_flight_ = false;
    active_ = false;
}

SHARDWISE_INLINE void Flight::leave() noexcept {
    try {
        if (in_flight_ && !arrived_) carrier_->wait();
        in_flight_ = false;
    } catch (...) {  // whoever is waited for has failed, and says so itself
    }
    withdraw();
}

SHARDWISE_INLINE void Flight::advance() {
    if (in_flight_) complete(next_ - 1);
    const Stage& stage = itinerary_->stages()[next_];
    for (const PlacedStep& step : stage.local) {
        if (holds_ && step.step->calls->commits)
            held_.push_back(&step);
        else
            run(step);
    }
    if (!stage.posts.empty()) post(next_);
    ++next_;
}

SHARDWISE_INLINE void Flight::run(const PlacedStep& step) {
    const std::int64_t begin = tracer_ == nullptr ? 0 : tracer_->now();
    enter(step);
    step.step->code->run(parts_of(step), env_);
    if (tracer_ != nullptr)
        tracer_->add(step.step->name, SpanKind::compute, short_number(), begin, 0, span_of(step.looks_up));
}

SHARDWISE_INLINE void Flight::post(std::size_t s) {
    const Stage& stage = itinerary_->stages()[s];
    const std::int64_t begin = tracer_ == nullptr ? 0 : tracer_->now();
    if (stage.agreement.opens) travelling_ = env_.error.word();
    exchanges_.clear();
    for (const PlacedStep& step : stage.posts) {
        enter(step);
        exchanges_.push_back({&step.step->code->begin(parts_of(step), env_), &step});
    }
    carrier_->begin(s, number_);
    std::int64_t total = 0;
    for (const int peer : stage.to)
        pack(s, peer, total);
    for (const int peer : stage.from)
        carrier_->expect(itinerary_->in_world(peer), expected_from(peer));
    for (const int witness : stage.witnesses)
        pack_envelope(s, witness, total);
    carrier_->post(label(s));
    in_flight_ = true;
    arrived_ = false;
    if (tracer_ != nullptr)
        tracer_->add(stage.posts.front().step->name, SpanKind::pack, short_number(), begin, total,
                     span_of(stage.posts_look_up));
}

SHARDWISE_INLINE void Flight::pack(std::size_t s, int peer, std::int64_t& total) {
    std::int64_t payload = 0;
    std::int64_t bytes = sizeof(Envelope);
    for (const Part& part : exchanges_) {
        if (!part.with(env_.rank, peer)) continue;
        const PartSize mine = part.exchange->size(peer);
        payload += mine.payload;
        if (!payload_.empty())
            std::atomic_ref{payload_[part.step->post]}.fetch_add(mine.payload, std::memory_order_relaxed);
        bytes += padded_part(mine.payload + mine.control);
    }
    const int rank = itinerary_->in_world(peer);
    const std::span<std::byte> message = message_to(s, rank, bytes, payload);
    ByteWriter to{message.data() + sizeof(Envelope)};
    for (const Part& part : exchanges_) {
        if (!part.with(env_.rank, peer)) continue;
        const std::byte* first = to.position();
        part.exchange->pack(peer, to);
        to.pad(first);
    }
    SHARDWISE_ASSERT(to.position() == message.data() + bytes);
    total += bytes;
}

/// The bytes of the message from a peer, or InMessage::any_size.
SHARDWISE_INLINE std::int64_t Flight::expected_from(int peer) const {
    std::int64_t bytes = sizeof(Envelope);
    for (const Part& part : exchanges_) {
        if (!part.with(env_.rank, peer)) continue;
        const std::int64_t theirs = part.exchange->expected(peer);
        if (theirs == PartSize::unknown) return InMessage::any_size;
        bytes += padded_part(theirs);
    }
    return bytes;
}

SHARDWISE_INLINE void Flight::pack_envelope(std::size_t s, int rank, std::int64_t& total) {
    static_cast<void>(message_to(s, rank, sizeof(Envelope), 0));
    carrier_->expect(rank, sizeof(Envelope));
    total += static_cast<std::int64_t>(sizeof(Envelope));
}

SHARDWISE_INLINE std::span<std::byte> Flight::message_to(std::size_t s, int rank, std::int64_t bytes,
                                                         std::int64_t payload) {
    const std::span<std::byte> message = carrier_->room(rank, bytes, payload);
    ByteWriter{message.data()}.put(Envelope{.flight = short_number(),
                                            .segment = static_cast<std::uint8_t>(s),
                                            .error = travelling_,
                                            .digest = digest_,
                                            .bytes = static_cast<std::uint64_t>(bytes)});
    return message;
}

SHARDWISE_INLINE void Flight::complete(std::size_t s) {
    const Stage& stage = itinerary_->stages()[s];
    const std::int64_t begin = tracer_ == nullptr ? 0 : tracer_->now();
    if (!arrived_) carrier_->wait();
    in_flight_ = false;
    if (tracer_ != nullptr)
        tracer_->add(stage.posts.front().step->name, SpanKind::wait, short_number(), begin, 0, span_of(false));
    std::vector<int> others;  // ranks that run another layer
    const auto check = [&](int rank) {
        if (!check_envelope(s, rank)) others.push_back(rank);
    };
    for (const int peer : stage.from)
        check(itinerary_->in_world(peer));
    for (const int witness : stage.witnesses)
        check(witness);
    if (!others.empty()) throw_other_layer(s, others);
    if (stage.agreement.agrees && travelling_ != 0) throw_agreed();
    for (const int peer : stage.from) {  // witnesses say no more
        const int rank = itinerary_->in_world(peer);
        const std::span<const std::byte> message = carrier_->message(s, rank);
        ByteReader from{message};
        static_cast<void>(from.get<Envelope>());
        for (const Part& part : exchanges_) {
            if (!part.with(env_.rank, peer)) continue;
            part.exchange->unpack(peer, from);
            from.skip_padding();
        }
        if (!from.complete())
            throw Mismatch{concat({at(s), ": the message from rank ", rank, " of ", message.size(),
                                   " bytes does not have the parts that it announces"})};
    }
    for (const Part& part : exchanges_)
        part.exchange->end();
}

/// \returns whether the rank runs the same layer
SHARDWISE_INLINE bool Flight::check_envelope(std::size_t s, int rank) {
    const std::span<const std::byte> message = carrier_->message(s, rank);
    ByteReader reader{message};
    const auto envelope = reader.get<Envelope>();
    if (reader.overrun() || envelope.flight != short_number() || envelope.segment != s ||
        envelope.bytes != message.size())
        throw Mismatch{
            concat({at(s), ", segment ", s, ": the ", message.size(), " bytes that rank ", rank,
                    " sent say that they are ", envelope.bytes, " bytes of flight ", envelope.flight, ", segment ",
                    envelope.segment, ": all ranks start, look up and learn from the same batches in one order"})};
    travelling_ = static_cast<std::uint8_t>(travelling_ | envelope.error);
    return envelope.digest == digest_;
}

/// Both ends of a message know that their digests differ, and all ranks go through rounds in one order: so they
/// exchange what they have, and nobody else takes part in it. In a second round they say that they have read it: a rank
/// that throws before that would end the first one of others. A peer that fails before has another error, and this
/// rank none to add.
SHARDWISE_INLINE std::string Flight::difference_among(const std::vector<int>& others) {
    const std::vector<Fact> facts = facts_();
    std::vector<Buffer<std::byte>> texts;
    for (std::size_t i = 0; i < others.size(); ++i)
        texts.emplace_back(*memory_);
    const auto exchange = [&](const std::string& mine) {
        std::vector<OutMessage> out;
        std::vector<InMessage> in;
        for (std::size_t i = 0; i < others.size(); ++i) {
            out.push_back({.to = others[i], .bytes = std::as_bytes(std::span{mine}), .payload = 0});
            in.push_back({.from = others[i], .into = &texts[i], .expected = InMessage::any_size});
        }
        try {
            const Label label{.step = "tell what differs", .flight = short_number(), .where = where_};
            wait_or_abandon(comm_, comm_.post(label, out, in));
        } catch (const Error&) {
            return false;
        }
        return true;
    };
    if (!exchange(pack_facts(facts))) return {};
    std::string text;
    for (std::size_t i = 0; i < others.size() && text.empty(); ++i) {
        const std::string_view theirs{reinterpret_cast<const char*>(texts[i].data()), texts[i].size()};
        text = difference(facts, unpack_facts(theirs), others[i]);
    }
    static_cast<void>(exchange({}));
    return text;
}

SHARDWISE_INLINE void Flight::throw_other_layer(std::size_t s, const std::vector<int>& others) {
    const int rank = *std::min_element(others.begin(), others.end());
    const std::string differs = facts_ ? difference_among(others) : std::string{};
    const std::string why = differs.empty() ? std::string{} : concat({" (", differs, ")"});
    constexpr const char* remedy =
        ": give every rank the same policies, tables, row plan, options and number of steps, and start batches of one "
        "kind together";
    throw Mismatch{concat({at(s), ": rank ", rank, " runs another layer", why, remedy})};
}

/// An error that no round made everybody's is thrown on this rank alone. The plans of layers have none: all of theirs
/// are agreed on before anything changes.
SHARDWISE_INLINE void Flight::throw_alone() {
    if (env_.error.word() == 0) return;
    throw BadInput{concat({env_.error.text(), " (noted where no later exchange of the plan tells all ranks)"})};
}

/// Every rank knows that some rank noted an error: all exchange the texts, and all throw the first one.
SHARDWISE_INLINE void Flight::throw_agreed() {
    active_ = false;
    std::vector<OutMessage> out;
    std::vector<InMessage> in;
    const std::string& mine = env_.error.text();
    std::vector<Buffer<std::byte>> texts;
    for (int peer = 0; peer < comm_.size(); ++peer)
        texts.emplace_back(*memory_);
    for (int peer = 0; peer < comm_.size(); ++peer) {
        if (peer == comm_.rank()) continue;
        out.push_back({.to = peer, .bytes = std::as_bytes(std::span{mine}), .payload = 0});
        in.push_back({.from = peer, .into = &texts[static_cast<std::size_t>(peer)], .expected = InMessage::any_size});
    }
    wait_or_abandon(comm_,
                    comm_.post({.step = "agree on an error", .flight = short_number(), .where = where_}, out, in));
    std::string text;
    int more = 0;
    for (int rank = 0; rank < comm_.size(); ++rank) {
        const auto& theirs = texts[static_cast<std::size_t>(rank)];
        const std::string its =
            rank == comm_.rank() ? mine : std::string{reinterpret_cast<const char*>(theirs.data()), theirs.size()};
        if (its.empty()) continue;
        if (text.empty()) {
            text = "rank " + std::to_string(rank) + ": " + its;
        } else {
            ++more;
        }
    }
    if (more != 0) text += concat({" (and ", more, " more ranks found something wrong)"});
    throw BadInput{text};
}

SHARDWISE_INLINE Label Flight::label(std::size_t s) const {
    const Instruction& first = *itinerary_->stages()[s].posts.front().step;
    return {.step = first.name.c_str(), .flight = short_number(), .where = where_};
}
SHARDWISE_INLINE std::string Flight::at(std::size_t s) const {
    return concat({"rank ", comm_.rank(), ", ", describe_with_place(label(s))});
}

}  // namespace shardwise::inline SHARDWISE_ABI
