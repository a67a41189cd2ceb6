// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/core/source_location.hpp"
#include "shardwise/embedding/check_ids.hpp"
#include "shardwise/embedding/layer_cost.hpp"
#include "shardwise/embedding/layer_state.hpp"
#include "shardwise/embedding/layer_traits.hpp"
#include "shardwise/embedding/memory.hpp"
#include "shardwise/embedding/store.hpp"
#include "shardwise/embedding/tower_module.hpp"
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
    /// Collective<Hierarchical> in the communicator's towers, one a host unless it says otherwise, as deal_tables says.
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
            state.batch.bind(batch, features_.names);
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
    /// \throws BadInput on every rank when any rank's gradient has the wrong shape; no row has changed
    void backward(Flight flight, const LayerVectors& gradient,
                  const SourceLocation& where = SourceLocation::current()) {
        detail::LayerState& state = state_of(flight, "backward");
        state.core.called_from(where);
        if (!state.looked_up)
            throw BadInput{
                "backward of a flight that was not looked up: call forward first, and backward once a flight"};
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
            bound.bind(batch, features_.names);
            check_ids(placements_, bound, traits_.pooled);
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
        if (batches.size() != static_cast<std::size_t>(topology().ranks()))
            throw BadInput{"predict_cost is given " + std::to_string(batches.size()) + " batches for " +
                           std::to_string(topology().ranks()) + " ranks: give one a rank"};
        std::vector<BatchView> bound(batches.size());
        for (std::size_t i = 0; i < batches.size(); ++i)
            bound[i].bind(batches[i], features_.names);
        return predict_bound(bound, tally);
    }

    /// Bytes of tables, moments and modules on rank `rank`. Not collective: a pure function, the same on all ranks.
    [[nodiscard]] std::int64_t predict_static_bytes(int rank) const {
        std::int64_t bytes = 0;
        for (const Placement& placement : placements_)
            bytes += static_bytes(placement, rank, traits_.element_slots, traits_.row_slots);
        if (has_modules()) bytes += traits_.module.static_bytes(towers_.config, towers_.shapes[tower_of(rank)]);
        return bytes;
    }

    /// Every shard that lives on this rank. Not collective. `use(ShardView, ShardRowNumbers)`; both may be kept.
    template <class Use>
    void for_each_shard(Use use) {
        for (std::size_t branch = 0; branch < placements_.size(); ++branch) {
            const Placement& placement = placements_[branch];
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
                    ShardRowNumbers{traits_.shardings[branch], shard.shard, table.shape});
            }
        }
    }

    [[nodiscard]] const std::vector<TableConfig>& tables() const noexcept { return tables_; }
    [[nodiscard]] const std::vector<std::string>& features() const noexcept { return features_.names; }
    /// Columns of a pooled result, and of each of its parts: one a feature, or with modules one a tower.
    [[nodiscard]] int width() const noexcept { return features_.width; }
    [[nodiscard]] const std::vector<int>& widths() const noexcept { return features_.dims; }
    /// The towers of a layer with modules; of others, none.
    [[nodiscard]] const LayerTowers& towers() const noexcept { return towers_; }
    /// True when results are one matrix, false when they are one a feature.
    [[nodiscard]] bool is_pooled() const noexcept { return traits_.pooled; }
    /// The communicator's, with the layer's towers.
    [[nodiscard]] const Topology& topology() const noexcept { return topology_; }
    [[nodiscard]] const Program& program() const noexcept { return traits_.program; }
    /// Names of the sharding policies: of the branches of a Mixed layer, as describe() takes them.
    [[nodiscard]] std::vector<std::string> branches() const {
        std::vector<std::string> names;
        for (const ShardingMaps& maps : traits_.shardings)
            names.push_back(maps.name);
        return names;
    }
    /// The optimizer's name, and how many floats of state it keeps an element and a row.
    [[nodiscard]] const std::string& optimizer() const noexcept { return traits_.optimizer; }
    [[nodiscard]] int element_slots() const noexcept { return traits_.element_slots; }
    [[nodiscard]] int row_slots() const noexcept { return traits_.row_slots; }
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
          topology_{comm.topology()},
          tables_{std::move(tables)},
          traits_{std::move(traits)},
          options_{options} {
        options_.learning_rate.check();
        if (options_.memory == nullptr) {
            own_memory_ = std::make_unique<MemoryAccount>();
            options_.memory = own_memory_.get();
        }
        name_features();
        if (traits_.hierarchical && options_.towers.empty()) options_.towers = deal_tables(tables_, topology_.towers());
        std::vector<int> towers;
        if (!options_.towers.empty()) {
            topology_ = with_towers(topology_, static_cast<int>(options_.towers.size()));
            towers = tower_of_tables(tables_, options_.towers);
        }
        for (const ShardingMaps& maps : traits_.shardings)
            placements_.push_back(maps.place(topology_, tables_, tables_of(maps.name), towers));
        if (!towers.empty() && std::all_of(placements_.begin(), placements_.end(),
                                           [](const Placement& placement) { return placement.replicated; }))
            throw BadInput{
                "towers for a layer whose tables are all on every rank: they place nothing; leave them away"};
        shape_towers(towers);
        make_stores();
        take_digest();
    }

  private:
    static constexpr std::int64_t most_steps = std::int64_t{1} << 53;  // what a double counts exactly

    void name_features() {
        features_.pooled = traits_.pooled;
        for (std::size_t t = 0; t < tables_.size(); ++t) {
            const TableConfig& table = tables_[t];
            if (table.name.empty()) throw BadInput{"table " + std::to_string(t) + " has no name: give every table one"};
            for (std::size_t other = 0; other < t; ++other)
                if (tables_[other].name == table.name)
                    throw BadInput{"table '" + table.name + "' stands twice: give every table one name"};
            for (const std::string& feature : features_of(table)) {
                if (std::find(features_.names.begin(), features_.names.end(), feature) != features_.names.end())
                    throw BadInput{"feature '" + feature + "' stands twice in the tables: give every feature one name"};
                features_.names.push_back(feature);
                features_.dims.push_back(table.dim);
                features_.width += table.dim;
            }
        }
    }
    [[nodiscard]] bool has_modules() const noexcept { return traits_.module.make != nullptr; }
    [[nodiscard]] std::size_t tower_of(int rank) const { return static_cast<std::size_t>(topology_.tower_of(rank)); }
    /// \param towers  (table)
    void shape_towers(const std::vector<int>& towers) {
        if (!has_modules()) return;
        towers_.config = traits_.module.config.get();
        for (int t = 0; t < topology_.towers(); ++t) {
            TowerShape& shape = towers_.shapes.emplace_back();
            shape.tower = t;
            for (std::size_t table = 0; table < tables_.size(); ++table)
                if (towers[table] == t)
                    shape.dims.insert(shape.dims.end(), features_of(tables_[table]).size(), tables_[table].dim);
            if (shape.dims.empty())
                throw BadInput{"tower " + std::to_string(t) + " of " + std::to_string(topology_.towers()) +
                               " has no feature, and a module has nothing to work on there: give every tower one"};
            towers_.outputs.push_back(traits_.module.outputs(towers_.config, shape));
        }
        features_.dims = towers_.outputs;
        const std::int64_t width = std::accumulate(towers_.outputs.begin(), towers_.outputs.end(), std::int64_t{0});
        if (width > std::numeric_limits<int>::max())
            throw BadInput{"the towers' modules have " + std::to_string(width) + " columns: 2147483647 at most"};
        features_.width = static_cast<int>(width);
    }
    /// Tables, moments, and the module of this rank's tower.
    void make_stores() {
        try {
            if (has_modules())
                towers_.module = traits_.module.make(towers_.config, towers_.shapes[tower_of(comm_.rank())],
                                                     options_.seed, *options_.memory);
            for (const Placement& placement : placements_)
                stores_.emplace_back(placement, comm_.rank(), traits_.element_slots, traits_.row_slots,
                                     options_.memory->tables());
        } catch (const std::bad_alloc&) {
            throw BadInput{std::string{has_modules() ? "the tables, moments and module" : "the tables and moments"} +
                           " on rank " + std::to_string(comm_.rank()) + " take " +
                           std::to_string(predict_static_bytes(comm_.rank())) +
                           " bytes, and there is not as much memory: give smaller tables, or more ranks"};
        }
        for (std::size_t branch = 0; branch < placements_.size(); ++branch)
            traits_.shardings[branch].initialize(stores_[branch], placements_[branch], options_.seed);
    }
    /// The numbers of the tables that the policy `sharding` places. \throws BadInput for a name that is no policy here
    [[nodiscard]] std::vector<int> tables_of(const std::string& sharding) const {
        const std::vector<std::string> known = branches();
        if (std::count(known.begin(), known.end(), sharding) > 1)
            throw BadInput{"two policies of this Mixed layer are called '" + sharding +
                           "', and tables choose by name: give each policy a name of its own"};
        std::vector<int> numbers;
        for (std::size_t t = 0; t < tables_.size(); ++t) {
            const std::string& asked = tables_[t].sharding;
            const bool any = asked.empty() && !traits_.mixed;
            if (!any && std::find(known.begin(), known.end(), asked) == known.end()) {
                std::string text = "table '" + tables_[t].name + "' asks for sharding '" + asked + "'; this layer has ";
                for (const std::string& name : known)
                    text += name + (name == known.back() ? "" : ", ");
                if (!traits_.mixed) text += " alone: leave it empty, or use Mixed";
                throw BadInput{text};
            }
            if (any || asked == sharding) numbers.push_back(static_cast<int>(t));
        }
        return numbers;
    }
    /// What all ranks must agree on, besides the plan and the number of steps.
    void take_digest() {
        Digest& digest = traits_.program.digest;
        for (const TableConfig& table : tables_) {
            digest.add(table.name).add(table.rows).add(std::int64_t{table.dim}).add(table.sharding);
            for (const std::string& feature : features_of(table))
                digest.add(feature);
        }
        for (const auto& tower : options_.towers)
            for (const std::string& feature : tower)
                digest.add(std::int64_t{&tower - options_.towers.data()}).add(feature);
        digest.add(std::int64_t{topology_.hosts_per_tower}).add(traits_.module.digest);
        digest.add(static_cast<std::int64_t>(options_.seed)).add(traits_.optimizer).add(traits_.rule_digest);
        options_.learning_rate.add_to(digest);
    }

    detail::LayerState& free_state() {
        for (auto& state : states_)
            if (!state->core.active()) return *state;
        std::pmr::memory_resource& memory = options_.memory->work();
        states_.push_back(std::make_unique<detail::LayerState>(features_, traits_.program, comm_, topology_, memory));
        detail::LayerState& state = *states_.back();
        for (std::size_t i = 0; i < placements_.size(); ++i)
            state.bind(traits_.mixed ? BranchPath{i} : BranchPath{}, placements_[i], stores_[i], memory,
                       traits_.rule.get(), step_, towers_);
        state.core.trace(options_.tracer);
        return state;
    }
    void begin(detail::LayerState& state, const std::string& wrong) {
        state.looked_up = false;
        state.allocate_output();
        Digest digest = traits_.program.digest;
        state.core.prepare(++flights_, digest.add(steps_).bits16());
        if (!wrong.empty()) state.core.env().error.note(FlightError::bad_input, wrong);
        state.core.start();
    }
    detail::LayerState& state_of(Flight& flight, const char* what) const {
        if (!flight) throw BadInput{std::string{what} + " of a flight that has ended: start a new one for each batch"};
        if (flight.state_->features != &features_)
            throw BadInput{std::string{what} + " of a flight that another layer started"};
        return *flight.state_;
    }
    [[nodiscard]] LayerCost predict_bound(const std::vector<BatchView>& batches, MemoryTally* tally) const {
        for (const BatchView& batch : batches)
            check_ids(placements_, batch, traits_.pooled);
        if (tally != nullptr) tally->begin_batch();
        LayerCost cost = detail::predict_layer(traits_.program, topology(), placements_, traits_.mixed, towers_,
                                               batches, tally, comm_.rank());
        if (tally != nullptr) {
            tally_messages(cost.segments, topology(), comm_.rank(), *tally);
            tally->need(4 * features_.output_elements(batches[static_cast<std::size_t>(comm_.rank())]));
        }
        return cost;
    }

    CommunicatorRef comm_;
    Topology topology_;
    std::vector<TableConfig> tables_;
    LayerTraits traits_;
    LayerOptions options_;
    std::unique_ptr<MemoryAccount> own_memory_;
    detail::LayerFeatures features_;
    LayerTowers towers_;
    std::vector<Placement> placements_;  // (branch)
    std::vector<Store> stores_;          // (branch)
    UpdateStep step_;
    std::int64_t steps_ = 0;
    std::uint32_t flights_ = 0;
    std::vector<std::unique_ptr<detail::LayerState>> states_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
