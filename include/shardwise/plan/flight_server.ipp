// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "shardwise/comm/slot_counts.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/plan/flight_server.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE FlightServer::FlightServer(const Itinerary& whole, void* const* parts, CommunicatorRef comm,
                                            SlotRounds& rounds, Serve serve, int k, std::pmr::memory_resource& memory)
    : rounds_{&rounds}, serve_{serve}, under_way_{outstanding_exchanges(k)} {
    while (whole.stages()[request_].posts.empty())
        ++request_;
    const auto add = [&](const std::vector<int>& peers) {
        std::vector<int> in_world;
        for (const int peer : peers)
            in_world.push_back(whole.in_world(peer));
        askers_.emplace_back(whole.answering(peers), std::move(in_world), parts, comm, rounds, memory);
    };
    const std::vector<int>& peers = whole.stages()[request_].from;
    if (serve == Serve::together)
        add(peers);
    else
        for (const int peer : peers)
            add({peer});
}

SHARDWISE_INLINE void FlightServer::trace(Tracer* tracer, SpanOf of) {
    for (Asker& asker : askers_)
        asker.flight.trace(tracer, of);
}
SHARDWISE_INLINE void FlightServer::count(std::span<std::int64_t> payload) noexcept {
    for (Asker& asker : askers_)
        asker.flight.count(payload);
}

SHARDWISE_INLINE bool FlightServer::has_asked(const Asker& asker) {
    return std::all_of(asker.ranks.begin(), asker.ranks.end(),
                       [&](int rank) { return rounds_->has(request_, rank, asker.next); });
}

SHARDWISE_INLINE bool FlightServer::serve(std::uint64_t started) {
    std::uint64_t answers = 0;
    for (int pass = 0; pass < under_way_; ++pass) {
        const std::uint64_t before = answers;
        for (Asker& asker : askers_)
            if ((serve_ == Serve::each || asker.next <= started) && !asker.ranks.empty() && has_asked(asker)) {
                answer(asker);
                ++answers;
            }
        if (answers == before) break;
    }
    if (answers != 0) {
        const auto [least, most] = std::minmax_element(askers_.begin(), askers_.end(),
                                                       [](const Asker& a, const Asker& b) { return a.next < b.next; });
        answered_.store(least->next - 1, std::memory_order_release);
        furthest_.store(most->next - 1, std::memory_order_release);
        answers_.fetch_add(answers, std::memory_order_release);
    }
    return answers != 0;
}

/// The ids are read, and their slots left, before any answer is put: a put tells the asker that the slot is free.
SHARDWISE_INLINE void FlightServer::answer(Asker& asker) {
    try {
        asker.flight.prepare(asker.next, digest_);
        asker.flight.start();
        SHARDWISE_ASSERT(asker.flight.poll());
        asker.flight.proceed();
    } catch (...) {
        asker.flight.withdraw();
        throw;
    }
    asker.flight.leave();
    ++asker.next;
}

}  // namespace shardwise::inline SHARDWISE_ABI
