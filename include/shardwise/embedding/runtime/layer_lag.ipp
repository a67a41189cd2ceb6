// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "shardwise/core/error.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/embedding/runtime/layer_lag.hpp"
#include "shardwise/plan/phased_carrier.hpp"

namespace shardwise::inline SHARDWISE_ABI::detail {

SHARDWISE_INLINE SlotRounds LayerLag::open(const LayerBlueprint& blueprint, OneSidedRef slots) {
    if (blueprint.bound().progress == Progress::thread && !slots.any_thread())
        throw BadInput{
            "these slots are of one thread, and LayerOptions::bound.progress says that a thread answers others: leave "
            "it out, or give other slots"};
    SlotRounds rounds{.slots = slots, .rounds = std::vector<SlotRounds::Round>(blueprint.traits().program.forward)};
    for (const SegmentCost& most : blueprint.most_bytes()) {
        const SlotLayout layout = blueprint.slot_layout(most, slots.rank());
        rounds.rounds[most.segment] = {.window = slots.open(layout), .slots = layout.slots};
    }
    return rounds;
}

SHARDWISE_INLINE LayerLag::LayerLag(const LayerBlueprint& blueprint, const Itinerary& way, const States& states,
                                    CommunicatorRef comm, OneSidedRef slots, std::pmr::memory_resource& memory)
    : learns_{blueprint.bound().learns},
      on_thread_{blueprint.bound().progress == Progress::thread},
      results_come_last_{std::all_of(way.program().segments.begin(), way.program().segments.end(),
                                     [](const Segment& segment) {
                                         return std::all_of(segment.local.begin(), segment.local.end(),
                                                            [](const Instruction& s) { return s.plans.empty(); });
                                     })},
      rounds_{open(blueprint, slots)} {
    const LayerBound& bound = blueprint.bound();
    if (bound.has_halves()) {
        frame_.emplace(way.program(), states);
        steps::BatchView& batch = frame_->lanes().batch;
        JaggedView<std::int64_t> none;
        none.features = std::ssize(blueprint.features().names);
        batch.on(memory).bind(none, blueprint.features().names);
        for (const LayerFeatures::Result& result : blueprint.features().results)
            frame_->lanes().output.emplace_back(nullptr, 0, result.dim);
        server_.emplace(way, frame_->parts(), comm, rounds_, bound.serve, bound.k, memory);
    }
    schedule_.emplace(way, bound.k, rounds_, server(), !learns_ && bound.serve == Serve::together);
}

SHARDWISE_INLINE void LayerLag::begin_to_serve() {
    if (!on_thread_ || thread_) return;
    thread_.emplace(rounds_.slots, *server_);
    schedule_->served_by(*thread_);
}

SHARDWISE_INLINE std::unique_ptr<Carrier> LayerLag::carrier(const Itinerary& way, CommunicatorRef comm,
                                                            std::pmr::memory_resource& memory) {
    if (learns_) return std::make_unique<PhasedCarrier>(way, rounds_, comm, memory);
    return std::make_unique<SlotCarrier>(way, rounds_, memory);
}

}  // namespace shardwise::inline SHARDWISE_ABI::detail
