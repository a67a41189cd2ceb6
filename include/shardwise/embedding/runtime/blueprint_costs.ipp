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
#include "shardwise/embedding/tables/table_rules.hpp"

/// \file
/// What a layer on paper says of a step.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// What ranks tell each other of the norm of gradients: a sum of squares, one message from each rank to each other.
template <class Count>
void add_clipping(const Topology& world, TrafficMatrixOf<Count>& traffic) {
    for (int from = 0; from < world.ranks(); ++from)
        for (int to = 0; to < world.ranks(); ++to) {
            if (from == to) continue;
            traffic.at(from, to).payload += static_cast<std::int64_t>(sizeof(ClippingWords));
            traffic.at(from, to).messages += 1;
        }
}

}  // namespace detail

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
        lanes.at_owner = traits_.at_owner && kind == BatchKind::any;
        lanes.tiered = traits_.tiered;
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
    if (!groups_.syncs()) return;
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

/// Adds the bytes of rows that the tables of a group's ranks look up, as a reader left it.
template <class Lanes, class Mean>
void LayerBlueprint::look_up(int group, CostTree<Lanes>& tree, std::vector<Mean>& bytes) const {
    bytes.resize(static_cast<std::size_t>(world().ranks()), Mean{0});
    for (std::size_t part = 0; part < parts_.size(); ++part) {
        const Lanes& lanes = tree.at(path_of(part));
        if (lanes.counts.empty()) continue;  // a hot batch runs some of the plans
        for (int index = 0; index < topology_.ranks(); ++index)
            lanes.for_sources(index, [&](int source) {
                for (const BlockPlace& place : lanes.placement->owned_by(index)) {
                    const auto block = static_cast<std::size_t>(lanes.placement->block_index(place));
                    at(bytes, groups_.ranks.rank_of(group, index)) +=
                        4 * mean_of(lanes.count(source, block).ids) * lanes.placement->shard(place).columns.count;
                }
            });
    }
}

/// What a sync's plan is about on the ranks of one index, for a reader of it.
/// \param fill  fill(shard, part, HeldShards::Shard): says of each shard what its copies touched
template <class Lanes, class Fill>
CostTree<Lanes> LayerBlueprint::copies_of(int index, Fill fill) const {
    CostTree<Lanes> tree;
    tree.own.element_slots = traits_.rule->element_slots();
    tree.own.row_slots = traits_.rule->row_slots();
    for (std::size_t part = 0; part < parts_.size(); ++part)
        for (const HeldShards::Shard& held : HeldShards{parts_[part].placement, index}.shards) {
            auto& shard = tree.own.shards.emplace_back();
            shard.rows = held.rows;
            shard.dim = held.dim;
            shard.floats = std::int64_t{held.dim} * (1 + tree.own.element_slots) + tree.own.row_slots;
            fill(shard, part, held);
        }
    return tree;
}

SHARDWISE_INLINE std::vector<SegmentCost> LayerBlueprint::predict_sync(SyncTally& tally, int rank) const {
    std::vector<SegmentCost> costs;
    const ReplicaGroups& groups = groups_.ranks;
    if (!groups_.syncs()) return costs;
    tally.groups_.resize(static_cast<std::size_t>(groups.count()));
    for (SyncTally::Group& group : tally.groups_)
        group.touched.resize(static_cast<std::size_t>(topology_.ranks()));
    for (int index = 0; index < topology_.ranks(); ++index) {
        std::size_t number = 0;
        auto tree =
            copies_of<copies::Cost>(index, [&](copies::Cost::Shard& shard, std::size_t, const HeldShards::Shard&) {
                for (SyncTally::Group& group : tally.groups_) {
                    auto& shards = at(group.touched, index);
                    auto& touched = shard.touched.emplace_back();
                    if (number < shards.size()) touched.swap(shards[number].rows);
                }
                ++number;
            });
        const bool mine = index == groups.index_of(rank);
        if (mine) tally.memory_.begin_batch();
        const std::vector<SegmentCost> moved = predict(groups_.sync, groups.between_copies(), tree,
                                                       mine ? &tally.memory_ : nullptr, groups.group_of(rank));
        shardwise::detail::add_in_world(moved, world(), groups.copies, groups.rank_of(0, index), costs);
    }
    tally_messages(costs, world(), rank, tally.memory_);
    return costs;
}

/// \param tree  of the group's plan, which has been read \param first  the rank of the first tally; the others are of
/// those behind it in its group
SHARDWISE_INLINE std::vector<ExpectedSegment> LayerBlueprint::expect_sync(const Touches& by_group,
                                                                          CostTree<steps::EmbeddingExpectation>& tree,
                                                                          std::span<MemoryTally> tallies,
                                                                          int first) const {
    std::vector<ExpectedSegment> costs;
    const ReplicaGroups& groups = groups_.ranks;
    const int first_index = groups.index_of(first);
    for (int index = 0; index < topology_.ranks(); ++index) {
        auto among = copies_of<copies::Expectation>(
            index, [&](copies::Expectation::Shard& shard, std::size_t part, const HeldShards::Shard& held) {
                const steps::ExpectedRows& rows = at(tree.at(path_of(part)).rows, held.table);
                const int rows_of = parts_[part].placement.splits == Splits::rows ? held.shard : 0;
                shard.touched = rows.touched(rows_of, by_group);
                shard.by_all = rows.touched(rows_of, all_groups(by_group)).mean;
                shard.by_some = rows.touched(rows_of, any_group(by_group)).mean;
            });
        const bool asked = index >= first_index && index - first_index < std::ssize(tallies);
        const std::span<MemoryTally> mine =
            asked ? tallies.subspan(static_cast<std::size_t>(index - first_index), 1) : std::span<MemoryTally>{};
        for (MemoryTally& tally : mine)
            tally.begin_batch();
        const std::vector<ExpectedSegment> moved =
            expect(groups_.sync, groups.between_copies(), among, mine, groups.group_of(first));
        shardwise::detail::add_in_world(moved, world(), groups.copies, groups.rank_of(0, index), costs);
    }
    for (std::size_t i = 0; i < tallies.size(); ++i)
        tally_messages(costs, world(), groups.rank_of(groups.group_of(first), first_index + static_cast<int>(i)),
                       tallies[i]);
    return costs;
}

SHARDWISE_INLINE LayerCost LayerBlueprint::predict_bound(std::vector<steps::BatchView> batches, MemoryTally* tally,
                                                         int rank, BatchKind kind, SyncTally* sync) const {
    const Program& program = traits_.program_of(kind);
    for (const steps::BatchView& batch : batches)
        check(batch);
    if (tally != nullptr) {
        tally->begin_batch();
        tally_batch(batches, *tally, rank, kind);
        tally->need(4 * features_.output_elements(at(batches, rank)));
        tally->need(8 * features_.squares(at(batches, rank).samples()));
    }
    MemoryTally* whole = tally;  // of a flight that has no halves
    if (tally != nullptr && bound_.has_halves() && kind == BatchKind::any) {
        std::vector<bool> given(batches.size());
        at(given, rank) = true;
        tally_half(batches, given, program, *tally, rank);
        whole = nullptr;
    }
    SyncTally first;
    if (sync == nullptr) sync = &first;
    LayerCost cost{.segments = {},
                   .forward = TrafficMatrix{world()},
                   .backward = TrafficMatrix{world()},
                   .sync_segments = {},
                   .sync = TrafficMatrix{world()},
                   .looked_up = {}};
    const ReplicaGroups& groups = groups_.ranks;
    for (int group = 0; group < groups.count(); ++group) {
        CostTree<steps::EmbeddingCost> tree;
        bind(tree, kind);
        for (int index = 0; index < topology_.ranks(); ++index)
            tree.own.batches.push_back(std::move(at(batches, groups.rank_of(group, index))));
        const bool mine = group == groups.group_of(rank);
        const std::vector<SegmentCost> costs =
            predict(program, topology_, tree, mine ? whole : nullptr, groups.index_of(rank));
        shardwise::detail::add_in_world(costs, world(), groups.group, groups.rank_of(group, 0), cost.segments);
        look_up(group, tree, cost.looked_up);
        touch(group, tree, *sync);
    }
    if (!bound_.errors_stay()) shardwise::detail::add_witnesses(program, topology_, groups, cost.segments);
    for (const SegmentCost& segment : cost.segments)
        (segment.segment < program.forward ? cost.forward : cost.backward) += segment.traffic;
    if (clips_by_norm()) shardwise::detail::add_clipping(world(), cost.backward);
    if (whole != nullptr) tally_flight_messages(cost.segments, rank, *whole, kind);
    if (groups_.syncs_at(++sync->steps_)) cost.sync_segments = predict_sync(*sync, rank);
    for (const SegmentCost& segment : cost.sync_segments)
        cost.sync += segment.traffic;
    return cost;
}

SHARDWISE_INLINE ExpectedLayerCost LayerBlueprint::expect_cost(const Workload& workload,
                                                               std::vector<MemoryTally>& flights,
                                                               std::vector<MemoryTally>& syncs) const {
    flights.resize(static_cast<std::size_t>(topology_.ranks()));
    syncs.resize(flights.size());
    return expect_on(groups_.ranks.rank_of(0, 0), workload, flights, syncs);
}

/// \param first  the rank of the first tally of each kind; the others are of those behind it in its group
SHARDWISE_INLINE ExpectedLayerCost LayerBlueprint::expect_on(int first, const Workload& workload,
                                                             std::span<MemoryTally> tallies,
                                                             std::span<MemoryTally> sync_tallies) const {
    shardwise::check(workload, tables_);
    check_rank(first);
    if (workload.weighted && traits_.pools == Pools::none) throw BadInput{steps::weights_of_a_sequence};
    const ReplicaGroups& groups = groups_.ranks;
    CostTree<steps::EmbeddingExpectation> tree;
    bind(tree, BatchKind::any);
    const std::int64_t in_a_step = workload.samples * topology_.ranks();
    constexpr std::int64_t most = std::int64_t{1} << 40;  // more samples touch what these do
    const Touches by_group{.samples = in_a_step > most / groups_.sync_every ? most : in_a_step * groups_.sync_every};
    for (std::size_t i = 0; i < parts_.size() && groups_.syncs(); ++i)
        tree.at(path_of(i)).asked = {by_group, all_groups(by_group), any_group(by_group)};
    std::vector<int> all(features_.names.size());
    std::iota(all.begin(), all.end(), 0);
    tree.own.workload = &workload;
    tree.own.expected_batch =
        steps::ExpectedBatch{workload, all, std::vector<double>(all.size(), 1.0), workload.weighted};
    if (path_of(0).empty()) tree.own.begin(workload);
    for (std::size_t i = 0; i < tallies.size(); ++i) {
        MemoryTally& tally = tallies[i];
        tally.begin_batch();
        const bool single = tree.own.expected_batch.bytes() == 0;
        const auto features = std::ssize(features_.names);
        const auto given = std::ssize(
            given_features(groups.rank_of(groups.group_of(first), groups.index_of(first) + static_cast<int>(i))));
        const std::int64_t samples = traits_.at_owner ? in_a_step : workload.samples;
        tally.need(single ? 0 : 4 * given * samples);
        tally.need(given == features ? 0 : 4 * samples);
        tally.need(4 * rounded_up(features_.output_elements(tree.own.expected_batch)));
        tally.need(8 * features_.squares(tree.own.expected_batch.samples()));
    }
    ExpectedLayerCost cost{.segments = {},
                           .forward = ExpectedTraffic{world()},
                           .backward = ExpectedTraffic{world()},
                           .sync_segments = {},
                           .sync = ExpectedTraffic{world()},
                           .looked_up = {},
                           .touched = {}};
    const std::vector<ExpectedSegment> of_a_group =
        expect(traits_.program, topology_, tree, tallies, groups.index_of(first));
    for (int group = 0; group < groups.count(); ++group) {
        look_up(group, tree, cost.looked_up);
        shardwise::detail::add_in_world(of_a_group, world(), groups.group, groups.rank_of(group, 0), cost.segments);
    }
    shardwise::detail::add_witnesses(traits_.program, topology_, groups, cost.segments);
    for (const ExpectedSegment& segment : cost.segments)
        (segment.segment < traits_.program.forward ? cost.forward : cost.backward) += segment.traffic;
    if (clips_by_norm()) shardwise::detail::add_clipping(world(), cost.backward);
    for (std::size_t i = 0; i < tallies.size(); ++i)
        tally_messages(cost.segments, world(),
                       groups.rank_of(groups.group_of(first), groups.index_of(first) + static_cast<int>(i)),
                       tallies[i]);
    if (groups_.syncs()) cost.sync_segments = expect_sync(by_group, tree, sync_tallies, first);
    for (const ExpectedSegment& segment : cost.sync_segments)
        cost.sync += segment.traffic;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        auto& part = cost.touched.emplace_back();
        for (const steps::ExpectedRows& rows : tree.at(path_of(i)).rows)
            part.push_back({.rank = rows.touched(workload.samples),
                            .host = rows.touched(workload.samples * topology_.ranks_per_host),
                            .world = rows.touched(workload.samples * topology_.ranks())});
    }
    return cost;
}

#if defined(SHARDWISE_SOURCE)
template void LayerBlueprint::bind(CostTree<steps::EmbeddingCost>&, BatchKind) const;  // for blueprint_lag.ipp
#endif

}  // namespace shardwise::inline SHARDWISE_ABI
