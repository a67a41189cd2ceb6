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
    : counted_{&counted}, uncounted_{uncounted}, wanted_{steps}, tallies_(static_cast<std::size_t>(flights)) {}

namespace {

void add(std::vector<std::int64_t>& to, const std::vector<std::int64_t>& more) {
    to.resize(more.size());
    std::transform(to.begin(), to.end(), more.begin(), to.begin(), std::plus{});
}

}  // namespace

void Meter::begin(const Model& model) {
    open_ = wanted_ > 0;
    counted_->reset();
    payload_ = {.counted = -model.embedding_payload(), .moved = model.embedding().sent_payload(), .predicted = {}};
    for (std::int64_t& before : payload_.moved)
        before = -before;
    payload_.predicted.resize(payload_.moved.size());
}

void Meter::predict(const Model& model, const sw::ClickBatch& batch) {
    const auto batches = gather_ids(batch, uncounted_);
    std::vector<sw::JaggedView<std::int64_t>> views;
    for (const auto& theirs : batches)
        views.push_back(theirs.view());
    sw::MemoryTally& tally = tallies_[static_cast<std::size_t>(steps_) % tallies_.size()];
    const sw::LayerCost cost = model.embedding().predict_cost(views, &tally);
    const int rank = uncounted_.rank();
    predicted_ += cost.forward.sent_by(rank);
    predicted_ += cost.backward.sent_by(rank);
    add(payload_.predicted, model.embedding().blueprint().predict_payload(cost, rank));
    predicted_ += model.predict_reduction().sent_by(rank);
    predicted_ += Batches::predict(uncounted_.topology()).sent_by(rank);
    rounds_[static_cast<std::uint32_t>(++steps_)] = sw::rounds_of(cost.segments, rank);
    sw::barrier(uncounted_);
}

void Meter::close(const Model& model, bool ended) {
    if (!open_) return;
    open_ = false;
    if (ended) predicted_ += Batches::predict(uncounted_.topology()).sent_by(uncounted_.rank());
    moved_ = counted_->sent().sent_by(counted_->rank());
    payload_.counted += model.embedding_payload();
    add(payload_.moved, model.embedding().sent_payload());
    const sw::MemoryAccount& memory = model.embedding_memory();
    memory_ = {.fixed = memory.static_bytes(), .dynamic = memory.dynamic_bytes(), .peak = memory.peak_bytes()};
}

LayerMemory Meter::predicted_memory(const Model& model) const {
    LayerMemory memory{.fixed = model.embedding().predict_static_bytes(uncounted_.rank()), .dynamic = 0, .peak = 0};
    for (const sw::MemoryTally& tally : tallies_)
        memory.dynamic += tally.bytes();
    memory.peak = memory.fixed + memory.dynamic;
    return memory;
}

}  // namespace train_dlrm
