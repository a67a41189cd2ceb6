// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "shardwise/comm/one_sided.hpp"
#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/core/facts.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/embedding/lanes/batch.hpp"
#include "shardwise/embedding/lanes/coalesced.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/lanes/pooling.hpp"
#include "shardwise/embedding/lanes/row_tiers.hpp"
#include "shardwise/embedding/lanes/states.hpp"
#include "shardwise/embedding/lanes/towers.hpp"
#include "shardwise/embedding/lanes/workload.hpp"
#include "shardwise/embedding/runtime/features.hpp"
#include "shardwise/embedding/runtime/layer_bound.hpp"
#include "shardwise/embedding/runtime/layer_groups.hpp"
#include "shardwise/embedding/runtime/layer_options.hpp"
#include "shardwise/embedding/runtime/sync_tally.hpp"
#include "shardwise/embedding/runtime/traits.hpp"
#include "shardwise/embedding/tables/table_settings.hpp"
#include "shardwise/plan/cost.hpp"
#include "shardwise/plan/expect.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/sharding/row_map.hpp"
#include "shardwise/sharding/row_plan.hpp"
#include "shardwise/sharding/towers.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// A layer on paper: where its tables live and what its steps move, without a communicator or a table.

namespace shardwise::inline SHARDWISE_ABI {

/// What one training step moves, predicted.
struct LayerCost {
    std::vector<SegmentCost> segments;
    TrafficMatrix forward;
    TrafficMatrix backward;
    /// Of the sync behind the step; nothing where none follows.
    std::vector<SegmentCost> sync_segments = {};
    TrafficMatrix sync = {};
    /// (rank): bytes of rows, or of parts of rows, that its tables look up.
    std::vector<std::int64_t> looked_up = {};
};

/// What one training step moves and touches, in expectation. expect() of `plan/expect.hpp` says what a segment is;
/// rounded() makes `segments` what describe() and seconds() take.
struct ExpectedLayerCost {
    /// Distinct rows that samples look up.
    struct Touched {
        double rank = 0.0;  ///< the samples of one
        double host = 0.0;
        double world = 0.0;  ///< of a group, where there are several
    };

    std::vector<ExpectedSegment> segments;
    ExpectedTraffic forward;
    ExpectedTraffic backward;
    /// Of a sync of copies, behind as many steps as lie between two; nothing where there are no groups.
    std::vector<ExpectedSegment> sync_segments;
    ExpectedTraffic sync;
    std::vector<double> looked_up;              ///< (rank): bytes of rows that its tables look up
    std::vector<std::vector<Touched>> touched;  ///< (part, table of its placement): of a tier, its rows alone

    /// Of all tables together.
    [[nodiscard]] Touched all_touched() const noexcept {
        Touched all;
        for (const auto& part : touched)
            for (const Touched& table : part)
                all = {all.rank + table.rank, all.host + table.host, all.world + table.world};
        return all;
    }
};

/// All of a layer that follows from its policies, tables and towers on a topology: a pure function, the same on all
/// ranks, and on any machine. EmbeddingLayer::blueprint makes one; its tables take no memory, so that it may be of a
/// cluster that is not there.
class LayerBlueprint {
  public:
    /// A plan of the layer: some of its tables.
    struct Part {
        std::string name;  ///< of the sharding policy; with Pools::by_table also of the pooling
        Placement placement;
        PlanPooling pooling;
    };

    /// \param options  of the layer; its seed, slots, tracer and memory say nothing here, and its row plan is read now
    /// \param memory  for what finds the tiers of rows
    /// \throws BadInput for a topology and tables that make no sense or are of more than 2^62 bytes together,
    /// constants of a module that do not fit, groups that there are not, a bound that LayerBound refuses, settings of
    /// tables that make no sense or are of no table, and a norm to clip by where gradients are not there before a row
    /// changes
    LayerBlueprint(const Topology& topology, std::vector<TableConfig> tables, LayerTraits traits,
                   const LayerOptions& options = {},
                   std::pmr::memory_resource& memory = *std::pmr::get_default_resource());

    /// That the tables are placed on, with the layer's towers: of a group, whose ranks are numbered by their index.
    [[nodiscard]] const Topology& topology() const noexcept { return topology_; }
    /// Which ranks of the world are in which group; one of all ranks where there is no other.
    [[nodiscard]] const LayerGroups& groups() const noexcept { return groups_; }
    /// Whether gradients are clipped by their norm, for which ranks exchange sums of squares.
    [[nodiscard]] bool clips_by_norm() const noexcept { return clip_norm_ != 0.0F; }
    /// (table): how it begins and learns, with its learning rate and rule, its own or the layer's.
    [[nodiscard]] const std::vector<TableSettings>& settings() const noexcept { return settings_; }
    /// How far ranks may be apart.
    [[nodiscard]] const LayerBound& bound() const noexcept { return bound_; }
    /// (forward round): what its slots have room for. Not collective: a pure function, the same on all ranks.
    [[nodiscard]] std::vector<SegmentCost> most_bytes() const;
    /// The slots of a forward round on `rank`: of `most_bytes()`'s, and how many of them.
    [[nodiscard]] SlotLayout slot_layout(const SegmentCost& most, int rank) const;
    /// Bytes of all slots of the layer's messages on `rank`.
    [[nodiscard]] std::int64_t slot_bytes(int rank) const;
    /// The communicator's topology.
    [[nodiscard]] const Topology& world() const noexcept { return groups_.ranks.world; }
    [[nodiscard]] const std::vector<TableConfig>& tables() const noexcept { return tables_; }
    [[nodiscard]] const LayerTraits& traits() const noexcept { return traits_; }
    [[nodiscard]] const LayerFeatures& features() const noexcept { return features_; }
    /// The features whose ids `rank` is given: all, or with Ids<AtOwner> those that look up rows which are there.
    /// \throws BadInput when there is no such rank
    [[nodiscard]] std::vector<int> given_features(int rank) const;
    /// The plans of the layer, side by side, and which features each has.
    [[nodiscard]] const std::vector<Part>& parts() const noexcept { return parts_; }
    [[nodiscard]] const steps::FeaturesByPlan& features_by_plan(BatchKind kind = BatchKind::any) const noexcept {
        return kind == BatchKind::hot ? hot_features_by_plan_ : features_by_plan_;
    }
    /// Whether batches may be hot: rows of the first tier, which every rank has.
    [[nodiscard]] bool has_hot_batches() const noexcept { return !traits_.hot_program.segments.empty(); }
    /// Of a layer whose requests are coalesced, which features look up in which table; of others, nothing.
    [[nodiscard]] const CoalescedTables& coalesced_tables() const noexcept { return coalesced_tables_; }
    /// Of a layer with tiers, which rows are in which; for hot batches, with the first tier alone.
    [[nodiscard]] const RowTiers& row_tiers(BatchKind kind = BatchKind::any) const noexcept {
        return kind == BatchKind::hot ? hot_row_tiers_ : row_tiers_;
    }
    /// Bytes of what finds them, on every rank.
    [[nodiscard]] std::int64_t row_map_bytes() const noexcept;
    /// (part): the payload that `rank` sends in a step that predict_cost() predicts, in bytes. The parts have all
    /// exchanges.
    [[nodiscard]] std::vector<std::int64_t> predict_payload(const LayerCost& cost, int rank,
                                                            BatchKind kind = BatchKind::any) const {
        return by_part(payload_by_post(cost.segments, rank), kind);
    }
    /// (part): the sum of numbers, one an exchange of the program.
    /// \throws BadInput for hot batches where there are none
    [[nodiscard]] std::vector<std::int64_t> by_part(std::span<const std::int64_t> by_post,
                                                    BatchKind kind = BatchKind::any) const;
    /// Where the steps of a part stand in the program.
    [[nodiscard]] BranchPath path_of(std::size_t part) const {
        BranchPath path;
        if (traits_.coalesced) path.push_back(0);
        if (parts_.size() > 1) path.push_back(part);
        return path;
    }
    /// Of a layer with modules, none of them made; of others, none.
    [[nodiscard]] const TowerModules& towers() const noexcept { return towers_; }
    [[nodiscard]] bool has_modules() const noexcept { return traits_.module != nullptr; }
    /// Of all that ranks have to agree on here.
    [[nodiscard]] const Digest& digest() const noexcept { return digest_; }
    /// What that is a digest of, by name.
    [[nodiscard]] std::vector<Fact> facts() const;
    /// Names of the parts, as describe() takes them.
    [[nodiscard]] std::vector<std::string> branches() const;

    /// What a training step on these batches, one a rank, moves. With a tally, adds what the step's buffers need on
    /// `rank`: one tally a flight that is under way at a time, over all batches that it carries, says what
    /// memory().dynamic_bytes() grows to; hot batches and others have flights of their own. Where copies are synced, a
    /// sync tally carries what steps touched; without one, the step is taken for the first of a new layer.
    /// \throws BadInput when a batch does not fit the layer, there is no such rank, or no hot batch
    template <class Id>
    [[nodiscard]] LayerCost predict_cost(const std::vector<JaggedView<Id>>& batches, MemoryTally* tally = nullptr,
                                         int rank = 0, BatchKind kind = BatchKind::any,
                                         SyncTally* sync = nullptr) const {
        check_batches(batches.size());
        check_rank(rank);
        std::vector<steps::BatchView> bound(batches.size());
        for (std::size_t i = 0; i < batches.size(); ++i)
            bound[i].bind(batches[i], features_.names);
        return predict_bound(std::move(bound), tally, rank, kind, sync);
    }
    /// What a sync moves that makes all copies equal now: of what the tally's steps touched, which it forgets. Not
    /// collective. \param rank  whose buffers are added to the tally's memory
    [[nodiscard]] std::vector<SegmentCost> predict_sync(SyncTally& tally, int rank = 0) const;
    /// What a training step of this workload moves, in expectation; without ids. Expected are bytes, messages and
    /// touched rows; buffers are those of expected sizes, rounded up. With a tally as predict_cost. Exact where no
    /// batch differs, as for single ids with tables as a whole; otherwise ids of bags are taken to be drawn
    /// independently, and of bytes that fill up a part all remainders to be equally likely. Touched rows that copies
    /// sync are taken to be dealt among them evenly. Not collective. \param sync_tally  what the buffers of syncs need
    /// Cost: a few passes over the rows that the workload has, no pass over samples or look-ups.
    /// \throws BadInput when the workload does not fit the layer, or there is no such rank
    [[nodiscard]] ExpectedLayerCost expect_cost(const Workload& workload, MemoryTally* tally = nullptr, int rank = 0,
                                                MemoryTally* sync_tally = nullptr) const {
        return expect_on(rank, workload, one_or_none(tally), one_or_none(sync_tally));
    }
    /// The same, with the buffers of all ranks of a group, one group being like another.
    /// \param flights, syncs  (index in the group): what they need
    [[nodiscard]] ExpectedLayerCost expect_cost(const Workload& workload, std::vector<MemoryTally>& flights,
                                                std::vector<MemoryTally>& syncs) const;
    /// What answering these batches, one a rank, needs on `rank`, of a layer whose flights have two halves; one tally
    /// for the layer. \throws BadInput when a batch does not fit the layer, or there is no such rank
    template <class Id>
    void predict_serving(const std::vector<JaggedView<Id>>& batches, MemoryTally& tally, int rank) const {
        check_batches(batches.size());
        check_rank(rank);
        std::vector<steps::BatchView> bound(batches.size());
        for (std::size_t i = 0; i < batches.size(); ++i)
            bound[i].bind(batches[i], features_.names);
        tally_serving(bound, tally, rank);
    }
    /// Checks the ids and weights of a batch. \throws BadInput naming the first that is wrong
    void check(const steps::BatchView& batch) const;

    /// Bytes of what lives as long as the layer on a rank: tables, moments and modules, and marks of rows to sync.
    /// \throws BadInput when there is no such rank
    [[nodiscard]] std::int64_t static_bytes(int rank) const;
    /// Those of one thing; 0 for what batches and syncs need.
    [[nodiscard]] std::int64_t static_bytes(int rank, MemoryPart part) const;

  private:
    using Touches = steps::Touches;

    void check_sizes() const;
    void coalesce();
    void map_rows(const RowPlan* rows, std::pmr::memory_resource& memory);
    void check_towers(const Towers& towers) const;
    void check_batches(std::size_t count) const;
    void check_rank(int rank) const;
    [[nodiscard]] bool spans_towers() const;
    [[nodiscard]] std::vector<int> tables_of(const ShardingTraits& sharding, bool pooled) const;
    void place(const std::vector<int>& tower_of, std::int64_t room);
    void settle_tables(const LayerOptions& options);
    void check_clipping() const;
    void want_squares(const LayerOptions& options);
    void take_digest(const Towers& towers, const RowPlan* rows);
    template <class Lanes>
    void bind(CostTree<Lanes>& tree, BatchKind kind) const;
    [[nodiscard]] LayerCost predict_bound(std::vector<steps::BatchView> batches, MemoryTally* tally, int rank,
                                          BatchKind kind, SyncTally* sync) const;
    void tally_flight_messages(const std::vector<SegmentCost>& costs, int rank, MemoryTally& tally,
                               BatchKind kind) const;
    void tally_serving(const std::vector<steps::BatchView>& batches, MemoryTally& tally, int rank) const;
    void tally_batch(const std::vector<steps::BatchView>& batches, MemoryTally& tally, int rank, BatchKind kind) const;
    void tally_half(const std::vector<steps::BatchView>& batches, const std::vector<bool>& given,
                    const Program& program, MemoryTally& tally, int rank) const;
    void touch(int group, CostTree<steps::EmbeddingCost>& tree, SyncTally& sync) const;
    template <class Lanes, class Mean>
    void look_up(int group, CostTree<Lanes>& tree, std::vector<Mean>& bytes) const;
    template <class Lanes, class Fill>
    [[nodiscard]] CostTree<Lanes> copies_of(int index, Fill fill) const;
    [[nodiscard]] std::vector<ExpectedSegment> expect_sync(const Touches& by_group,
                                                           CostTree<steps::EmbeddingExpectation>& tree,
                                                           std::span<MemoryTally> tallies, int first) const;
    [[nodiscard]] ExpectedLayerCost expect_on(int first, const Workload& workload, std::span<MemoryTally> tallies,
                                              std::span<MemoryTally> sync_tallies) const;
    /// Each of the groups, and at least one.
    [[nodiscard]] Touches all_groups(const Touches& by) const { return {by.samples, groups_.count()}; }
    [[nodiscard]] Touches any_group(const Touches& by) const { return {by.samples * groups_.count(), 1}; }

    LayerTraits traits_;
    LayerGroups groups_;
    Topology topology_;
    std::vector<TableConfig> tables_;
    LayerFeatures features_;
    LayerBound bound_;
    float clip_norm_;
    std::vector<TableSettings> settings_;    // (table)
    std::vector<TableConfig> inner_tables_;  // as the plans of tables see them: coalesced, with one feature each
    LayerFeatures inner_features_;
    CoalescedTables coalesced_tables_;
    TowerModules towers_;
    std::vector<Part> parts_;
    steps::FeaturesByPlan features_by_plan_;
    steps::FeaturesByPlan hot_features_by_plan_;
    std::vector<std::shared_ptr<const RowMap>> row_maps_;  // (table), with tiers
    std::vector<std::vector<DenseSums>> dense_sums_;       // (table, tier), with tiers
    RowTiers row_tiers_;
    RowTiers hot_row_tiers_;
    Digest digest_;
    std::int64_t room_ = 0;
    std::vector<Digest> given_settings_;  // (table): without the layer's learning rate and rule
    Digest learning_rate_digest_;         // of the layer's
    Digest towers_digest_;                // of the features of each, as they were given
    Digest rows_digest_;                  // of the row plan
    Digest placed_digest_;                // of where all shards are
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/runtime/blueprint.ipp"
#include "shardwise/embedding/runtime/blueprint_costs.ipp"
#include "shardwise/embedding/runtime/blueprint_facts.ipp"
#include "shardwise/embedding/runtime/blueprint_lag.ipp"
#include "shardwise/embedding/runtime/blueprint_settings.ipp"
#endif
