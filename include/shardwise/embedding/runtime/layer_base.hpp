// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/comm/one_sided_ref.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/exact_sum.hpp"
#include "shardwise/core/facts.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/core/source_location.hpp"
#include "shardwise/embedding/lanes/states.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"
#include "shardwise/embedding/runtime/layer_bound.hpp"
#include "shardwise/embedding/runtime/layer_flight.hpp"
#include "shardwise/embedding/runtime/layer_groups.hpp"
#include "shardwise/embedding/runtime/layer_lag.hpp"
#include "shardwise/embedding/runtime/layer_options.hpp"
#include "shardwise/embedding/runtime/replica_sync.hpp"
#include "shardwise/embedding/runtime/sync_tally.hpp"
#include "shardwise/embedding/runtime/traits.hpp"
#include "shardwise/embedding/tables/held_shards.hpp"
#include "shardwise/embedding/tables/store.hpp"
#include "shardwise/embedding/tables/table_rules.hpp"
#include "shardwise/embedding/tables/table_settings.hpp"
#include "shardwise/embedding/tables/touched_marks.hpp"
#include "shardwise/optimizer/learning_rate.hpp"
#include "shardwise/plan/itinerary.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/sharding/towers.hpp"
#include "shardwise/topology/replica_groups.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Embedding tables over all ranks of a communicator, their policies values: all of a layer that is compiled once.

namespace shardwise::inline SHARDWISE_ABI {

struct LayerShards;

/// A layer whose policies are values: what a program holds that picks among compositions at run time. EmbeddingLayer
/// adds types to it, make_layer makes one by names.
///
/// Every member that takes a batch or a gradient is collective: all ranks call it in the same order, with batches of
/// any size, also empty. One instance a rank; not thread safe.
class LayerBase {
  public:
    using Flight = LayerFlight;

    /// Places and initialises the tables. Not collective, but the ranks of a communicator make their layers in one
    /// order, and give the same arguments.
    /// \throws BadInput for tables that make no sense, and constants that do not fit
    LayerBase(CommunicatorRef comm, std::vector<TableConfig> tables, LayerTraits traits,
              const LayerOptions& options = {});
    LayerBase(const LayerBase&) = delete;
    LayerBase& operator=(const LayerBase&) = delete;
    /// Ends the flights that are under way.
    virtual ~LayerBase();

    /// Sends the ids of a batch on their way and returns without waiting. The batch is free once this returns. Flights
    /// of one layer are started, looked up and learnt from in one order on all ranks. Collective. One message a peer.
    template <class Id>
    Flight start(const JaggedView<Id>& batch, const SourceLocation& where = SourceLocation::current()) {
        return start(batch, BatchKind::any, where);
    }
    /// The same; all ranks give a batch of one kind. A hot batch moves no ids, vectors or gradients of samples: what is
    /// left is one message a peer for errors, and the sums of the rows' gradients. Its results and what is learnt have
    /// the bits of `any`. Wherever an id is no row of the first tier, forward throws BadInput on every rank.
    /// \throws BadInput on this rank for hot batches of a layer whose first tier is not on every rank
    template <class Id>
    Flight start(const JaggedView<Id>& batch, BatchKind kind, const SourceLocation& where = SourceLocation::current()) {
        if (blueprint_.traits().at_owner && kind == BatchKind::any)
            throw BadInput{
                "this layer is given all ranks' ids (Ids<AtOwner>): say behind the batch how many of its samples are "
                "each rank's"};
        make_room(kind, where);
        detail::LayerState& state = free_state(kind);
        state.flight.called_from(where);
        std::string wrong;
        try {
            state.batch().bind(batch, features());
            wrong = beyond_bound(state.batch());
        } catch (const BadInput& error) {
            wrong = error.what();
        }
        if (!wrong.empty()) state.batch().clear();
        begin(state, kind, wrong);
        return Flight{state};
    }
    /// The same of a batch that has its own memory.
    template <class Id>
    Flight start(const JaggedBatch<Id>& batch, const SourceLocation& where = SourceLocation::current()) {
        return start(batch.view(), BatchKind::any, where);
    }
    /// With Ids<AtOwner>: starts the lookup of a batch with all ranks' samples, one rank's behind the other's, and of
    /// the features that this rank is given (`given_features`). Collective: all ranks start as many, also where none of
    /// the samples are theirs, and give the same `samples`. The result is that of this rank's samples.
    /// \param samples  (rank of the group): how many are whose
    /// \throws BadInput on this rank for layers whose ranks have the ids of their own samples
    template <class Id>
    Flight start(const JaggedView<Id>& batch, std::span<const std::int64_t> samples,
                 const SourceLocation& where = SourceLocation::current()) {
        if (!blueprint_.traits().at_owner)
            throw BadInput{
                "this layer's ranks have the ids of their own samples: give it these alone, or the layer "
                "Ids<AtOwner>"};
        make_room(BatchKind::any, where);
        detail::LayerState& state = free_state(BatchKind::any);
        state.flight.called_from(where);
        std::string wrong;
        begin_shares(state);
        try {
            state.batch().bind(batch, given_names_);
            state.share_out(given_, samples);
        } catch (const BadInput& error) {
            wrong = error.what();
        }
        begin(state, BatchKind::any, check_shares(state, wrong));
        return Flight{state};
    }
    /// The features whose ids this rank is given, by number: all, or with Ids<AtOwner> those that look up rows which
    /// are here.
    [[nodiscard]] const std::vector<int>& given_features() const noexcept { return given_; }

    /// The result of a flight's lookup; valid until the flight ends. Collective.
    /// \throws BadInput on every rank when any rank's batch is wrong; the flight is over then. Where ranks may be apart
    ///         and rows are frozen, on the rank whose batch is wrong alone
    /// \throws BadInput on this rank for a flight that has ended, or is another layer's, or where ranks may be apart
    ///         is not the oldest
    LayerVectors forward(Flight& flight, const SourceLocation& where = SourceLocation::current());

    /// Learns from a flight and ends it. `gradient` has the form of the result and is free afterwards. Collective.
    /// \throws BadInput on every rank when any rank's gradient has the wrong shape, at step 2^53, or of a frozen layer;
    ///         no row has changed
    void backward(Flight flight, const LayerVectors& gradient, const SourceLocation& where = SourceLocation::current());

    /// With LayerOptions::clip_norm: squares of other gradients, summed over all ranks, that count in the norm of the
    /// next `backward`; several calls add up. Not collective. \throws BadInput where there is no such clipping
    void clip_with(const ExactSum& squares);
    /// With it: the norm that the last `backward` found, and what all gradients are to be multiplied by.
    [[nodiscard]] double gradient_norm() const noexcept { return gradient_norm_; }
    [[nodiscard]] float gradient_scale() const noexcept { return gradient_scale_; }

    /// The short form, one batch from start to end: the result is valid until the next call. Collective.
    template <class Id>
    LayerVectors forward(const JaggedView<Id>& batch, const SourceLocation& where = SourceLocation::current()) {
        current_.end();
        current_ = start(batch, where);
        return forward(current_, where);
    }
    /// The same of a batch that has its own memory.
    template <class Id>
    LayerVectors forward(const JaggedBatch<Id>& batch, const SourceLocation& at = SourceLocation::current()) {
        return forward(batch.view(), at);
    }
    /// With Ids<AtOwner>: the same of a batch with all ranks' samples; see `start`. Collective.
    template <class Id>
    LayerVectors forward(const JaggedView<Id>& batch, std::span<const std::int64_t> samples,
                         const SourceLocation& where = SourceLocation::current()) {
        current_.end();
        current_ = start(batch, samples, where);
        return forward(current_, where);
    }
    /// Learns from the batch of the last `forward(batch)`. Collective.
    void backward(const LayerVectors& gradient, const SourceLocation& where = SourceLocation::current());

    /// With Collective<BoundedLag<>>: completes all flights of this rank, whose results `forward` still gives, and
    /// answers others until all have come here, too. Before ranks part, and before a layer ends. Collective. Of other
    /// layers there is nothing to do.
    void drain(const SourceLocation& where = SourceLocation::current());
    /// With it: how many batches another rank was ahead of this one at most, as this one saw at its starts. Not
    /// collective.
    [[nodiscard]] std::int64_t most_ahead() const;

    /// Checks a batch eagerly: all that forward would find wrong is found before anything is looked up. Collective; one
    /// message a peer.
    /// \throws BadInput on every rank when any rank's batch is wrong
    template <class Id>
    void validate(const JaggedView<Id>& batch, const SourceLocation& where = SourceLocation::current()) {
        std::string wrong;
        try {
            steps::BatchView bound;
            bound.bind(batch, given_names_);
            bound.spread(given_, features().size());
            blueprint_.check(bound);
            if (!blueprint_.traits().at_owner) wrong = beyond_bound(bound);
        } catch (const BadInput& error) {
            wrong = error.what();
        }
        agree_on(wrong, where);
    }

    /// What a training step on these batches, one a rank, moves. Not collective: a pure function, the same on all
    /// ranks. With a tally, adds what the step's buffers need on this rank: one tally a flight that is under way at a
    /// time, over all batches that it carries, says what memory().dynamic_bytes() grows to.
    /// Where copies are synced, a sync tally carries what the steps before have touched.
    /// \throws BadInput when a batch does not fit the layer
    template <class Id>
    [[nodiscard]] LayerCost predict_cost(const std::vector<JaggedView<Id>>& batches, MemoryTally* tally = nullptr,
                                         BatchKind kind = BatchKind::any, SyncTally* sync = nullptr) const {
        return blueprint_.predict_cost(batches, tally, comm_.rank(), kind, sync);
    }

    /// Makes the copies of every row in all groups equal, where steps were made since they were: each weight and moment
    /// becomes the mean over its copies. Before a lookup whose result should be that of one model, as in a test, and
    /// before tables are read or saved. Collective. \returns whether any step was made since the last sync
    bool sync(const SourceLocation& where = SourceLocation::current());
    /// Goes on with the sync that `backward` has begun: completes the round under way and sends the next, so that other
    /// work goes on meanwhile. `forward` and `sync` complete what is left. Collective. \returns whether there is more
    bool advance_sync();

    /// Bytes of what lives as long as the layer on rank `rank`: tables, moments and modules, and marks of rows to sync.
    /// Not collective: a pure function, the same on all ranks.
    [[nodiscard]] std::int64_t predict_static_bytes(int rank) const { return blueprint_.static_bytes(rank); }
    /// The same of one of these.
    [[nodiscard]] std::int64_t predict_static_bytes(int rank, MemoryPart part) const {
        return blueprint_.static_bytes(rank, part);
    }

    /// Calls `use(ShardView, ShardRowNumbers)` for every shard that lives on this rank: its memory, and which rows of
    /// the table it has. Both may be kept as long as the layer. Not collective. \throws BadInput while a sync of copies
    /// is under way
    template <class Use>
    void for_each_shard(Use use) {
        check_at_rest();
        visit_shards(use);
    }

    /// The tables, as they were given.
    [[nodiscard]] const std::vector<TableConfig>& tables() const noexcept { return blueprint_.tables(); }
    /// The names of all features, in the order of batches and results.
    [[nodiscard]] const std::vector<std::string>& features() const noexcept { return blueprint_.features().names; }
    /// Columns of a pooled result.
    [[nodiscard]] int width() const noexcept { return blueprint_.features().width; }
    /// Columns of each result: one a feature, or with modules one a tower.
    [[nodiscard]] const std::vector<int>& widths() const noexcept { return blueprint_.features().dims; }
    /// The towers of a layer with modules; of others, none.
    [[nodiscard]] const TowerModules& towers() const noexcept { return towers_; }
    /// The module of this rank's tower.
    /// \throws BadInput where the layer's towers have no module of type M
    template <class M>
    [[nodiscard]] M& module() {
        if (auto* found = dynamic_cast<detail::TowerModuleOf<M>*>(towers_.module.get())) return found->held;
        throw BadInput{no_module(M::name)};
    }
    /// The constants of all towers' modules.
    /// \throws BadInput where the layer's towers have no module of type M
    template <class M>
    [[nodiscard]] const typename M::Config& module_config() const {
        if (const auto* found = dynamic_cast<const detail::ModulePolicyOf<M>*>(towers_.policy.get()))
            return found->config();
        throw BadInput{no_module(M::name)};
    }
    /// True when results are one matrix, without sequences.
    [[nodiscard]] bool is_pooled() const noexcept { return blueprint_.features().sequences == 0; }
    /// The layer on paper: where its rows are, and what its parts are to move.
    [[nodiscard]] const LayerBlueprint& blueprint() const noexcept { return blueprint_; }
    /// That the tables are placed on, with the layer's towers: the communicator's, or that of this rank's group.
    [[nodiscard]] const Topology& topology() const noexcept { return blueprint_.topology(); }
    /// The replica groups, and which one this rank is in.
    [[nodiscard]] const ReplicaGroups& groups() const noexcept { return blueprint_.groups().ranks; }
    /// The plan and its adjoint, as describe() takes them.
    [[nodiscard]] const Program& program() const noexcept { return blueprint_.traits().program; }
    /// Of a sync, which runs among the copies of a rank's shards; without segments where there is one group.
    [[nodiscard]] const Program& sync_program() const noexcept { return blueprint_.groups().sync; }
    /// Names of the plans side by side, one a sharding policy, as describe() takes them.
    [[nodiscard]] std::vector<std::string> branches() const { return blueprint_.branches(); }
    /// The optimizer's name.
    [[nodiscard]] std::string optimizer() const { return blueprint_.traits().rule->name(); }
    /// False of a frozen layer.
    [[nodiscard]] bool learns() const { return blueprint_.traits().rule->learns(); }
    /// How many floats of state the optimizer keeps for each element.
    [[nodiscard]] int element_slots() const noexcept { return blueprint_.traits().rule->element_slots(); }
    /// How many floats of state the optimizer keeps for each row.
    [[nodiscard]] int row_slots() const noexcept { return blueprint_.traits().rule->row_slots(); }
    /// With Tiered<>: how many ids this rank's batches have looked up in each tier, since the layer was made.
    [[nodiscard]] const RowCounts& row_counts() const noexcept { return row_counts_; }
    /// With Requests<Coalesced>: ids of this rank's batches, and how many were distinct in their batch and table.
    [[nodiscard]] const RequestCounts& request_counts() const noexcept { return request_counts_; }
    /// (plan, as branches() names them): rows that this rank's tables have looked up for all ranks' batches.
    [[nodiscard]] std::vector<std::int64_t> looked_up_rows() const;
    /// (plan, as branches() names them): payload that this rank has packed into messages, in bytes.
    [[nodiscard]] std::vector<std::int64_t> sent_payload() const;
    /// The payload that this rank has sent in syncs of copies.
    [[nodiscard]] std::int64_t synced_payload() const;
    /// The account that counts every buffer of the layer.
    [[nodiscard]] MemoryAccount& memory() noexcept { return *options_.memory; }
    /// Training steps so far; settable for a layer that goes on from a checkpoint.
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    /// Copies of replica groups are taken for equal, as those of a checkpoint are: `sync` has nothing to do then.
    /// \throws BadInput for a number that is none of steps
    void set_steps(std::int64_t steps);

  private:
    static constexpr std::int64_t most_steps = std::int64_t{1} << 53;  // what a double counts exactly

    /// What flights of batches of one kind share.
    struct Way {
        std::optional<Itinerary> itinerary;
        States states;
        Digest digest;                      // of all that ranks have to agree on, but the number of steps
        std::vector<std::int64_t> payload;  // (exchange of the program)
        std::vector<std::unique_ptr<detail::LayerState>> flights;
    };

    friend LayerShards shards_of(LayerBase& layer);

    template <class Use>
    void visit_shards(Use use) {
        for (std::size_t part = 0; part < stores_.size(); ++part)
            for (std::size_t slot = 0; slot < stores_[part].shards().size(); ++slot)
                use(view_of(part, slot), rows_of(part, slot));
    }
    void bind(States& states, BatchKind kind, std::vector<steps::LookedUpRows>& looked_up, RowCounts& rows,
              RequestCounts& requests);
    void make_lag(const Itinerary& way);
    void make_room(BatchKind kind, const SourceLocation& where);
    void take_warm_memory(detail::LayerState& state);
    void begin_shares(detail::LayerState& state) const;
    [[nodiscard]] std::string check_shares(detail::LayerState& state, const std::string& wrong) const;
    [[nodiscard]] std::string beyond_bound(const steps::BatchView& batch) const;
    [[nodiscard]] std::uint16_t digest_now(BatchKind kind) const;
    [[nodiscard]] std::vector<Fact> facts(BatchKind kind) const;
    [[nodiscard]] detail::LayerState* oldest();
    void check_turn(const detail::LayerState& state);
    void finish(detail::LayerState& state, const SourceLocation& where);
    [[nodiscard]] Way& way_of(BatchKind kind) { return ways_[static_cast<std::size_t>(kind)]; }
    void clip_by_norm(detail::LayerState& state, const ExactSum& others, const SourceLocation& where);
    void make_stores();
    void make_way(BatchKind kind);
    detail::LayerState& free_state(BatchKind kind);
    void begin(detail::LayerState& state, BatchKind kind, const std::string& wrong);
    [[nodiscard]] detail::LayerState& state_of(Flight& flight, const char* what) const;
    [[nodiscard]] std::string no_module(const std::string& name) const;
    void agree_on(const std::string& wrong, const SourceLocation& where);
    void finish_sync();
    void start_sync(const SourceLocation& where);
    void check_at_rest() const;
    [[nodiscard]] ShardView view_of(std::size_t part, std::size_t slot);
    [[nodiscard]] ShardRowNumbers rows_of(std::size_t part, std::size_t slot) const;

    CommunicatorRef comm_;
    LayerOptions options_;
    std::unique_ptr<MemoryAccount> own_memory_;
    LayerBlueprint blueprint_;
    int index_;               // of this rank in its group
    std::vector<int> given_;  // numbers of the features whose ids this rank is given
    std::vector<std::string> given_names_;
    TowerModules towers_;              // with this rank's module
    int enrolled_ = 0;                 // number of the layer on its communicator
    Digest digest_;                    // of all that ranks have to agree on, but programs and the number of steps
    std::vector<HeldShards> held_;     // (part)
    std::vector<Store> stores_;        // (part)
    std::vector<TouchedMarks> marks_;  // (part)
    steps::WorkMemory work_;
    TableRules rules_;
    ExactSum other_squares_;  // of the next backward
    double gradient_norm_ = 0.0;
    float gradient_scale_ = 1.0F;
    RowCounts row_counts_;
    RequestCounts request_counts_;
    std::vector<steps::LookedUpRows> looked_up_;  // (part)
    std::int64_t steps_ = 0;
    std::uint32_t flights_ = 0;
    std::array<Way, 2> ways_;  // (kind)
    struct Served {            // for other ranks, where flights have halves
        States states;
        std::vector<steps::LookedUpRows> looked_up;  // (part)
        RowCounts row_counts;
        RequestCounts request_counts;
        mutable std::vector<std::int64_t> payload;  // (exchange of the program), added to by whoever answers
    } served_;
    Flight current_;  // of `forward(batch)`
    std::unique_ptr<detail::LayerLag> lag_;
    std::int64_t synced_at_ = 0;                // step
    std::vector<std::int64_t> synced_payload_;  // (exchange of the sync)
    std::optional<detail::ReplicaSync> sync_;
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/runtime/layer_base.ipp"
#include "shardwise/embedding/runtime/layer_base_clipping.ipp"
#include "shardwise/embedding/runtime/layer_base_lag.ipp"
#endif
