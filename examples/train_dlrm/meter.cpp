// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "meter.hpp"

#include <utility>

#include "feed.hpp"
#include "shardwise/comm/collectives.hpp"

namespace train_dlrm {

std::vector<sw::JaggedBatch<std::int64_t>> gather_ids(const sw::ClickBatch& batch, sw::CommunicatorRef comm) {
    auto values = sw::gather_v<std::int64_t>(comm, 0, batch.ids.values);
    auto lengths = sw::gather_v<std::int32_t>(comm, 0, batch.ids.lengths);
    const std::int64_t mine = batch.samples();
    const auto samples = sw::gather_v<std::int64_t>(comm, 0, std::span{&mine, 1});
    std::vector<sw::JaggedBatch<std::int64_t>> all(values.size());
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        all[rank].samples = samples[rank].at(0);
        all[rank].features = batch.ids.features;
        all[rank].values = std::move(values[rank]);
        all[rank].lengths = std::move(lengths[rank]);
    }
    return all;
}

Meter::Meter(Counted& counted, sw::CommunicatorRef uncounted, std::int64_t steps)
    : counted_{&counted}, uncounted_{uncounted}, wanted_{steps}, predicted_{uncounted.topology()} {}

void Meter::begin() {
    open_ = wanted_ > 0;
    counted_->reset();
}

void Meter::predict(const Model& model, const sw::ClickBatch& batch) {
    ++steps_;
    const auto batches = gather_ids(batch, uncounted_);
    if (!batches.empty()) {
        std::vector<sw::JaggedView<std::int64_t>> views;
        for (const auto& theirs : batches)
            views.push_back(theirs.view());
        sw::LayerCost cost = model.predict_embedding(views);
        predicted_ += cost.forward;
        predicted_ += cost.backward;
        predicted_ += model.predict_reduction();
        predicted_ += Feed::predict(uncounted_.topology());
        costs_.push_back(std::move(cost));
    }
    sw::barrier(uncounted_);
}

void Meter::close(bool ended) {
    if (!open_) return;
    open_ = false;
    if (ended) predicted_ += Feed::predict(uncounted_.topology());
    moved_ = counted_->sent().sent_by(counted_->rank());
}

}  // namespace train_dlrm
