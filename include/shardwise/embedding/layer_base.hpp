// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/core/source_location.hpp"
#include "shardwise/embedding/check_ids.hpp"
#include "shardwise/embedding/layer_blueprint.hpp"
#include "shardwise/embedding/layer_cost.hpp"
#include "shardwise/embedding/layer_state.hpp"
#include "shardwise/embedding/layer_towers.hpp"
#include "shardwise/embedding/layer_traits.hpp"
#include "shardwise/embedding/store.hpp"
#include "shardwise/optimizer/learning_rate.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/sharding/towers.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Embedding tables over all ranks of a communicator, their policies forgotten: all of a layer that is compiled once.

namespace shardwise::inline SHARDWISE_ABI {

/// A shard of a table on this rank, as checkpoints and tests see it.
struct ShardView {
    int table = 0;  ///< number in the layer
    std::int64_t rows = 0;
    int first_column = 0;
    int dim = 0;  ///< columns of the shard
    bool replicated = false;
    float* weights = nullptr;        ///< (rows, dim)
    float* element_state = nullptr;  ///< (rows, element slots, dim)
    float* row_state = nullptr;      ///< (rows, row slots)
};

/// Which rows of its table a shard has: rows(local) is the table's row in the shard's row `local`.
class ShardRowNumbers {
  public:
    ShardRowNumbers(const ShardingMaps& maps, int shard, const TableShape& table)
        : row_{maps.row}, shard_{shard}, table_{table} {}
    [[nodiscard]] std::int64_t operator()(std::int64_t local) const {
        return row_({.shard = shard_, .local = local}, table_);
    }

  private:
    std::int64_t (*row_)(const RowPlace&, const TableShape&);
    int shard_;
    TableShape table_;
};

/// Run-time choices of a layer, besides its tables and the constants of its optimizer.
struct LayerOptions {
    LearningRate learning_rate = {};  ///< by step
    std::uint64_t seed = 1;           ///< of the initial weights
    /// Which tables are placed together, each tower on its part of the hosts. None given: on all hosts, but with
    /// Collective<Hierarchical> in the communicator's towers, one a host unless it says otherwise, as deal_tables says
    /// (shardings by load, such as Col<4>, without a module: blocks of a table in whichever towers have least to do).
    Towers towers = {};
    MemoryAccount* memory = nullptr;  ///< counts every buffer of the layer; null: an account of the layer's own
    Tracer* tracer = nullptr;         ///< null: no spans
};

/// An EmbeddingLayer whose policies are forgotten: what a program holds that picks among compositions at run time.
///
/// Every member that takes a batch or a gradient is collective: all ranks call it in the same order, with batches of
/// any size, also empty. One instance a rank; not thread safe.
class LayerBase {
  public:
    using Flight = LayerFlight;

    LayerBase(const LayerBase&) = delete;
    LayerBase& operator=(const LayerBase&) = delete;
    /// Ends the flights that are under way.
    virtual ~LayerBase() {
        for (auto& state : states_)
            if (state->handle != nullptr) static_cast<void>(state->handle->release());
    }

    /// Sends the ids of a batch on their way and returns without waiting. The batch is free once this returns. Flights
    /// of one layer are started, looked up and learnt from in one order on all ranks. Collective. One message a peer.
    template <class Id>
    Flight start(const JaggedView<Id>& batch, const SourceLocation& where = SourceLocation::current()) {
        detail::LayerState& state = free_state();
        state.core.called_from(where);
        std::string wrong;
        try {
            state.batch.bind(batch, features());
        } catch (const BadInput& error) {
            state.batch.clear();
            wrong = error.what();
        }
        begin(state, wrong);
        return Flight{state};
    }

    /// The result of a flight's lookup; valid until the flight ends. Collective.
    /// \throws BadInput on every rank when any rank's batch is wrong; the flight is over then
    /// \throws BadInput on this rank for a flight that has ended, or is another layer's
    LayerVectors forward(Flight& flight, const SourceLocation& where = SourceLocation::current()) {
        detail::LayerState& state = state_of(flight, "forward");
        state.core.called_from(where);
        try {
            state.core.finish_forward();
        } catch (...) {
            static_cast<void>(flight.release());
            throw;
        }
        state.looked_up = true;
        return state.vectors();
    }

    /// Learns from a flight and ends it. `gradient` has the form of the result and is free afterwards. Collective.
    /// \throws BadInput on every rank when any rank's gradient has the wrong shape, or at step 2^53; no row has changed
    void backward(Flight flight, const LayerVectors& gradient,
                  const SourceLocation& where = SourceLocation::current()) {
        detail::LayerState& state = state_of(flight, "backward");
        state.core.called_from(where);
        if (!state.looked_up)
            throw BadInput{
                "backward of a flight that was not looked up: call forward first, and backward once a flight"};
        if (steps_ >= most_steps)  // set_steps takes every number that a checkpoint of a layer may have
            throw BadInput{"this layer is at step " + std::to_string(steps_) +
                           ", and counts no further: give set_steps a smaller number"};
        static_cast<void>(flight.release());
        state.bind_gradient(gradient);
        step_.step = steps_ + 1;
        step_.learning_rate = options_.learning_rate.at(step_.step);
        state.core.finish_backward();
        ++steps_;
    }

    /// Checks a batch eagerly: all that forward would find wrong is found before anything is looked up. Collective; one
    /// message a peer.
    /// \throws BadInput on every rank when any rank's batch is wrong
    template <class Id>
    void validate(const JaggedView<Id>& batch, const SourceLocation& where = SourceLocation::current()) {
        std::string wrong;
        try {
            BatchView bound;
            bound.bind(batch, features());
            check_ids(placements(), bound, traits().pooled);
        } catch (const BadInput& error) {
            wrong = "rank " + std::to_string(comm_.rank()) + ": " + error.what();
        }
        agree_on_input(comm_, wrong, where);
    }

    /// What a training step on these batches, one a rank, moves. Not collective: a pure function, the same on all
    /// ranks. With a tally, adds what the step's buffers need on this rank: one tally a flight that is under way at a
    /// time, over all batches that it carries, says what memory().dynamic_bytes() grows to.
    /// \throws BadInput when a batch does not fit the layer
    template <class Id>
    [[nodiscard]] LayerCost predict_cost(const std::vector<JaggedView<Id>>& batches,
                                         MemoryTally* tally = nullptr) const {
        return blueprint_.predict_cost(batches, tally, comm_.rank());
    }

    /// Bytes of tables, moments and modules on rank `rank`. Not collective: a pure function, the same on all ranks.
    [[nodiscard]] std::int64_t predict_static_bytes(int rank) const { return blueprint_.static_bytes(rank); }

    /// Every shard that lives on this rank. Not collective. `use(ShardView, ShardRowNumbers)`; both may be kept.
    template <class Use>
    void for_each_shard(Use use) {
        for (std::size_t branch = 0; branch < placements().size(); ++branch) {
            const Placement& placement = placements()[branch];
            for (ShardStore& shard : stores_[branch].shards()) {
                const TablePlacement& table = placement.tables[static_cast<std::size_t>(shard.table)];
                use(ShardView{.table = table.table,
                              .rows = shard.rows,
                              .first_column = table.shards[static_cast<std::size_t>(shard.shard)].columns.first,
                              .dim = shard.dim,
                              .replicated = placement.replicated,
                              .weights = shard.weights.data(),
                              .element_state = shard.element_state.data(),
                              .row_state = shard.row_state.data()},
                    ShardRowNumbers{traits().shardings[branch], shard.shard, table.shape});
            }
        }
    }

    [[nodiscard]] const std::vector<TableConfig>& tables() const noexcept { return blueprint_.tables(); }
    [[nodiscard]] const std::vector<std::string>& features() const noexcept { return blueprint_.features().names; }
    /// Columns of a pooled result, and of each of its parts: one a feature, or with modules one a tower.
    [[nodiscard]] int width() const noexcept { return blueprint_.features().width; }
    [[nodiscard]] const std::vector<int>& widths() const noexcept { return blueprint_.features().dims; }
    /// The towers of a layer with modules; of others, none.
    [[nodiscard]] const LayerTowers& towers() const noexcept { return towers_; }
    /// True when results are one matrix, false when they are one a feature.
    [[nodiscard]] bool is_pooled() const noexcept { return traits().pooled; }
    /// The communicator's, with the layer's towers.
    [[nodiscard]] const Topology& topology() const noexcept { return blueprint_.topology(); }
    [[nodiscard]] const Program& program() const noexcept { return traits().program; }
    /// Names of the sharding policies: of the branches of a Mixed layer, as describe() takes them.
    [[nodiscard]] std::vector<std::string> branches() const { return blueprint_.branches(); }
    /// The optimizer's name, and how many floats of state it keeps an element and a row.
    [[nodiscard]] const std::string& optimizer() const noexcept { return traits().optimizer; }
    [[nodiscard]] int element_slots() const noexcept { return traits().element_slots; }
    [[nodiscard]] int row_slots() const noexcept { return traits().row_slots; }
    [[nodiscard]] MemoryAccount& memory() noexcept { return *options_.memory; }
    /// Training steps so far; settable for a layer that goes on from a checkpoint.
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    /// \throws BadInput for a number that is none of steps
    void set_steps(std::int64_t steps) {
        if (steps < 0 || steps > most_steps)
            throw BadInput{std::to_string(steps) + " training steps: give a number from 0 to " +
                           std::to_string(most_steps)};
        steps_ = steps;
    }

  protected:
    LayerBase(CommunicatorRef comm, std::vector<TableConfig> tables, LayerTraits traits, const LayerOptions& options)
        : comm_{comm},
          blueprint_{comm.topology(), std::move(tables), std::move(traits), options.towers},
          options_{options},
          towers_{blueprint_.towers()},
          digest_{blueprint_.digest()} {
        options_.learning_rate.check();
        if (options_.memory == nullptr) {
            own_memory_ = std::make_unique<MemoryAccount>();
            options_.memory = own_memory_.get();
        }
        digest_.add(static_cast<std::int64_t>(options_.seed));
        options_.learning_rate.add_to(digest_);
        make_stores();
    }

  private:
    static constexpr std::int64_t most_steps = std::int64_t{1} << 53;  // what a double counts exactly

    [[nodiscard]] const LayerTraits& traits() const noexcept { return blueprint_.traits(); }
    [[nodiscard]] const std::vector<Placement>& placements() const noexcept { return blueprint_.placements(); }
    /// Tables, moments, and the module of this rank's tower.
    void make_stores() {
        const bool has_module = blueprint_.has_modules();
        try {
            if (has_module)
                towers_.module = traits().module.make(
                    towers_.config, towers_.shapes[static_cast<std::size_t>(topology().tower_of(comm_.rank()))],
                    options_.seed, *options_.memory);
            for (const Placement& placement : placements())
                stores_.emplace_back(placement, comm_.rank(), traits().element_slots, traits().row_slots,
                                     options_.memory->tables());
        } catch (const std::bad_alloc&) {
            throw BadInput{std::string{has_module ? "the tables, moments and module" : "the tables and moments"} +
                           " on rank " + std::to_string(comm_.rank()) + " take " +
                           std::to_string(predict_static_bytes(comm_.rank())) +
                           " bytes, and there is not as much memory: give smaller tables, or more ranks"};
        }
        for (std::size_t branch = 0; branch < placements().size(); ++branch)
            traits().shardings[branch].initialize(stores_[branch], placements()[branch], options_.seed);
    }

    detail::LayerState& free_state() {
        for (auto& state : states_)
            if (!state->core.active()) return *state;
        std::pmr::memory_resource& memory = options_.memory->work();
        states_.push_back(
            std::make_unique<detail::LayerState>(blueprint_.features(), traits().program, comm_, topology(), memory));
        detail::LayerState& state = *states_.back();
        for (std::size_t i = 0; i < placements().size(); ++i)
            state.bind(traits().mixed ? BranchPath{i} : BranchPath{}, placements()[i], stores_[i], memory,
                       traits().rule.get(), step_, towers_);
        state.core.trace(options_.tracer);
        return state;
    }
    void begin(detail::LayerState& state, const std::string& wrong) {
        state.looked_up = false;
        state.allocate_output();
        Digest digest = digest_;
        state.core.prepare(++flights_, digest.add(steps_).bits16());
        if (!wrong.empty()) state.core.env().error.note(FlightError::bad_input, wrong);
        state.core.start();
    }
    detail::LayerState& state_of(Flight& flight, const char* what) const {
        if (!flight) throw BadInput{std::string{what} + " of a flight that has ended: start a new one for each batch"};
        if (flight.state_->features != &blueprint_.features())
            throw BadInput{std::string{what} + " of a flight that another layer started"};
        return *flight.state_;
    }

    CommunicatorRef comm_;
    LayerBlueprint blueprint_;
    LayerOptions options_;
    std::unique_ptr<MemoryAccount> own_memory_;
    LayerTowers towers_;         // with this rank's module
    Digest digest_;              // of all that ranks have to agree on, but the number of steps
    std::vector<Store> stores_;  // (branch)
    UpdateStep step_;
    std::int64_t steps_ = 0;
    std::uint32_t flights_ = 0;
    std::vector<std::unique_ptr<detail::LayerState>> states_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
