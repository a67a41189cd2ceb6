// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <numeric>
#include <utility>

#include "shardwise/core/at.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/embedding/copies/lanes.hpp"
#include "shardwise/embedding/lanes/check_ids.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"
#include "shardwise/embedding/tables/held_shards.hpp"

/// \file
/// What a layer on paper says of a step.

namespace shardwise::inline SHARDWISE_ABI {

/// Shows a reader's lanes the states of the plans.
template <class Lanes>
void LayerBlueprint::bind(CostTree<Lanes>& tree, BatchKind kind) const {
    const auto states = [&](const BranchPath& path) -> Lanes& {
        Lanes& lanes = tree.at(path);
        lanes.wires = &traits_.wires;
        lanes.order = traits_.order;
        lanes.towers = &towers_;
        lanes.features = &features_by_plan(kind);
        lanes.tiers = &row_tiers(kind);
        lanes.coalesced = &coalesced_tables_;
        return lanes;
    };
    states({});
    if (traits_.coalesced) states({0});
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        Lanes& lanes = states(path_of(i));
        lanes.placement = &parts_[i].placement;
        lanes.pooling = &parts_[i].pooling;
    }
}

/// Adds what a group's step touched, as the cost reader left it.
SHARDWISE_INLINE void LayerBlueprint::touch(int group, CostTree<steps::EmbeddingCost>& tree, SyncTally& sync) const {
    if (groups_.count() == 1) return;
    sync.groups_.resize(static_cast<std::size_t>(groups_.count()));
    auto& of_group = at(sync.groups_, group).touched;
    of_group.resize(static_cast<std::size_t>(topology_.ranks()));
    if (groups_.rows == SyncRows::all) return;
    for (int index = 0; index < topology_.ranks(); ++index) {
        std::vector<steps::TouchedLocals>& shards = at(of_group, index);
        std::size_t shard = 0;
        for (std::size_t part = 0; part < parts_.size(); ++part) {
            const steps::EmbeddingCost& lanes = tree.at(path_of(part));
            lanes.for_shards(index, [&](std::size_t key, int, const ShardPlacement&) {
                if (shard == shards.size()) shards.emplace_back();
                if (!lanes.touched.empty()) {  // a hot batch runs some of the plans
                    shards[shard].add(at(lanes.touched, index)[key], [](LocalRow) { return true; });
                    shards[shard].settle();
                }
                ++shard;
            });
        }
    }
}

SHARDWISE_INLINE std::vector<SegmentCost> LayerBlueprint::predict_sync(SyncTally& tally, int rank) const {
    std::vector<SegmentCost> costs;
    const ReplicaGroups& groups = groups_.ranks;
    if (groups.count() == 1) return costs;
    tally.groups_.resize(static_cast<std::size_t>(groups.count()));
    const ReplicaGroups among = groups.of_copies();
    for (int index = 0; index < topology_.ranks(); ++index) {
        CostTree<copies::Cost> tree;
        tree.own.element_slots = traits_.rule->element_slots();
        tree.own.row_slots = traits_.rule->row_slots();
        for (const Part& part : parts_)
            for (const HeldShards::Shard& shard : HeldShards{part.placement, index}.shards) {
                const std::size_t number = tree.own.shards.size();
                copies::Cost::Shard& one = tree.own.shards.emplace_back();
                one.rows = shard.rows;
                one.dim = shard.dim;
                one.floats = std::int64_t{shard.dim} * (1 + tree.own.element_slots) + tree.own.row_slots;
                for (SyncTally::Group& group : tally.groups_) {
                    group.touched.resize(static_cast<std::size_t>(topology_.ranks()));
                    auto& shards = at(group.touched, index);
                    one.touched.push_back(number < shards.size() ? std::move(shards[number].rows)
                                                                 : std::vector<std::int64_t>{});
                    if (number < shards.size()) shards[number].rows.clear();
                }
            }
        const bool mine = index == groups.index_of(rank);
        if (mine) tally.memory_.begin_batch();
        const std::vector<SegmentCost> moved = predict(groups_.sync, groups.between_copies(), tree,
                                                       mine ? &tally.memory_ : nullptr, groups.group_of(rank));
        shardwise::detail::add_in_world(moved, world(), among.group, groups.rank_of(0, index), costs);
    }
    tally_messages(costs, world(), rank, tally.memory_);
    return costs;
}

SHARDWISE_INLINE LayerCost LayerBlueprint::predict_bound(std::vector<steps::BatchView> batches, MemoryTally* tally,
                                                         int rank, BatchKind kind, SyncTally* sync) const {
    const Program& program = traits_.program_of(kind);
    for (const steps::BatchView& batch : batches)
        check(batch);
    if (tally != nullptr) {
        tally->begin_batch();
        tally->need(at(batches, rank).bytes());
        tally->need(4 * features_.output_elements(at(batches, rank)));
    }
    SyncTally first;
    if (sync == nullptr) sync = &first;
    LayerCost cost{.segments = {},
                   .forward = TrafficMatrix{world()},
                   .backward = TrafficMatrix{world()},
                   .sync_segments = {},
                   .sync = TrafficMatrix{world()}};
    const ReplicaGroups& groups = groups_.ranks;
    for (int group = 0; group < groups.count(); ++group) {
        CostTree<steps::EmbeddingCost> tree;
        bind(tree, kind);
        for (int index = 0; index < topology_.ranks(); ++index)
            tree.own.batches.push_back(std::move(at(batches, groups.rank_of(group, index))));
        const bool mine = group == groups.group_of(rank);
        const std::vector<SegmentCost> costs =
            predict(program, topology_, tree, mine ? tally : nullptr, groups.index_of(rank));
        shardwise::detail::add_in_world(costs, world(), groups.group, groups.rank_of(group, 0), cost.segments);
        touch(group, tree, *sync);
    }
    shardwise::detail::add_witnesses(program, topology_, groups, cost.segments);
    for (const SegmentCost& segment : cost.segments)
        (segment.segment < program.forward ? cost.forward : cost.backward) += segment.traffic;
    if (tally != nullptr) tally_messages(cost.segments, world(), rank, *tally);
    if (groups_.syncs_at(++sync->steps_)) cost.sync_segments = predict_sync(*sync, rank);
    for (const SegmentCost& segment : cost.sync_segments)
        cost.sync += segment.traffic;
    return cost;
}

SHARDWISE_INLINE ExpectedLayerCost LayerBlueprint::expect_cost(const Workload& workload, MemoryTally* tally,
                                                               int rank) const {
    shardwise::check(workload, tables_);
    check_rank(rank);
    if (workload.weighted && traits_.pools == Pools::none) throw BadInput{steps::weights_of_a_sequence};
    CostTree<steps::EmbeddingExpectation> tree;
    bind(tree, BatchKind::any);
    std::vector<int> all(features_.names.size());
    std::iota(all.begin(), all.end(), 0);
    tree.own.workload = &workload;
    tree.own.expected_batch =
        steps::ExpectedBatch{workload, all, std::vector<double>(all.size(), 1.0), workload.weighted};
    if (path_of(0).empty()) tree.own.begin(workload);
    if (tally != nullptr) {
        tally->begin_batch();
        tally->need(tree.own.expected_batch.bytes());
        tally->need(4 * rounded_up(features_.output_elements(tree.own.expected_batch)));
    }
    ExpectedLayerCost cost{
        .segments = {}, .forward = ExpectedTraffic{world()}, .backward = ExpectedTraffic{world()}, .touched = {}};
    const ReplicaGroups& groups = groups_.ranks;
    const std::vector<ExpectedSegment> of_a_group =
        expect(traits_.program, topology_, tree, tally, groups.index_of(rank));
    for (int group = 0; group < groups.count(); ++group)
        shardwise::detail::add_in_world(of_a_group, world(), groups.group, groups.rank_of(group, 0), cost.segments);
    shardwise::detail::add_witnesses(traits_.program, topology_, groups, cost.segments);
    for (const ExpectedSegment& segment : cost.segments)
        (segment.segment < traits_.program.forward ? cost.forward : cost.backward) += segment.traffic;
    if (tally != nullptr) tally_messages(cost.segments, world(), rank, *tally);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        auto& part = cost.touched.emplace_back();
        for (const steps::ExpectedRows& rows : tree.at(path_of(i)).rows)
            part.push_back({.rank = rows.touched(workload.samples),
                            .host = rows.touched(workload.samples * topology_.ranks_per_host),
                            .world = rows.touched(workload.samples * topology_.ranks())});
    }
    return cost;
}

}  // namespace shardwise::inline SHARDWISE_ABI
