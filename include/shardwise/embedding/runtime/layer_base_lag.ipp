// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"

/// \file
/// Where ranks of a layer may be apart, and where they are given each other's ids.

namespace shardwise::inline SHARDWISE_ABI {

/// \param way  of a whole flight
SHARDWISE_INLINE void LayerBase::make_lag(const Itinerary& way) {
    if (!options_.slots)
        throw BadInput{
            "Collective<BoundedLag<>> sends messages over slots: give LayerOptions::slots, such as a ThreadSlots of "
            "the communicator"};
    if (options_.slots->rank() != comm_.rank() || options_.slots->size() != comm_.size())
        throw BadInput{concat({"LayerOptions::slots has rank ", options_.slots->rank(), " of ", options_.slots->size(),
                               ", and the communicator rank ", comm_.rank(), " of ", comm_.size(),
                               ": give slots of the same ranks, numbered alike"})};
    served_.looked_up = std::vector<steps::LookedUpRows>(stores_.size());
    served_.payload.resize(way.program().posts());
    bind(served_.states, BatchKind::any, served_.looked_up, served_.row_counts, served_.request_counts);
    lag_ = std::make_unique<detail::LayerLag>(blueprint_, way, served_.states, comm_, *options_.slots, *work_.resource);
    lag_->schedule().trace(options_.tracer);
    if (FlightServer* const server = lag_->server()) {
        server->trace(options_.tracer, SpanOf::other);
        server->count(served_.payload);
        server->begin(digest_now(BatchKind::any));
    }
}

/// \throws BadInput for a flight that others are to be looked up before; it stays under way
SHARDWISE_INLINE void LayerBase::check_turn(const detail::LayerState& state) {
    if (state.schedule == nullptr || state.flight.number() <= state.schedule->finished()) return;
    if (const detail::LayerState* first = oldest(); first != nullptr && first != &state)
        throw BadInput{concat({"forward of batch ", state.flight.number(), " while batch ", first->flight.number(),
                               " is under way: call forward in the order of start"})};
}

SHARDWISE_INLINE void LayerBase::finish(detail::LayerState& state, const SourceLocation& where) {
    if (!blueprint_.bound().bounded) return state.flight.finish_forward();
    if (!state.refused.empty()) throw BadInput{state.refused};
    if (state.schedule == nullptr) {  // a hot batch
        if (blueprint_.bound().learns) return state.flight.finish_forward();
        return state.flight.finish_alone();
    }
    const std::uint64_t number = state.flight.number();
    LagSchedule& schedule = *state.schedule;
    if (number > schedule.finished()) {
        if (blueprint_.bound().learns) {
            schedule.finished(number);  // whether it ends well or, on all ranks, with an error
            return state.flight.finish_forward();
        }
        schedule.finish(number, where);
        take_warm_memory(state);
    }
    state.flight.finish_alone();
}

/// A result is written where the last one was, if nobody reads that any more: there it is in caches, and k + 1 flights
/// under way need no more of them than one. Flights exchange memory of one size for it, where no plan inside the plan
/// has views of it already.
SHARDWISE_INLINE void LayerBase::take_warm_memory(detail::LayerState& state) {
    if (!lag_->results_come_last()) return;
    const std::uint64_t finished = lag_->schedule().finished();
    detail::LayerState* warm = &state;
    for (const auto& other : way_of(BatchKind::any).flights) {
        const bool is_read = other->handle != nullptr && other->flight.number() <= finished;
        if (!is_read && other->buffer.capacity() == state.buffer.capacity() && other->in_buffer > warm->in_buffer)
            warm = other.get();
    }
    if (warm != &state) {
        state.buffer.swap(warm->buffer);
        std::swap(state.in_buffer, warm->in_buffer);
        state.allocate_output(index_);
        if (warm->handle != nullptr) warm->allocate_output(index_);  // of a flight that is yet to finish
    }
    state.in_buffer = state.flight.number();
}

/// The oldest flight under way whose handle is held, of those that take turns in slots; null: there is none.
SHARDWISE_INLINE detail::LayerState* LayerBase::oldest() {
    detail::LayerState* first = nullptr;
    for (auto& state : way_of(BatchKind::any).flights) {
        const bool waits =
            state->handle != nullptr && state->flight.active() && state->flight.number() > lag_->schedule().finished();
        if (waits && (first == nullptr || state->flight.number() < first->flight.number())) first = state.get();
    }
    return first;
}

SHARDWISE_INLINE void LayerBase::make_room(BatchKind kind, const SourceLocation& where) {
    if (lag_ == nullptr || kind != BatchKind::any) return;
    lag_->begin_to_serve();
    if (!lag_->schedule().full()) return;
    LagSchedule& schedule = lag_->schedule();
    const detail::LayerState* const first = oldest();
    if (first != nullptr && first->flight.number() == schedule.finished() + 1)
        throw BadInput{
            concat({schedule.under_way(), schedule.under_way() == 1 ? " batch is" : " batches are",
                    " under way, and ranks may be ", schedule.bound(), " apart: call forward for the oldest first"})};
    const std::uint64_t dropped = schedule.finished() + 1;
    if (!blueprint_.bound().learns) return schedule.finish(dropped, where);
    schedule.finished(dropped);  // on all ranks, which look up in step: nobody sends its rows
}

SHARDWISE_INLINE std::string LayerBase::beyond_bound(const steps::BatchView& batch) const {
    const LayerBound& bound = blueprint_.bound();
    std::string wrong = bound.beyond(batch.samples());
    for (std::size_t f = 0; f < features().size() && bound.bounded && wrong.empty(); ++f)
        wrong = bound.beyond(features()[f], f, batch.values(static_cast<int>(f)));
    if (wrong.empty() && bound.bounded && !bound.weighted && batch.weighted())
        wrong = "a batch with weights, and LayerOptions::bound.weighted says that there are none: say that there are";
    return wrong;
}

/// Nobody's samples yet, whatever the batch will be found to be.
SHARDWISE_INLINE void LayerBase::begin_shares(detail::LayerState& state) const {
    state.batch().clear();
    auto& shares = state.lanes().shares;
    shares.resize(static_cast<std::size_t>(topology().ranks()));
    for (steps::BatchShare& share : shares) {
        share.samples = 0;
        share.wrong.clear();
    }
}

/// Each rank is told what is wrong with its own bags, and the others' go on. \param wrong  with all of them
/// \returns what is wrong with this rank's, or where ranks agree on errors, with any
SHARDWISE_INLINE std::string LayerBase::check_shares(detail::LayerState& state, const std::string& wrong) const {
    auto& shares = state.lanes().shares;
    const bool stays = blueprint_.bound().errors_stay();
    std::string first;
    for (int index = 0; index < static_cast<int>(shares.size()); ++index) {
        steps::BatchShare& share = at(shares, index);
        share.wrong = wrong.empty() ? beyond_bound(share.batch) : wrong;
        try {
            if (share.wrong.empty()) blueprint_.check(share.batch);
        } catch (const BadInput& error) {
            share.wrong = error.what();
        }
        if (share.wrong.empty()) continue;
        if (index != index_ && wrong.empty())
            share.wrong = concat({"of the samples of rank ", groups().rank_of(groups().group_of(comm_.rank()), index),
                                  ", ", share.wrong});
        if (first.empty() && (index == index_ || !stays)) first = share.wrong;
        if (index != index_) share.wrong += concat({" (found by rank ", comm_.rank(), ")"});
    }
    state.leave_out_wrong();
    return first;
}

SHARDWISE_INLINE void LayerBase::drain(const SourceLocation& where) {
    if (lag_ == nullptr) return;
    lag_->begin_to_serve();
    while (detail::LayerState* const state = oldest()) {
        const std::uint64_t number = state->flight.number();
        if (!blueprint_.bound().learns) {
            lag_->schedule().finish(number, where);
            take_warm_memory(*state);
            state->flight.finish_forward();
            continue;
        }
        lag_->schedule().finished(number);
        try {
            state->flight.finish_forward();
        } catch (const BadInput& error) {  // which forward says
            state->refused = error.what();
        }
    }
    if (blueprint_.bound().learns)  // flights whose handles have ended, on all ranks
        lag_->schedule().finished(lag_->schedule().started());
    JaggedView<std::int64_t> none;
    none.features = blueprint_.traits().at_owner ? std::ssize(given_) : std::ssize(features());
    const std::vector<std::int64_t> of_nobody(static_cast<std::size_t>(topology().ranks()));
    lag_->schedule().drain(
        [&] {
            if (blueprint_.traits().at_owner)
                start(none, of_nobody, where).end();
            else
                start(none, where).end();
        },
        where);
}

SHARDWISE_INLINE std::int64_t LayerBase::most_ahead() const {
    return lag_ == nullptr ? 0 : static_cast<std::int64_t>(lag_->schedule().most_ahead());
}

}  // namespace shardwise::inline SHARDWISE_ABI
