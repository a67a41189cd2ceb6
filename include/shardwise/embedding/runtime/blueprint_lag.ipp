// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "shardwise/comm/slot_counts.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"
#include "shardwise/plan/itinerary.hpp"

/// \file
/// What a layer on paper says of ranks that may be apart: slots, and what halves of flights need.

namespace shardwise::inline SHARDWISE_ABI {

/// Batches of as many samples and ids as are declared go through the cost reader, which takes every shard for one that
/// may have them all.
SHARDWISE_INLINE std::vector<SegmentCost> LayerBlueprint::most_bytes() const {
    std::vector<SegmentCost> all;
    if (!bound_.bounded) return all;
    double estimate = 0.0;  // of what travels between two ranks, in numbers that cannot overflow
    for (std::size_t f = 0; f < bound_.ids.size(); ++f)
        estimate += static_cast<double>(bound_.samples + bound_.ids[f]) * (4.0 * features_.results[f].dim + 16.0);
    if (estimate > 0x1p46)
        throw BadInput{concat({"batches of ", bound_.samples,
                               " samples and the ids that LayerOptions::bound declares are messages of about ",
                               estimate, " bytes: declare fewer"})};
    static constexpr float weight = 1.0F;
    CostTree<steps::EmbeddingCost> tree;
    bind(tree, BatchKind::any);
    tree.own.at_most = true;
    if (traits_.coalesced) tree.at({0}).at_most = true;
    for (std::size_t part = 0; part < parts_.size(); ++part)
        tree.at(path_of(part)).at_most = true;
    for (int index = 0; index < topology_.ranks(); ++index) {
        steps::BatchView& batch = tree.own.batches.emplace_back();
        batch.begin(bound_.samples, {}, {},
                    bound_.weighted ? std::span<const float>{&weight, 1} : std::span<const float>{});
        for (const std::int64_t ids : bound_.ids)
            batch.add_feature(0, ids, nullptr);
    }
    Program forward = traits_.program;
    forward.segments.resize(forward.forward);
    const std::vector<SegmentCost> costs = predict(forward, topology_, tree);
    const ReplicaGroups& groups = groups_.ranks;
    for (int group = 0; group < groups.count(); ++group)
        shardwise::detail::add_in_world(costs, world(), groups.group, groups.rank_of(group, 0), all);
    if (bound_.learns) shardwise::detail::add_witnesses(forward, topology_, groups, all);
    return all;
}

SHARDWISE_INLINE SlotLayout LayerBlueprint::slot_layout(const SegmentCost& most, int rank) const {
    SlotLayout layout;
    const bool requests = bound_.has_halves() && most.segment == 0;
    layout.slots = bound_.at_owner ? exchange_slots(bound_.k)
                   : requests      ? request_slots(bound_.k)
                                   : answer_slots(bound_.k);
    const auto bytes = [](const TierTraffic& cell) { return cell.payload + cell.control; };
    for (int peer = 0; peer < world().ranks(); ++peer) {
        layout.from.push_back(bytes(most.traffic.at(peer, rank)));
        layout.to.push_back(bytes(most.traffic.at(rank, peer)));
    }
    return layout;
}

SHARDWISE_INLINE std::int64_t LayerBlueprint::slot_bytes(int rank) const {
    check_rank(rank);
    std::int64_t bytes = 0;
    for (const SegmentCost& most : most_bytes())
        bytes += slot_layout(most, rank).bytes();
    return bytes;
}

/// What half a flight needs, through which some ranks' batches go. \param given  (rank of the world): its batch does
SHARDWISE_INLINE void LayerBlueprint::tally_half(const std::vector<steps::BatchView>& batches,
                                                 const std::vector<bool>& given, const Program& program,
                                                 MemoryTally& tally, int rank) const {
    const ReplicaGroups& groups = groups_.ranks;
    CostTree<steps::EmbeddingCost> tree;
    bind(tree, BatchKind::any);
    std::vector<int> all(features_.names.size());
    std::iota(all.begin(), all.end(), 0);
    for (int index = 0; index < topology_.ranks(); ++index) {
        const int other = groups.rank_of(groups.group_of(rank), index);
        steps::BatchView& batch = tree.own.batches.emplace_back();
        batch.select(at(batches, other), all);
        if (!at(given, other)) batch.clear();
    }
    static_cast<void>(predict(program, topology_, tree, &tally, groups.index_of(rank)));
}

SHARDWISE_INLINE void LayerBlueprint::tally_serving(const std::vector<steps::BatchView>& batches, MemoryTally& tally,
                                                    int rank) const {
    if (!bound_.has_halves()) return;
    for (const steps::BatchView& batch : batches)
        check(batch);
    const Itinerary whole{traits_.program, topology_, groups_.ranks, rank};
    const std::vector<int>& askers = whole.stages().front().from;
    if (askers.empty()) return;
    Program program = traits_.program;
    program.segments.resize(whole.answering(askers).stages().size());
    const auto answer = [&](const std::vector<bool>& given) {
        tally.begin_batch();
        tally_half(batches, given, program, tally, rank);
    };
    const auto in_world = [&](int index) {
        return static_cast<std::size_t>(groups_.ranks.rank_of(groups_.ranks.group_of(rank), index));
    };
    std::vector<bool> given(batches.size());
    if (bound_.serve == Serve::together) {
        for (const int asker : askers)
            given[in_world(asker)] = true;
        return answer(given);
    }
    for (const int asker : askers) {
        given[in_world(asker)] = true;
        answer(given);
        given[in_world(asker)] = false;
    }
}

/// Of a flight without halves. Over slots, forward messages are packed and read where they lie, but for those that the
/// backward pass reads once more.
SHARDWISE_INLINE void LayerBlueprint::tally_flight_messages(const std::vector<SegmentCost>& costs, int rank,
                                                            MemoryTally& tally, BatchKind kind) const {
    if (!bound_.bounded || kind == BatchKind::hot) return tally_messages(costs, world(), rank, tally);
    std::vector<SegmentCost> copied;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        const std::size_t forward = traits_.program.forward;
        if (costs[i].segment >= forward) {
            copied.push_back(costs[i]);
        } else if (i + 1 < costs.size() && costs[i + 1].segment < forward) {
            copied.push_back(costs[i]);
            for (int peer = 0; peer < world().ranks(); ++peer)
                copied.back().traffic.at(rank, peer) = {};
        }
    }
    tally_messages(copied, world(), rank, tally);
}

/// What a flight keeps of the lengths of its batch.
SHARDWISE_INLINE void LayerBlueprint::tally_batch(const std::vector<steps::BatchView>& batches, MemoryTally& tally,
                                                  int rank, BatchKind kind) const {
    if (!traits_.at_owner || kind == BatchKind::hot) {
        tally.need(at(batches, rank).bytes());
        tally.need(0);
        return;
    }
    std::int64_t samples = 0;
    bool single = true;
    for (int index = 0; index < topology_.ranks(); ++index) {
        const steps::BatchView& batch = at(batches, groups_.ranks.rank_of(groups_.ranks.group_of(rank), index));
        samples += batch.samples();
        single &= batch.bytes() == 0;
    }
    const std::int64_t given = std::ssize(given_features(rank));
    tally.need(single ? 0 : 4 * given * samples);
    tally.need(given == std::ssize(features_.names) ? 0 : 4 * samples);
}

}  // namespace shardwise::inline SHARDWISE_ABI
