// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>

#include "shardwise/comm/slot_counts.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/plan/lag_schedule.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE LagSchedule::LagSchedule(const Itinerary& way, int k, SlotRounds& rounds, FlightServer* server,
                                          bool takes_part)
    : rounds_{&rounds}, server_{server}, k_{k}, takes_part_{takes_part} {
    const auto& stages = way.stages();
    while (stages[first_].posts.empty())
        ++first_;
    for (std::size_t s = 0; s < way.program().forward; ++s)
        if (!stages[s].posts.empty()) last_ = s;
    for (const int peer : stages[last_].from)
        sources_.push_back(way.in_world(peer));
    for (const int peer : stages[first_].from)
        askers_.push_back(way.in_world(peer));
    wait_.peers.reserve(std::max(sources_.size(), askers_.size()));
    last_name_ = stages[last_].posts.front().step->name;
    std::vector<bool> meets(static_cast<std::size_t>(rounds.slots.size()));
    for (std::size_t s = 0; s < way.program().forward; ++s)
        for (const auto* ranks : {&stages[s].to, &stages[s].from})
            for (const int peer : *ranks)
                at(meets, way.in_world(peer)) = true;
    SlotLayout layout{.slots = drain_slots(), .from = {}, .to = {}};
    for (int rank = 0; rank < rounds.slots.size(); ++rank) {
        if (at(meets, rank)) peers_.push_back(rank);
        layout.from.push_back(at(meets, rank) ? 1 : 0);
    }
    layout.to = layout.from;
    done_ = rounds_->slots.open(layout);
}

SHARDWISE_INLINE bool LagSchedule::full() const noexcept {
    return under_way() == outstanding_exchanges(k_);
}

SHARDWISE_INLINE void LagSchedule::start() {
    SHARDWISE_ASSERT(!full());
    ++started_;
    if (thread_ != nullptr) thread_->started(started_);
    serve();
}

/// Counts how far others are: flights of which their first messages are here, and those that were answered.
SHARDWISE_INLINE void LagSchedule::look_ahead() {
    for (const int peer : askers_)
        while (rounds_->has(first_, peer, started_ + most_ahead_ + 1))
            ++most_ahead_;
    if (server_ != nullptr && server_->furthest() > started_ + most_ahead_)
        most_ahead_ = server_->furthest() - started_;
}

SHARDWISE_INLINE void LagSchedule::serve() {
    rounds_->slots.progress(wait_);
    static_cast<void>(answer());
}

/// \returns whether there was anything to answer
SHARDWISE_INLINE bool LagSchedule::answer() {
    if (thread_ != nullptr) thread_->check();
    return server_ != nullptr && thread_ == nullptr && server_->serve(started_);
}

/// Answers, and asks `step` whether to go on; that names whom it waits for. Answers once more at the end: what came
/// in between may be waited for by a rank that this one will wait for elsewhere.
SHARDWISE_INLINE void LagSchedule::wait_until(SlotWait& wait, const Label& label,
                                              const std::function<bool(SlotWait&)>& step) {
    wait.label = label;
    wait.begun = false;
    wait.idled = 0;
    while (true) {
        rounds_->slots.progress(wait);
        const bool served = answer();
        wait.peers.clear();
        if (step(wait)) break;
        if (served)
            wait.idled = 0;
        else
            rounds_->slots.pause(wait);
    }
    static_cast<void>(answer());
}

SHARDWISE_INLINE bool LagSchedule::has_come(std::uint64_t flight) {
    serve();
    const auto has_rows = [&](int rank) { return rounds_->has(last_, rank, flight); };
    return flight <= finished_ || (leaves_nobody(flight) && std::all_of(sources_.begin(), sources_.end(), has_rows));
}

/// Whether all have this rank's answers to a flight, where it takes part in every one.
SHARDWISE_INLINE bool LagSchedule::has_answered(std::uint64_t flight) const {
    return server_ == nullptr || !takes_part_ || askers_.empty() || server_->answered() >= flight;
}

/// Whether nobody waits for a flight's answers until this rank's next call. Who has sent rows of it has asked before,
/// and is answered before this rank goes on, to wait for the same ranks elsewhere.
SHARDWISE_INLINE bool LagSchedule::leaves_nobody(std::uint64_t flight) const {
    return thread_ != nullptr || has_answered(flight);
}

SHARDWISE_INLINE void LagSchedule::finish(std::uint64_t flight, const SourceLocation& where) {
    for (; finished_ < flight; ++finished_) {
        const std::int64_t begin = tracer_ == nullptr ? 0 : tracer_->now();
        wait_until(wait_, label("bounded lag: rows", finished_ + 1, where), [this](SlotWait& wait) {
            for (const int rank : sources_)
                if (!rounds_->has(last_, rank, finished_ + 1)) wait.peers.push_back(rank);
            if (wait.peers.empty() && !leaves_nobody(finished_ + 1)) wait.peers = askers_;
            return wait.peers.empty();
        });
        if (tracer_ != nullptr)
            tracer_->add(last_name_, SpanKind::wait, static_cast<std::uint32_t>(finished_ + 1), begin, 0,
                         SpanOf::other);
    }
}

SHARDWISE_INLINE void LagSchedule::drain(const std::function<void()>& start_empty, const SourceLocation& where) {
    finish(started_, where);
    const std::uint64_t number = ++drains_;
    const auto slot = [&](int peer) {
        return SlotId{.window = done_,
                      .peer = peer,
                      .slot = static_cast<int>(number % static_cast<std::uint64_t>(drain_slots()))};
    };
    for (const int peer : peers_)
        rounds_->slots.put(slot(peer), number, 0);
    rounds_->slots.flush();
    SlotWait until_all;
    std::uint64_t answers = 0;
    wait_until(until_all, label("bounded lag: drain", number, where), [&](SlotWait& wait) {
        const auto is_done = [&](int peer) { return rounds_->slots.has(slot(peer), number); };
        const auto is_ahead = [&](int peer) {  // in this order: one that is done may be so behind its drain
            return rounds_->has(first_, peer, started_ + 1) && !is_done(peer);
        };
        while (takes_part_ && std::any_of(askers_.begin(), askers_.end(), is_ahead)) {
            if (full()) finish(finished_ + 1, where);
            start_empty();
            wait.begun = false;
        }
        // Others that ask are at work: they may be so for longer than the deadline.
        if (server_ != nullptr && server_->answers() != answers) {
            answers = server_->answers();
            wait.begun = false;
        }
        for (const int peer : peers_)
            if (!is_done(peer)) wait.peers.push_back(peer);
        return wait.peers.empty() && has_answered(started_);
    });
    finish(started_, where);
}

}  // namespace shardwise::inline SHARDWISE_ABI
