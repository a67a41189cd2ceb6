// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/data/batch.hpp"

/// \file
/// Samples of click data one by one: out of one batch, into another.

namespace shardwise::inline SHARDWISE_ABI {

/// A walk through the samples of a batch, in their order.
class SampleCursor {
  public:
    /// \param batch  outlives this, and fits together
    explicit SampleCursor(const ClickBatch& batch) : batch_{&batch} {
        const auto samples = static_cast<std::size_t>(batch.samples());
        std::int64_t first = 0;
        for (std::int64_t f = 0; f < batch.ids.features; ++f) {
            ids_.push_back(first);
            const auto lengths = std::span{batch.ids.lengths};
            if (lengths.empty())
                first += batch.samples();
            else
                for (const std::int32_t length : lengths.subspan(static_cast<std::size_t>(f) * samples, samples))
                    first += length;
        }
    }

    [[nodiscard]] const ClickBatch& batch() const noexcept { return *batch_; }
    /// The sample's number; the batch's samples at the end.
    [[nodiscard]] std::int64_t sample() const noexcept { return sample_; }
    [[nodiscard]] std::int64_t length(std::int64_t feature) const {
        const auto bag = static_cast<std::size_t>(feature * batch_->samples() + sample_);
        return batch_->ids.lengths.empty() ? 1 : batch_->ids.lengths[bag];
    }
    /// The sample's bag of a feature: where its ids begin among all of the batch, and they.
    [[nodiscard]] std::int64_t first(std::int64_t feature) const { return ids_[static_cast<std::size_t>(feature)]; }
    [[nodiscard]] std::span<const std::int64_t> bag(std::int64_t feature) const {
        return std::span{batch_->ids.values}.subspan(static_cast<std::size_t>(first(feature)),
                                                     static_cast<std::size_t>(length(feature)));
    }
    void next() {
        for (std::int64_t f = 0; f < batch_->ids.features; ++f)
            ids_[static_cast<std::size_t>(f)] += length(f);
        ++sample_;
    }

  private:
    const ClickBatch* batch_;
    std::vector<std::int64_t> ids_;  // (feature): where the sample's bag begins
    std::int64_t sample_ = 0;
};

/// Samples that wait for a batch of theirs, first in, first out. Vectors keep their memory.
/// Memory: what the samples that wait take, at most twice.
class SampleQueue {
  public:
    [[nodiscard]] std::int64_t size() const noexcept { return samples_ - head_; }
    /// Takes in the sample at a cursor. Samples have as many labels, dense columns and features as those before,
    /// and all ids weights, or none.
    void push(const SampleCursor& at) {
        const ClickBatch& from = at.batch();
        labels_a_sample_ = std::ssize(from.labels) / from.samples();
        dense_columns_ = from.dense_columns;
        features_ = from.ids.features;
        has_lengths_ = has_lengths_ || !from.ids.lengths.empty();
        has_weights_ = has_weights_ || !from.ids.weights.empty();  // a batch without ids has none, either
        SHARDWISE_ASSERT(from.ids.weights.size() == (has_weights_ ? from.ids.values.size() : 0));
        append(labels_, from.labels, at.sample() * labels_a_sample_, labels_a_sample_);
        append(dense_, from.dense, at.sample() * dense_columns_, dense_columns_);
        for (std::int64_t f = 0; f < features_; ++f) {
            const std::int64_t length = at.length(f);
            lengths_.push_back(static_cast<std::int32_t>(length));
            append(ids_, from.ids.values, at.first(f), length);
            if (has_weights_) append(weights_, from.ids.weights, at.first(f), length);
        }
        ++samples_;
    }
    /// Makes a batch of the first `count` samples. Precondition: there are as many, and at least one.
    void take(std::int64_t count, ClickBatch& to) {
        SHARDWISE_ASSERT(count > 0 && count <= size());
        to.labels.clear();
        to.dense.clear();
        append(to.labels, labels_, head_ * labels_a_sample_, count * labels_a_sample_);
        append(to.dense, dense_, head_ * dense_columns_, count * dense_columns_);
        to.dense_columns = dense_columns_;
        to.ids.samples = count;
        to.ids.features = features_;
        const std::int32_t* const lengths = lengths_.data() + head_ * features_;  // (sample, feature)
        to.ids.lengths.resize(static_cast<std::size_t>(has_lengths_ ? count * features_ : 0));
        std::vector<std::int64_t>& next = next_;  // (feature): where its next bag goes
        next.assign(static_cast<std::size_t>(features_), 0);
        std::int64_t ids = 0;
        for (std::int64_t f = 0; f < features_; ++f) {
            next[static_cast<std::size_t>(f)] = ids;
            for (std::int64_t sample = 0; sample < count; ++sample) {
                const std::int32_t length = lengths[sample * features_ + f];
                if (has_lengths_) to.ids.lengths[static_cast<std::size_t>(f * count + sample)] = length;
                ids += length;
            }
        }
        to.ids.values.resize(static_cast<std::size_t>(ids));
        to.ids.weights.resize(static_cast<std::size_t>(has_weights_ ? ids : 0));
        for (std::int64_t bag = 0; bag < count * features_; ++bag) {
            std::int64_t& place = next[static_cast<std::size_t>(bag % features_)];
            std::copy_n(ids_.begin() + first_id_, lengths[bag], to.ids.values.begin() + place);
            if (has_weights_) std::copy_n(weights_.begin() + first_id_, lengths[bag], to.ids.weights.begin() + place);
            place += lengths[bag];
            first_id_ += lengths[bag];
        }
        head_ += count;
        if (2 * head_ >= samples_) forget_taken();
    }
    void clear() {
        head_ = samples_;
        first_id_ = std::ssize(ids_);
        forget_taken();
    }

  private:
    template <class T>
    static void append(std::vector<T>& to, const std::vector<T>& from, std::int64_t first, std::int64_t count) {
        to.insert(to.end(), from.begin() + first, from.begin() + first + count);
    }
    void forget_taken() {
        const auto erase = [](auto& all, std::int64_t count) { all.erase(all.begin(), all.begin() + count); };
        erase(labels_, head_ * labels_a_sample_);
        erase(dense_, head_ * dense_columns_);
        erase(lengths_, head_ * features_);
        erase(ids_, first_id_);
        if (has_weights_) erase(weights_, first_id_);
        samples_ -= head_;
        head_ = 0;
        first_id_ = 0;
    }

    std::vector<float> labels_;          // (sample, label)
    std::vector<float> dense_;           // (sample, column)
    std::vector<std::int32_t> lengths_;  // (sample, feature)
    std::vector<std::int64_t> ids_;      // (sample, feature)
    std::vector<float> weights_;         // as ids, or none
    std::int64_t labels_a_sample_ = 1;
    std::int64_t dense_columns_ = 0;
    std::int64_t features_ = 0;
    bool has_lengths_ = false;
    bool has_weights_ = false;
    std::int64_t samples_ = 0;   // with those that were taken
    std::int64_t head_ = 0;      // of them, that were taken
    std::int64_t first_id_ = 0;  // of the first that was not
    std::vector<std::int64_t> next_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
