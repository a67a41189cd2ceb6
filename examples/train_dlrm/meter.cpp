// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "meter.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "data.hpp"
#include "shardwise/comm/collectives.hpp"

namespace train_dlrm {

std::vector<sw::JaggedBatch<std::int64_t>> gather_ids(const sw::ClickBatch& batch, sw::CommunicatorRef comm) {
    auto values = sw::all_gather_v<std::int64_t>(comm, batch.ids.values);
    auto lengths = sw::all_gather_v<std::int32_t>(comm, batch.ids.lengths);
    const std::int64_t mine = batch.samples();
    const auto samples = sw::all_gather_v<std::int64_t>(comm, std::span{&mine, 1});
    std::vector<sw::JaggedBatch<std::int64_t>> all(values.size());
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        all[rank].samples = samples[rank].at(0);
        all[rank].features = batch.ids.features;
        all[rank].values = std::move(values[rank]);
        all[rank].lengths = std::move(lengths[rank]);
    }
    return all;
}

std::vector<sw::JaggedBatch<std::int64_t>> first_batch(const Options& options, sw::CommunicatorRef comm) {
    const auto data = training_data(options, comm.rank(), comm.size());
    Batches first{comm, *data, batch_shape(options).dense, batch_shape(options).features};
    sw::ClickBatch batch;
    first.announce(batch);
    static_cast<void>(first.global_samples());
    if (first.failed()) first.fail();
    return gather_ids(batch, comm);
}

Meter::Meter(Counted& counted, sw::CommunicatorRef uncounted, std::int64_t steps, int flights)
    : counted_{&counted}, uncounted_{uncounted}, wanted_{steps} {
    for (auto& kind : tallies_)
        kind.resize(static_cast<std::size_t>(flights));
}

namespace {

void add(std::vector<std::int64_t>& to, const std::vector<std::int64_t>& more) {
    to.resize(more.size());
    std::transform(to.begin(), to.end(), more.begin(), to.begin(), std::plus{});
}

}  // namespace

void Meter::begin(const Model& model, const Feed& feed) {
    open_ = wanted_ > 0;
    passes_ = feed.passes();
    counted_->reset();
    syncs_ = sw::SyncTally{model.embedding().steps()};
    payload_ = {.counted = -model.embedding_payload(),
                .moved = model.embedding().sent_payload(),
                .predicted = {},
                .synced = -model.embedding().synced_payload(),
                .predicted_sync = 0};
    for (std::int64_t& before : payload_.moved)
        before = -before;
    payload_.predicted.resize(payload_.moved.size());
}

void Meter::predict(const Model& model, const Feed& feed, const sw::ClickBatch& batch, sw::BatchKind kind) {
    const auto batches = gather_ids(batch, uncounted_);
    std::vector<sw::JaggedView<std::int64_t>> views;
    for (const auto& theirs : batches)
        views.push_back(theirs.view());
    // The first flight of its kind that is free: that of the step before is still under way when ids travel ahead.
    auto& tallies = tallies_[static_cast<std::size_t>(kind)];
    flight_ = last_ == kind && flight_ == 0 ? std::min<std::size_t>(1, tallies.size() - 1) : 0;
    last_ = kind;
    const sw::LayerCost cost = model.embedding().predict_cost(views, &tallies[flight_], kind, &syncs_);
    const int rank = uncounted_.rank();
    predicted_ += cost.forward.sent_by(rank);
    predicted_ += cost.backward.sent_by(rank);
    const sw::Traffic sync = cost.sync.sent_by(rank);
    predicted_ += sync;
    payload_.predicted_sync += sync.host.payload + sync.cross_host.payload;
    add(payload_.predicted, model.embedding().blueprint().predict_payload(cost, rank, kind));
    predicted_ += model.predict_reduction().sent_by(rank);
    predicted_ += feed.predict(uncounted_.topology()).sent_by(rank);
    rounds_.flights[static_cast<std::uint32_t>(++steps_)] = sw::rounds_of(cost.segments, rank);
    rounds_.syncs[static_cast<std::uint32_t>(syncs_.steps())] = sw::rounds_of(cost.sync_segments, rank);
    sw::barrier(uncounted_);
}

void Meter::close(const Model& model, const Feed& feed, bool ended) {
    if (!open_) return;
    open_ = false;
    for (std::int64_t more = feed.passes() - passes_ + (ended ? 1 : 0); more > 0; --more)
        predicted_ += feed.predict(uncounted_.topology()).sent_by(uncounted_.rank());
    moved_ = counted_->sent().sent_by(counted_->rank());
    payload_.counted += model.embedding_payload();
    payload_.synced += model.embedding().synced_payload();
    add(payload_.moved, model.embedding().sent_payload());
    const sw::MemoryAccount& memory = model.embedding_memory();
    using Part = sw::MemoryPart;
    memory_ = {.fixed = memory.static_bytes(),
               .dynamic = memory.dynamic_bytes(),
               .peak = memory.peak_bytes(),
               .tables = memory.bytes(Part::tables),
               .moments = memory.bytes(Part::moments),
               .flights = memory.bytes(Part::flights),
               .syncs = memory.bytes(Part::marks) + memory.bytes(Part::syncs)};
}

void Meter::abandon() {
    open_ = false;
    steps_ = 0;
    predicted_ = moved_ = {};
    for (std::vector<std::int64_t>* parts : {&payload_.moved, &payload_.predicted})
        std::fill(parts->begin(), parts->end(), 0);
    payload_.counted = payload_.synced = payload_.predicted_sync = 0;
}

LayerMemory Meter::predicted_memory(const Model& model) const {
    using Part = sw::MemoryPart;
    const auto fixed = [&](Part part) { return model.embedding().predict_static_bytes(uncounted_.rank(), part); };
    LayerMemory memory{.fixed = model.embedding().predict_static_bytes(uncounted_.rank()),
                       .dynamic = 0,
                       .peak = 0,
                       .tables = fixed(Part::tables),
                       .moments = fixed(Part::moments),
                       .flights = 0,
                       .syncs = fixed(Part::marks) + syncs_.memory().bytes()};
    for (const auto& kind : tallies_)
        for (const sw::MemoryTally& tally : kind)
            memory.flights += tally.bytes();
    memory.dynamic = memory.flights + syncs_.memory().bytes();
    memory.peak = memory.fixed + memory.dynamic;
    return memory;
}

}  // namespace train_dlrm
