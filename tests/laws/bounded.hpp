// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "laws/laws.hpp"

/// \file
/// The laws for ranks that may be apart and learn nothing: each rank looks its own number of batches up, late by any
/// time, and every result is that of ranks in step; every put and byte as predicted.

namespace laws {

/// The axes of ranks that may be apart.
struct Lag {
    int k = 0;
    sw::Serve serve = sw::Serve::together;
    std::vector<int> batches;  ///< (rank): how many it looks up
    bool late = false;         ///< ranks wait at random
    bool drain_first = false;  ///< results are taken when all is over
    bool thread = false;       ///< answers others, where slots can be used by several

    [[nodiscard]] std::string name() const {
        std::string text = "k " + std::to_string(k) + ", " + name_of(serve) + (late ? ", late" : "") +
                           (thread ? ", thread" : "") + (drain_first ? ", drained first" : "") + ", batches";
        for (const int count : batches)
            text += " " + std::to_string(count);
        return text;
    }
};

/// Flights of one kind are numbered, and a new one takes the first that is free: with a tally each.
class FlightTallies {
  public:
    std::size_t start() {
        std::size_t free = 0;
        while (free < active_.size() && active_[free])
            ++free;
        if (free == active_.size()) {
            active_.push_back(false);
            tallies_.emplace_back();
        }
        active_[free] = true;
        return free;
    }
    void end(std::size_t flight) { active_[flight] = false; }
    sw::MemoryTally& operator[](std::size_t flight) { return tallies_[flight]; }
    [[nodiscard]] std::int64_t bytes() const {
        std::int64_t sum = 0;
        for (const sw::MemoryTally& tally : tallies_)
            sum += tally.bytes();
        return sum;
    }

  private:
    std::vector<bool> active_;
    std::deque<sw::MemoryTally> tallies_;
};

/// \throws Broken
template <class C>
void check_bounded(C& below, sw::OneSidedRef transport, const Composition& composition, const Case& c, const Lag& lag,
                   const Expected& reference) {
    const Scenario& scenario = reference.scenario;
    sw::CountingCommunicator<C> comm{below};
    sw::CountingSlots<sw::OneSidedRef> slots{transport};
    sw::LayerOptions options = options_of(c, scenario);
    options.bound = bound_of(c, scenario);
    options.bound.k = lag.k;
    const bool at_owner = composition.ids == "at_owner";
    if (!at_owner && (lag.serve != sw::Serve::together || c.seed % 2 == 0)) options.bound.serve = lag.serve;
    if (!at_owner && lag.thread && transport.any_thread()) options.bound.progress = sw::Progress::thread;
    options.slots.emplace(slots);
    auto layer = composition.make(comm, scenario.tables, options, c.by_names);
    begin_at_negative_zero(*layer);
    const int rank = comm.rank();
    const auto me = static_cast<std::size_t>(rank);
    const std::string where =
        composition.name() + " at " + c.name() + ", " + lag.name() + ", rank " + std::to_string(rank);
    Dice dice{c.seed * 977 + me};
    const auto pause = [&] {
        if (lag.late && dice.one_in(3)) std::this_thread::sleep_for(std::chrono::microseconds{dice.below(300)});
    };

    // What is to move: as many flights of each rank as it starts, and where ranks answer together, as any does that it
    // meets.
    const std::vector<sw::SegmentCost> room = layer->blueprint().most_bytes();
    const auto meets = [&](int one, int other) { return room.at(0).traffic.at(one, other).messages != 0; };
    const bool together = lag.serve == sw::Serve::together;
    std::vector<int> starts = lag.batches;
    for (int one = 0; together && one < c.topology.ranks(); ++one)
        for (int other = 0; other < c.topology.ranks(); ++other)
            if (meets(one, other))
                starts[static_cast<std::size_t>(one)] =
                    std::max(starts[static_cast<std::size_t>(one)], lag.batches[static_cast<std::size_t>(other)]);
    if (at_owner)  // all start as many, also where the samples are others'
        starts.assign(starts.size(), *std::max_element(lag.batches.begin(), lag.batches.end()));
    const int mine = at_owner ? starts[me] : lag.batches[me];
    const RankBatch none;
    sw::TrafficMatrix predicted{c.topology};
    sw::MemoryTally serving;
    std::vector<std::vector<Batch>> views;
    for (int step = 0; step < c.steps; ++step) {
        auto& all = views.emplace_back();
        for (std::size_t other = 0; other < lag.batches.size(); ++other)
            all.push_back((step < lag.batches[other] ? scenario.steps[static_cast<std::size_t>(step)][other] : none)
                              .view(c, scenario.features()));
        sw::MemoryTally unused;
        sw::SyncTally no_sync;
        const sw::LayerCost cost = layer.predict(all, unused, sw::BatchKind::any, no_sync);
        bool asked = false;
        for (int asker = 0; asker < c.topology.ranks(); ++asker)
            asked |= meets(asker, rank) && step < starts[static_cast<std::size_t>(asker)];
        if (asked) layer.predict_serving(all, serving, rank);
        for (int from = 0; from < c.topology.ranks(); ++from)
            for (int to = 0; to < c.topology.ranks(); ++to) {
                if (step < starts[static_cast<std::size_t>(from)])
                    predicted.at(from, to) += cost.segments.at(0).traffic.at(from, to);
                if (!at_owner && step < starts[static_cast<std::size_t>(to)])
                    predicted.at(from, to) += cost.segments.at(1).traffic.at(from, to);
            }
    }
    for (int from = 0; from < c.topology.ranks(); ++from)  // one says that it is done to each that it meets
        for (int to = 0; to < c.topology.ranks(); ++to)
            if (meets(from, to)) ++predicted.at(from, to).messages;

    FlightTallies tallies;
    std::deque<std::size_t> flights;
    const auto start = [&](int step) {
        const auto& all = views[static_cast<std::size_t>(step)];
        flights.push_back(tallies.start());
        sw::SyncTally no_sync;
        static_cast<void>(layer.predict(all, tallies[flights.back()], sw::BatchKind::any, no_sync));
    };
    const auto look_up = [&](int step) {
        const auto results = layer.forward();
        auto expected = reference.steps[static_cast<std::size_t>(step)].results.at(rank);
        if (step >= lag.batches[me]) expected.assign(expected.size(), {});
        for (std::size_t f = 0; f < expected.size(); ++f) {
            const auto at = [&] {
                return where + ", batch " + std::to_string(step) + ", feature " + std::to_string(f);
            };
            if (results[f].rows() != static_cast<std::int64_t>(expected[f].size()))
                throw Broken{at() + ": " + std::to_string(results[f].rows()) + " rows instead of " +
                             std::to_string(expected[f].size())};
            for (std::size_t i = 0; i < expected[f].size(); ++i)
                for (std::size_t d = 0; d < expected[f][i].size(); ++d)
                    expect_same(results[f](static_cast<std::int64_t>(i), static_cast<std::int64_t>(d)),
                                expected[f][i][d],
                                [&] { return at() + ", row " + std::to_string(i) + ", column " + std::to_string(d); });
        }
        layer.end();
        tallies.end(flights.front());
        flights.pop_front();
    };
    int started = 0;
    int looked_up = 0;
    while (started < mine) {
        while (started < mine && started - looked_up <= lag.k && (started == looked_up || !dice.one_in(3))) {
            pause();
            layer.start(views[static_cast<std::size_t>(started)], rank);
            start(started++);
        }
        if (started - looked_up == lag.k + 1) {
            try {
                layer.start(std::vector<Batch>(lag.batches.size(), none.view(c, scenario.features())), rank);
                throw Broken{where + ": flight " + std::to_string(started + 1) + " started while " +
                             std::to_string(lag.k + 1) + " are under way"};
            } catch (const sw::BadInput&) {  // NOLINT(bugprone-empty-catch): that is how it has to be
            }
        }
        pause();
        if (c.random_progress) layer.poll();
        if (started < mine || !lag.drain_first) look_up(looked_up++);
    }
    while (looked_up < mine && !lag.drain_first)
        look_up(looked_up++);
    pause();
    layer->drain();  // takes part in what others start, with batches that need no memory
    while (looked_up < mine)
        look_up(looked_up++);

    const auto expect_bytes = [&](const char* what, std::int64_t measured, std::int64_t foreseen) {
        if (measured != foreseen)
            throw Broken{where + ": " + what + " memory of " + std::to_string(measured) + " bytes, predicted " +
                         std::to_string(foreseen)};
    };
    expect_bytes("static", layer->memory().static_bytes(), layer->predict_static_bytes(rank));
    expect_bytes(("dynamic " + std::to_string(tallies.bytes()) + " + " + std::to_string(serving.bytes())).c_str(),
                 layer->memory().dynamic_bytes(), tallies.bytes() + serving.bytes());
    for (int to = 0; to < c.topology.ranks(); ++to) {
        const sw::TierTraffic moved = slots.sent().at(rank, to);
        const sw::TierTraffic foreseen = predicted.at(rank, to);
        if (moved.payload != foreseen.payload + foreseen.control || moved.messages != foreseen.messages)
            throw Broken{where + " to rank " + std::to_string(to) + ": put " + std::to_string(moved.payload) +
                         " bytes in " + std::to_string(moved.messages) + " messages, predicted " +
                         std::to_string(foreseen.payload + foreseen.control) + " in " +
                         std::to_string(foreseen.messages)};
        if (comm.sent().at(rank, to).messages != 0) throw Broken{where + ": a round of messages"};
    }
}

/// Rows that learn do so with a lag of 0.
template <class C>
void check_bounded_or_learning(C& comm, sw::OneSidedRef slots, const Composition& composition, const Case& c,
                               const Lag& lag, const Expected& reference) {
    if (!composition.rule.learns) return check_bounded(comm, slots, composition, c, lag, reference);
    sw::CountingSlots<sw::OneSidedRef> counted{slots};
    check_laws(comm, composition, c, reference, &counted);
}

/// A composition as it is where ranks may be apart; none where it is not.
inline std::optional<Composition> bounded(const Composition& one) {
    if (one.collective != "flat" || one.has_modules()) return std::nullopt;
    if (std::all_of(one.shardings.begin(), one.shardings.end(),
                    [](const std::string& name) { return name == sw::DP::name; }))
        return std::nullopt;
    Composition other = one;
    other.collective = "bounded_lag";
    other.build = nullptr;
    other.draw = nullptr;
    return other;
}
/// Cases of these: one batch after the other where rows learn, more of them where they do not.
inline std::vector<Case> bounded_cases_for(std::size_t number, const std::vector<sw::Topology>& topologies, int count,
                                           const Composition& composition) {
    std::vector<Case> cases = cases_for(number, topologies, count, composition);
    for (Case& c : cases) {
        c.ahead = 0;
        if (!composition.rule.learns) c.steps = 12;
    }
    return cases;
}
inline Lag lag_for(std::size_t turn, const Case& c) {
    Dice dice{turn * 31 + 5};
    Lag lag;
    lag.k = std::vector<int>{0, 1, 2, 4, 8}[turn % 5];
    lag.serve = turn % 3 == 0 ? sw::Serve::each : sw::Serve::together;
    lag.late = turn % 4 < 2;
    lag.drain_first = turn % 7 == 0;
    lag.thread = turn % 8 < 3;
    for (int rank = 0; rank < c.topology.ranks(); ++rank)
        lag.batches.push_back(dice.one_in(3) ? static_cast<int>(dice.below(c.steps + 1)) : c.steps);
    return lag;
}

}  // namespace laws
