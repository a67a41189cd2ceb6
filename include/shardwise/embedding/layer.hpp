// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/memory.hpp"
#include "shardwise/embedding/plans.hpp"
#include "shardwise/embedding/store.hpp"
#include "shardwise/optimizer/learning_rate.hpp"
#include "shardwise/plan/cost.hpp"
#include "shardwise/plan/flight.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// Embedding tables over all ranks of a communicator: the type that users compose.

namespace shardwise::inline SHARDWISE_ABI {

/// Run-time choices of a layer.
template <class Rule>
struct LayerOptions {
    Rule rule = {};                   ///< the optimizer's constants
    LearningRate learning_rate = {};  ///< by step
    std::uint64_t seed = 1;           ///< of the initial weights
    MemoryAccount* memory = nullptr;  ///< counts every buffer of the layer; null: an account of the layer's own
    Tracer* tracer = nullptr;         ///< null: no spans
};

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

/// What one training step moves, predicted.
struct LayerCost {
    std::vector<SegmentCost> segments;
    TrafficMatrix forward;
    TrafficMatrix backward;
};

namespace detail {

/// The numbers of the tables that name `sharding`. \throws BadInput for a table that names none of `known`
inline std::vector<int> tables_that_ask_for(const std::string& sharding, const std::vector<TableConfig>& tables,
                                            const std::vector<std::string>& known) {
    std::vector<int> numbers;
    for (std::size_t t = 0; t < tables.size(); ++t) {
        if (std::find(known.begin(), known.end(), tables[t].sharding) == known.end()) {
            std::string all;
            for (const std::string& name : known)
                all += (all.empty() ? "" : ", ") + name;
            throw BadInput{"table '" + tables[t].name + "' asks for sharding '" + tables[t].sharding +
                           "'; this layer has " + all};
        }
        if (tables[t].sharding == sharding) numbers.push_back(static_cast<int>(t));
    }
    return numbers;
}

}  // namespace detail

/// Embedding tables, sharded by compile-time policies over the ranks of any communicator.
///
/// `forward` looks up a batch, `backward` routes the gradient to the rows and applies the fused update. Every member
/// that takes a batch or a gradient is collective: all ranks call it in the same order, with batches of any size, also
/// empty. One instance a rank; not thread safe. \tparam Policies  in any order: Sharding<> (Row), Collective<> (Flat),
/// Optimizer<> (RowwiseAdagrad<>), Pooling<> (Sum),
///                   Order<> (Tree), Wire<> (Fp32), Device<> (Host), Element<> (float)
template <class... Policies>
class EmbeddingLayer {
  public:
    using policies = LayerPolicies<Policies...>;
    using rule_type = typename policies::rule;
    using plan = PlanOf<policies>;
    using shardings = typename policies::shardings;
    using Options = LayerOptions<rule_type>;
    static constexpr bool pooled = policies::pooling::pooled;
    static_assert(std::is_same_v<FormAfter<Bags, plan>, Outputs>, "the plan of a layer leads from bags to outputs");

    /// Pooled: (samples, sum of the features' dims). Sequences: (ids, dim) a feature.
    using Output = std::conditional_t<pooled, MatrixView<const float>, std::span<const MatrixView<const float>>>;
    using Gradient = Output;

  private:
    using FrameType = Frame<Lanes, plan>;
    struct State {
        State(const Program& program, CommunicatorRef comm, MemoryAccount& memory)
            : core{program, &frame, comm, memory.work()}, buffer{memory.work()} {}
        FrameType frame;
        BatchView batch;
        std::vector<MatrixView<float>> output;
        std::vector<MatrixView<const float>> result;
        std::vector<MatrixView<const float>> gradient;
        FlightCore core;
        Buffer<float> buffer;
        bool looked_up = false;
    };

  public:
    /// A batch on its way: from start to the end of backward (or of the handle, when nothing is to be learnt from it).
    /// Belongs to its layer, which outlives it; destroying it before `forward` withdraws from the exchange and fails
    /// the other ranks.
    class [[nodiscard]] Flight {
      public:
        Flight() = default;
        Flight(Flight&& other) noexcept : state_{std::exchange(other.state_, nullptr)} {}
        Flight& operator=(Flight&& other) noexcept {
            Flight taken{std::move(other)};
            std::swap(state_, taken.state_);
            return *this;
        }
        Flight(const Flight&) = delete;
        Flight& operator=(const Flight&) = delete;
        ~Flight() {
            if (state_ != nullptr) state_->core.withdraw();
        }
        /// Completes what has arrived; never waits, starts nothing.
        void poll() {
            if (state_ != nullptr) state_->core.poll();
        }
        explicit operator bool() const noexcept { return state_ != nullptr; }

      private:
        friend EmbeddingLayer;
        explicit Flight(State* state) : state_{state} {}
        State* state_ = nullptr;
    };

    /// Places and initialises the tables. Not collective; every rank gives the same tables and options.
    /// \throws BadInput for tables that make no sense
    EmbeddingLayer(CommunicatorRef comm, std::vector<TableConfig> tables, Options options = {})
        : comm_{comm},
          tables_{std::move(tables)},
          options_{std::move(options)},
          program_{make_program<EmbeddingDomain, plan>()} {
        if (options_.memory == nullptr) {
            own_memory_ = std::make_unique<MemoryAccount>();
            options_.memory = own_memory_.get();
        }
        for (const TableConfig& table : tables_) {
            for (const std::string& feature : features_of(table)) {
                if (std::find(features_.begin(), features_.end(), feature) != features_.end())
                    throw BadInput{"feature '" + feature + "' stands twice in the tables: give every feature one name"};
                features_.push_back(feature);
                feature_dims_.push_back(table.dim);
                width_ += table.dim;
            }
        }
        boost::mp11::mp_for_each<boost::mp11::mp_transform<boost::mp11::mp_identity, shardings>>([&](auto identity) {
            using S = typename decltype(identity)::type;
            placements_.push_back(place_tables<S>(comm_.topology(), tables_, chosen<S>()));
        });
        std::size_t branch = 0;
        boost::mp11::mp_for_each<boost::mp11::mp_transform<boost::mp11::mp_identity, shardings>>([&](auto identity) {
            using S = typename decltype(identity)::type;
            stores_.emplace_back(placements_[branch], comm_.rank(), rule_type::element_slots, rule_type::row_slots,
                                 options_.memory->tables());
            initialize<S>(stores_.back(), placements_[branch], options_.seed);
            ++branch;
        });
    }
    EmbeddingLayer(const EmbeddingLayer&) = delete;
    EmbeddingLayer& operator=(const EmbeddingLayer&) = delete;

    /// Sends the ids of a batch on their way and returns without waiting. The batch is free once this returns. Flights
    /// of one layer are started, looked up and learnt from in one order on all ranks. Collective.
    template <class Id>
    Flight start(const JaggedView<Id>& batch) {
        State& state = free_state();
        state.looked_up = false;
        std::string wrong;
        try {
            state.batch.bind(batch, features_);
        } catch (const BadInput& error) {
            state.batch.clear();
            wrong = error.what();
        }
        allocate_output(state);
        state.core.prepare(++flights_);
        if (!wrong.empty()) state.core.env().error.note(FlightError::bad_input, wrong);
        state.core.start();
        return Flight{&state};
    }

    /// The result of a flight's lookup; valid until the flight ends. Collective.
    /// \throws BadInput on every rank when any rank's batch is wrong; the flight is over then
    /// \throws BadInput on this rank for a flight that has ended
    Output forward(Flight& flight) {
        if (!flight) throw BadInput{"forward of a flight that has ended: start a new one for each batch"};
        State& state = *flight.state_;
        try {
            state.core.finish_forward();
        } catch (...) {
            flight.state_ = nullptr;
            throw;
        }
        state.looked_up = true;
        return output_of(state);
    }

    /// Learns from a flight and ends it. `gradient` has the form of the output and is free afterwards. Collective.
    /// \throws BadInput on every rank when any rank's gradient has the wrong shape; no row has changed
    void backward(Flight flight, const Gradient& gradient) {
        if (!flight || !flight.state_->looked_up)
            throw BadInput{
                "backward of a flight that was not looked up: call forward first, and backward once a flight"};
        State& state = *std::exchange(flight.state_, nullptr);
        bind_gradient(state, gradient);
        step_.step = steps_ + 1;
        step_.learning_rate = options_.learning_rate.at(step_.step);
        state.core.finish_backward();
        ++steps_;
    }

    /// Looks up one batch, start to end: valid until the next call. Collective.
    template <class Id>
    Output forward(const JaggedView<Id>& batch) {
        current_ = Flight{};
        current_ = start(batch);
        return forward(current_);
    }
    /// Learns from the batch of the last `forward`. Collective.
    void backward(const Gradient& gradient) {
        if (!current_)
            throw BadInput{
                "backward without a forward before it: call forward(batch) first, and backward once a batch"};
        backward(std::move(current_), gradient);
    }

    /// Checks a batch by a lookup whose result nobody sees. Collective; as expensive as forward.
    /// \throws BadInput on every rank when any rank's batch is wrong
    template <class Id>
    void validate(const JaggedView<Id>& batch) {
        Flight flight = start(batch);
        static_cast<void>(forward(flight));
    }

    /// What a training step on these batches, one a rank, moves. Not collective: a pure function, the same on all
    /// ranks. With a tally, adds what the step's buffers need on this rank: one tally a flight that is under way at a
    /// time, over all batches that it carries, says what memory().dynamic_bytes() grows to.
    /// \throws BadInput when a batch does not fit the layer
    template <class Id>
    [[nodiscard]] LayerCost predict_cost(const std::vector<JaggedView<Id>>& batches,
                                         MemoryTally* tally = nullptr) const {
        std::vector<BatchView> bound(batches.size());
        if (batches.size() != static_cast<std::size_t>(topology().ranks()))
            throw BadInput{"predict_cost is given " + std::to_string(batches.size()) + " batches for " +
                           std::to_string(topology().ranks()) + " ranks: give one a rank"};
        for (std::size_t i = 0; i < batches.size(); ++i) {
            bound[i].bind(batches[i], features_);
            check_ids(bound[i]);
        }
        CostTree<EmbeddingCost> tree;
        const auto bind = [&](CostTree<EmbeddingCost>& node, std::size_t branch) {
            node.own.placement = &placements_[branch];
            node.own.batches = &bound;
        };
        if constexpr (policies::mixed) {
            tree.branches.resize(placements_.size());
            for (std::size_t i = 0; i < placements_.size(); ++i)
                bind(tree.branches[i], i);
        } else {
            bind(tree, 0);
        }
        LayerCost cost{.segments = {}, .forward = TrafficMatrix{topology()}, .backward = TrafficMatrix{topology()}};
        if (tally != nullptr) tally->begin_batch();
        cost.segments =
            shardwise::predict(program_, 0, program_.segments.size(), topology(), tree, tally, comm_.rank());
        if (tally != nullptr) {
            tally_messages(cost.segments, topology(), comm_.rank(), *tally);
            tally->need(4 * output_elements(bound[static_cast<std::size_t>(comm_.rank())]));
        }
        for (const SegmentCost& segment : cost.segments)
            (segment.segment < program_.forward ? cost.forward : cost.backward) += segment.traffic;
        return cost;
    }

    /// Bytes of tables and moments on rank `rank`. Not collective: a pure function, the same on all ranks.
    [[nodiscard]] std::int64_t predict_static_bytes(int rank) const {
        std::int64_t bytes = 0;
        for (const Placement& placement : placements_)
            bytes += static_bytes(placement, rank, rule_type::element_slots, rule_type::row_slots);
        return bytes;
    }

    /// Every shard that lives on this rank. Not collective.
    /// `use(ShardView, row)`: row(local) is the table's row in the shard's row `local`; it may be kept.
    template <class Use>
    void for_each_shard(Use use) {
        std::size_t branch = 0;
        boost::mp11::mp_for_each<boost::mp11::mp_transform<boost::mp11::mp_identity, shardings>>([&](auto identity) {
            using S = typename decltype(identity)::type;
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
                    [number = shard.shard, shape = table.shape](std::int64_t local) {
                        return S::row({.shard = number, .local = local}, shape);
                    });
            }
            ++branch;
        });
    }

    [[nodiscard]] const std::vector<TableConfig>& tables() const noexcept { return tables_; }
    [[nodiscard]] const std::vector<std::string>& features() const noexcept { return features_; }
    /// Columns of a pooled output.
    [[nodiscard]] int width() const noexcept { return width_; }
    [[nodiscard]] Topology topology() const noexcept { return comm_.topology(); }
    [[nodiscard]] const Program& program() const noexcept { return program_; }
    /// Names of the branches of a Mixed layer, as describe() takes them.
    [[nodiscard]] static std::vector<std::string> branches() {
        std::vector<std::string> names;
        boost::mp11::mp_for_each<boost::mp11::mp_transform<boost::mp11::mp_identity, shardings>>(
            [&](auto identity) { names.emplace_back(decltype(identity)::type::name); });
        return names;
    }
    [[nodiscard]] MemoryAccount& memory() noexcept { return *options_.memory; }
    /// Training steps so far; settable for a layer that goes on from a checkpoint.
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    void set_steps(std::int64_t steps) noexcept { steps_ = steps; }

  private:
    /// The numbers of the tables that policy S places.
    template <class S>
    [[nodiscard]] std::vector<int> chosen() const {
        if constexpr (policies::mixed) {
            return detail::tables_that_ask_for(S::name, tables_, branches());
        } else {
            std::vector<int> numbers(tables_.size());
            std::iota(numbers.begin(), numbers.end(), 0);
            return numbers;
        }
    }

    State& free_state() {
        for (auto& state : states_)
            if (!state->core.active()) return *state;
        states_.push_back(std::make_unique<State>(program_, comm_, *options_.memory));
        State& state = *states_.back();
        state.core.trace(options_.tracer);
        bind_branches(state, std::make_index_sequence<boost::mp11::mp_size<shardings>::value>{});
        return state;
    }
    template <std::size_t... Branch>
    void bind_branches(State& state, std::index_sequence<Branch...>) {
        const auto bind = [&](auto& frame, std::size_t branch, auto* slot) {
            frame.lanes.placement = &placements_[branch];
            frame.lanes.store = &stores_[branch];
            frame.lanes.memory = &options_.memory->work();
            frame.lanes.batch = &state.batch;
            frame.lanes.output = &state.output;
            frame.lanes.gradient = &state.gradient;
            auto& tape = static_cast<std::remove_pointer_t<decltype(slot)>&>(frame).tape;
            tape.rule = &options_.rule;
            tape.step = &step_;
        };
        const auto slot = [](auto identity) {
            using S = typename decltype(identity)::type;
            return static_cast<detail::Slot<typename detail::FlatPlan<policies, S>::parameters>*>(nullptr);
        };
        if constexpr (policies::mixed) {
            (bind(std::get<Branch>(state.frame.branches), Branch,
                  slot(boost::mp11::mp_identity<boost::mp11::mp_at_c<shardings, Branch>>{})),
             ...);
        } else {
            bind(state.frame, 0, slot(boost::mp11::mp_identity<boost::mp11::mp_front<shardings>>{}));
        }
    }

    /// \throws BadInput for an id that is no row of its table
    void check_ids(const BatchView& batch) const {
        for (const Placement& placement : placements_)
            for (const FeaturePlacement& feature : placement.features) {
                const std::int64_t rows = placement.tables[static_cast<std::size_t>(feature.table)].rows;
                const std::int64_t first = batch.first_value(feature.feature);
                for (std::int64_t i = first; i < first + batch.values(feature.feature); ++i)
                    if (batch.id(i) < 0 || batch.id(i) >= rows)
                        throw BadInput{"feature '" + feature.name + "': id " + std::to_string(batch.id(i)) +
                                       " is not a row of its table, which has " + std::to_string(rows)};
            }
    }
    /// Elements of the results of a batch.
    [[nodiscard]] std::int64_t output_elements(const BatchView& batch) const {
        if constexpr (pooled) return batch.samples() * width_;
        std::int64_t elements = 0;
        for (std::size_t f = 0; f < features_.size(); ++f)
            elements += batch.values(static_cast<int>(f)) * feature_dims_[f];
        return elements;
    }
    void allocate_output(State& state) {
        const std::int64_t samples = state.batch.samples();
        state.output.clear();
        state.result.clear();
        const std::int64_t elements = output_elements(state.batch);
        float* at = state.buffer.resize(static_cast<std::size_t>(elements)).data();
        for (std::size_t f = 0; f < features_.size(); ++f) {
            const int dim = feature_dims_[f];
            const std::int64_t rows = pooled ? samples : state.batch.values(static_cast<int>(f));
            state.output.emplace_back(at, rows, dim, pooled ? width_ : dim);
            at += pooled ? dim : rows * dim;
            if constexpr (!pooled) state.result.emplace_back(state.output.back());
        }
    }
    Output output_of(const State& state) const {
        if constexpr (pooled) {
            return {state.buffer.data(), state.batch.samples(), width_};
        } else {
            return state.result;
        }
    }
    /// A gradient of another shape is bad input; the ranks agree on it at the next exchange, before any row changes.
    void bind_gradient(State& state, const Gradient& gradient) {
        const auto wrong = [&](const std::string& what, std::int64_t rows, std::int64_t columns,
                               const MatrixView<float>& expected, std::int64_t width) {
            state.core.env().error.note(FlightError::bad_input, what + " is " + std::to_string(rows) + " x " +
                                                                    std::to_string(columns) + ", and the output " +
                                                                    std::to_string(expected.rows()) + " x " +
                                                                    std::to_string(width));
        };
        state.gradient.assign(state.output.begin(), state.output.end());  // stands in where the shape is wrong
        if constexpr (pooled) {
            if (!state.output.empty() && (gradient.rows() != state.output[0].rows() || gradient.columns() != width_)) {
                wrong("the gradient", gradient.rows(), gradient.columns(), state.output[0], width_);
                return;
            }
            int first = 0;
            for (std::size_t f = 0; f < features_.size(); ++f) {
                state.gradient[f] = gradient.columns_from(first, feature_dims_[f]);
                first += feature_dims_[f];
            }
        } else {
            for (std::size_t f = 0; f < features_.size(); ++f) {
                const bool there = f < gradient.size();
                if (!there || gradient[f].rows() != state.output[f].rows() ||
                    gradient[f].columns() != feature_dims_[f]) {
                    wrong("the gradient of feature '" + features_[f] + "'", there ? gradient[f].rows() : 0,
                          there ? gradient[f].columns() : 0, state.output[f], feature_dims_[f]);
                    return;
                }
                state.gradient[f] = gradient[f];
            }
        }
    }

    CommunicatorRef comm_;
    std::vector<TableConfig> tables_;
    Options options_;
    std::unique_ptr<MemoryAccount> own_memory_;
    Program program_;
    std::vector<std::string> features_;
    std::vector<int> feature_dims_;
    int width_ = 0;
    std::vector<Placement> placements_;  // (branch)
    std::vector<Store> stores_;          // (branch)
    UpdateStep step_;
    std::int64_t steps_ = 0;
    std::uint32_t flights_ = 0;
    std::vector<std::unique_ptr<State>> states_;
    Flight current_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
