// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <new>
#include <numeric>
#include <utility>

#include "shardwise/comm/collectives.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"
#include "shardwise/plan/round_carrier.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE LayerBase::LayerBase(CommunicatorRef comm, std::vector<TableConfig> tables, LayerTraits traits,
                                      const LayerOptions& options)
    : comm_{comm},
      options_{options},
      own_memory_{options.memory == nullptr ? std::make_unique<MemoryAccount>() : nullptr},
      blueprint_{comm.topology(), std::move(tables), std::move(traits), options,
                 (options.memory == nullptr ? *own_memory_ : *options.memory).tables()},
      index_{groups().index_of(comm.rank())},
      given_{blueprint_.given_features(comm.rank())},
      towers_{blueprint_.towers()},
      digest_{blueprint_.digest()} {
    if (options_.memory == nullptr) options_.memory = own_memory_.get();
    options_.rows = nullptr;
    digest_.add(static_cast<std::int64_t>(options_.seed));
    for (const TableSettings& settings : blueprint_.settings())
        rules_.tables.push_back(
            {.rule = settings.rule.get(), .change = {.clip_value = settings.clip_value, .l2 = settings.l2}});
    rules_.by_norm = blueprint_.clips_by_norm();
    enrolled_ = comm_.enroll();
    digest_.add(std::int64_t{enrolled_});  // two layers of one configuration are not one layer
    if (options_.slots && !blueprint_.bound().bounded)
        throw BadInput{
            "LayerOptions::slots has no effect where ranks go step by step: leave it out, or give the layer "
            "Collective<BoundedLag<>>"};
    for (const int feature : given_)
        given_names_.push_back(at(features(), feature));
    make_stores();
    work_.resource = &options_.memory->work();
    looked_up_ = std::vector<steps::LookedUpRows>(stores_.size());
    make_way(BatchKind::any);
    if (blueprint_.has_hot_batches()) make_way(BatchKind::hot);
    if (!blueprint_.groups().syncs()) return;
    sync_.emplace(blueprint_.groups(), stores_, marks_, comm_, options_.memory->of(MemoryPart::syncs));
    sync_->trace(options_.tracer);
    synced_payload_.resize(sync_program().posts());
    sync_->count(synced_payload_);
}

SHARDWISE_INLINE LayerBase::~LayerBase() {
    current_.end();
    for (Way& way : ways_)
        for (auto& state : way.flights)
            if (state->handle != nullptr) static_cast<void>(state->handle->release());
}

/// Tables, moments, and the module of this rank's tower.
SHARDWISE_INLINE void LayerBase::make_stores() {
    const LayerTraits& traits = blueprint_.traits();
    const bool has_module = blueprint_.has_modules();
    try {
        if (has_module)
            towers_.module =
                traits.module->make(at(towers_.shapes, topology().tower_of(index_)), options_.seed, *options_.memory);
        for (const LayerBlueprint::Part& part : blueprint_.parts()) {
            held_.emplace_back(part.placement, index_);
            if (TouchedMarks& marks = marks_.emplace_back(); blueprint_.groups().keeps_marks())
                marks.keep(held_.back(), options_.memory->of(MemoryPart::marks));
            stores_.emplace_back(held_.back(), traits.rule->element_slots(), traits.rule->row_slots(),
                                 options_.memory->tables(), options_.memory->of(MemoryPart::moments));
        }
    } catch (const std::bad_alloc&) {
        throw BadInput{concat({has_module ? "the tables, moments and module" : "the tables and moments", " on rank ",
                               comm_.rank(), " take ", predict_static_bytes(comm_.rank()),
                               " bytes, and there is not so much memory: give smaller tables, or more ranks"})};
    }
    std::vector<InitialValues> laws;
    for (const TableSettings& settings : blueprint_.settings())
        laws.push_back(settings.initial);
    for (std::size_t part = 0; part < stores_.size(); ++part)
        initialize(stores_[part], blueprint_.parts()[part].placement, options_.seed, laws);
}

SHARDWISE_INLINE void LayerBase::make_way(BatchKind kind) {
    const LayerTraits& traits = blueprint_.traits();
    const Program& program = traits.program_of(kind);
    Way& way = way_of(kind);
    way.itinerary.emplace(program, blueprint_.topology(), groups(), comm_.rank());
    way.digest = digest_;
    if (kind != BatchKind::any) way.digest.add(static_cast<std::int64_t>(kind));
    way.payload.resize(program.posts());
    bind(way.states, kind, looked_up_, row_counts_, request_counts_);
    if (kind == BatchKind::any && blueprint_.bound().bounded) make_lag(*way.itinerary);
    if (!blueprint_.bound().errors_stay()) return;
    const bool asks = kind == BatchKind::any && blueprint_.bound().has_halves();
    way.itinerary = asks ? way.itinerary->asking() : way.itinerary->alone();
}

SHARDWISE_INLINE void LayerBase::bind(States& bound, BatchKind kind, std::vector<steps::LookedUpRows>& looked_up,
                                      RowCounts& rows, RequestCounts& requests) {
    const LayerTraits& traits = blueprint_.traits();
    bound.bind({}, work_);
    bound.bind({}, towers_);
    bound.bind({}, rules_);
    bound.bind({}, *traits.order);
    bound.bind({}, traits.wires);
    bound.bind({}, blueprint_.features_by_plan(kind));
    bound.bind({}, blueprint_.row_tiers(kind));
    bound.bind({}, rows);
    bound.bind({}, blueprint_.coalesced_tables());
    bound.bind({}, requests);
    for (std::size_t part = 0; part < stores_.size(); ++part) {
        const BranchPath path = blueprint_.path_of(part);
        bound.bind(path, blueprint_.parts()[part].placement);
        bound.bind(path, blueprint_.parts()[part].pooling);
        bound.bind(path, held_[part]);
        bound.bind(path, stores_[part]);
        bound.bind(path, marks_[part]);
        bound.bind(path, looked_up[part]);
    }
}

SHARDWISE_INLINE LayerVectors LayerBase::forward(Flight& flight, const SourceLocation& where) {
    detail::LayerState& state = state_of(flight, "forward");
    state.flight.called_from(where);
    check_turn(state);
    try {
        finish_sync();
        finish(state, where);
    } catch (...) {
        static_cast<void>(flight.release());
        if (state.schedule != nullptr) state.flight.withdraw();
        throw;
    }
    state.looked_up = true;
    return state.vectors();
}

SHARDWISE_INLINE std::uint16_t LayerBase::digest_now(BatchKind kind) const {
    Digest digest = ways_[static_cast<std::size_t>(kind)].digest;
    return digest.add(steps_).bits16();
}

/// What digest_now() is a digest of.
SHARDWISE_INLINE std::vector<Fact> LayerBase::facts(BatchKind kind) const {
    std::vector<Fact> all = blueprint_.facts();
    const auto number = [&](const char* of, std::int64_t value) {
        all.push_back({.of = of, .what = {}, .value = std::to_string(value)});
    };
    number("seed", static_cast<std::int64_t>(options_.seed));
    number("layers made before this one on its communicator", enrolled_);
    number("steps", steps_);
    all.push_back({.of = "batch", .what = {}, .value = kind == BatchKind::hot ? "a hot one" : "one of any rows"});
    return all;
}

SHARDWISE_INLINE void LayerBase::backward(Flight flight, const LayerVectors& gradient, const SourceLocation& where) {
    detail::LayerState& state = state_of(flight, "backward");
    if (!learns())
        throw BadInput{
            concat({"backward of a layer whose optimizer '", optimizer(),
                    "' learns nothing: let the flight end with its handle, or give the layer another optimizer"})};
    state.flight.called_from(where);
    if (!state.looked_up)
        throw BadInput{"backward of a flight that was not looked up: call forward first, and backward once a flight"};
    if (steps_ >= most_steps)  // set_steps takes every number that a checkpoint of a layer may have
        throw BadInput{
            concat({"this layer is at step ", steps_, ", and counts no further: give set_steps a smaller number"})};
    static_cast<void>(flight.release());
    state.bind_gradient(gradient, options_.check_gradients);
    for (std::size_t t = 0; t < rules_.tables.size(); ++t) {
        TableRules::Table& table = rules_.tables[t];
        table.step = {.learning_rate = blueprint_.settings()[t].learning_rate->at(steps_ + 1), .step = steps_ + 1};
        table.change.scale = 1.0F;
        table.change.keep = static_cast<float>(1.0 - static_cast<double>(table.step.learning_rate) *
                                                         static_cast<double>(blueprint_.settings()[t].weight_decay));
    }
    finish_sync();
    const ExactSum others = std::exchange(other_squares_, {});  // also where this backward fails
    gradient_norm_ = 0.0;
    gradient_scale_ = 1.0F;
    state.flight.finish_backward(rules_.by_norm);
    if (rules_.by_norm) clip_by_norm(state, others, where);
    ++steps_;
    if (blueprint_.groups().syncs_at(steps_)) start_sync(where);
}

SHARDWISE_INLINE void LayerBase::backward(const LayerVectors& gradient, const SourceLocation& where) {
    if (!current_)
        throw BadInput{"backward without a forward before it: call forward(batch) first, and backward once a batch"};
    backward(std::move(current_), gradient, where);
}

SHARDWISE_INLINE bool LayerBase::sync(const SourceLocation& where) {
    finish_sync();
    if (!sync_ || synced_at_ == steps_) return false;
    start_sync(where);
    finish_sync();
    return true;
}

SHARDWISE_INLINE bool LayerBase::advance_sync() {
    return sync_ && sync_->under_way() && sync_->advance();
}

SHARDWISE_INLINE void LayerBase::finish_sync() {
    while (advance_sync()) {
    }
}

SHARDWISE_INLINE void LayerBase::start_sync(const SourceLocation& where) {
    synced_at_ = steps_;
    Digest digest = digest_;
    sync_->start(static_cast<std::uint32_t>(steps_), digest.add("sync of copies").add(steps_).bits16(), where);
}

SHARDWISE_INLINE void LayerBase::check_at_rest() const {
    if (sync_ && sync_->under_way())
        throw BadInput{"the tables are read while a sync of their copies is under way: call sync() on all ranks first"};
}

SHARDWISE_INLINE std::vector<std::int64_t> LayerBase::looked_up_rows() const {
    std::vector<std::int64_t> rows;
    for (const steps::LookedUpRows& part : looked_up_)
        rows.push_back(part.rows);
    for (std::size_t part = 0; part < served_.looked_up.size(); ++part)
        rows[part] += served_.looked_up[part].rows;
    return rows;
}

SHARDWISE_INLINE std::int64_t LayerBase::synced_payload() const {
    return std::accumulate(synced_payload_.begin(), synced_payload_.end(), std::int64_t{0});
}

SHARDWISE_INLINE std::vector<std::int64_t> LayerBase::sent_payload() const {
    std::vector<std::int64_t> sent = blueprint_.by_part(ways_[0].payload);
    const auto add = [&](const std::vector<std::int64_t>& more) {
        for (std::size_t part = 0; part < sent.size(); ++part)
            sent[part] += more[part];
    };
    if (blueprint_.has_hot_batches()) add(blueprint_.by_part(ways_[1].payload, BatchKind::hot));
    std::vector<std::int64_t> served;
    for (std::int64_t& bytes : served_.payload)
        served.push_back(std::atomic_ref{bytes}.load(std::memory_order_relaxed));
    if (!served.empty()) add(blueprint_.by_part(served));
    return sent;
}

SHARDWISE_INLINE void LayerBase::set_steps(std::int64_t steps) {
    if (steps < 0 || steps > most_steps)
        throw BadInput{concat({steps, " training steps: give a number from 0 to ", most_steps})};
    steps_ = steps;
    synced_at_ = steps;
    if (lag_ == nullptr || lag_->server() == nullptr) return;
    lag_->server()->begin(digest_now(BatchKind::any));
}

SHARDWISE_INLINE detail::LayerState& LayerBase::free_state(BatchKind kind) {
    static_cast<void>(blueprint_.traits().program_of(kind));
    Way& way = way_of(kind);
    for (auto& state : way.flights)
        if (!state->flight.active() && state->handle == nullptr) return *state;
    const bool bounded = lag_ != nullptr && kind == BatchKind::any;
    way.flights.push_back(std::make_unique<detail::LayerState>(
        blueprint_.features(), *way.itinerary, way.states, comm_, *work_.resource,
        bounded ? lag_->carrier(*way.itinerary, comm_, *work_.resource)
                : std::make_unique<RoundCarrier>(*way.itinerary, comm_, *work_.resource)));
    if (bounded) way.flights.back()->schedule = &lag_->schedule();
    way.flights.back()->flight.trace(options_.tracer);
    way.flights.back()->flight.count(way.payload);
    if (!bounded) way.flights.back()->flight.agree_on([this, kind] { return facts(kind); });
    return *way.flights.back();
}

SHARDWISE_INLINE void LayerBase::begin(detail::LayerState& state, BatchKind kind, const std::string& wrong) {
    state.looked_up = false;
    state.refused.clear();
    state.allocate_output(index_);
    LagSchedule* const schedule = state.schedule;
    const std::uint16_t digest = digest_now(kind);
    state.flight.prepare(schedule != nullptr ? schedule->started() + 1 : ++flights_, digest);
    if (!wrong.empty()) state.flight.env().error.note(FlightError::bad_input, wrong);
    if (schedule == nullptr) return state.flight.start();
    schedule->look_ahead();
    try {
        state.flight.start();
    } catch (...) {
        state.flight.withdraw();
        throw;
    }
    schedule->start();
}

SHARDWISE_INLINE detail::LayerState& LayerBase::state_of(Flight& flight, const char* what) const {
    if (!flight) throw BadInput{concat({what, " of a flight that has ended: start a new one for each batch"})};
    if (flight.state_->features != &blueprint_.features())
        throw BadInput{concat({what, " of a flight that another layer started"})};
    return *flight.state_;
}

SHARDWISE_INLINE std::string LayerBase::no_module(const std::string& name) const {
    if (towers_.policy == nullptr) return "the layer's towers have no modules: give it a Tower<> policy";
    return concat(
        {"the towers of this layer have modules '", towers_.policy->name(), "', and '", name, "' was asked for"});
}

SHARDWISE_INLINE void LayerBase::agree_on(const std::string& wrong, const SourceLocation& where) {
    agree_on_input(comm_, wrong.empty() ? wrong : "rank " + std::to_string(comm_.rank()) + ": " + wrong, where);
}

SHARDWISE_INLINE ShardView LayerBase::view_of(std::size_t part, std::size_t slot) {
    const Placement& placement = blueprint_.parts()[part].placement;
    ShardStore& shard = stores_[part].shards()[slot];
    const TablePlacement& table = at(placement.tables, shard.table);
    return {.table = table.table,
            .rows = shard.rows,
            .first_column = at(table.shards, shard.shard).columns.first,
            .dim = shard.dim,
            .copy = groups().group_of(comm_.rank()) * placement.copies() + placement.copy_of(index_),
            .copies = groups().count() * placement.copies(),
            .weights = shard.weights.data(),
            .element_state = shard.element_state.data(),
            .row_state = shard.row_state.data()};
}

SHARDWISE_INLINE ShardRowNumbers LayerBase::rows_of(std::size_t part, std::size_t slot) const {
    const ShardStore& shard = stores_[part].shards()[slot];
    return {at(blueprint_.parts()[part].placement.tables, shard.table).map, shard.shard};
}

}  // namespace shardwise::inline SHARDWISE_ABI
