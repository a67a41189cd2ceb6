// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/batch.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

template <class Id>
void BatchView::bind(const JaggedView<Id>& batch, const std::vector<std::string>& features) {
    features_.assign(features.size(), {});
    clear();
    batch.check_sizes();
    if (batch.features != static_cast<std::int64_t>(features.size())) {
        batch.check_bags();  // what is wrong with the batch itself comes first
        throw BadInput{concat({"a batch of ", batch.features, " features for a layer of ", features.size()})};
    }
    const auto samples = batch.samples;
    const auto count = batch.single() ? 0 : batch.features * samples;
    lengths_.resize(static_cast<std::size_t>(count));
    given_.resize(static_cast<std::size_t>(batch.features));
    std::int64_t first = 0;
    bool good = batch.offsets.empty() ||
                (batch.offsets.front() == 0 && batch.offsets.back() == static_cast<std::int64_t>(batch.values.size()));
    for (std::int64_t f = 0; f < batch.features; ++f) {
        Feature& feature = given_[static_cast<std::size_t>(f)];
        feature = {.first = first, .count = samples, .lengths = nullptr};
        if (!batch.single()) {
            std::int32_t* const lengths = lengths_.data() + f * samples;
            bool single = true;
            feature.count = 0;
            for (std::int64_t i = 0; i < samples; ++i) {
                const auto bag = static_cast<std::size_t>(f * samples + i);
                if (batch.offsets.empty()) {
                    lengths[i] = batch.lengths[bag];
                } else {  // as unsigned numbers, whose difference may overflow
                    good &= batch.offsets[bag] <= batch.offsets[bag + 1];
                    lengths[i] = static_cast<std::int32_t>(static_cast<std::uint64_t>(batch.offsets[bag + 1]) -
                                                           static_cast<std::uint64_t>(batch.offsets[bag]));
                }
                good &= lengths[i] >= 0;
                single &= lengths[i] == 1;
                feature.count += lengths[i];
            }
            if (!single) feature.lengths = lengths;
        }
        first += feature.count;
    }
    if (!good || first != static_cast<std::int64_t>(batch.values.size())) batch.check_bags();
    bind_order(batch.keys, features);
    for (std::size_t f = 0; f < features.size(); ++f)
        features_[f] = given_[order_.empty() ? f : order_[f]];
    samples_ = samples;
    weights_ = batch.weights;
    if constexpr (std::is_same_v<Id, std::int64_t>) {
        wide_ = batch.values;
    } else {
        narrow_ = batch.values;
    }
}

SHARDWISE_INLINE void BatchView::select(const BatchView& from, std::span<const int> features) {
    samples_ = from.samples_;
    narrow_ = from.narrow_;
    wide_ = from.wide_;
    weights_ = from.weights_;
    features_.clear();
    for (const int feature : features)
        features_.push_back(from.of(feature));
}

SHARDWISE_INLINE void BatchView::spread(std::span<const int> given, std::size_t features) {
    SHARDWISE_ASSERT(given.size() == features_.size());
    given_.swap(features_);
    none_.assign_zero(given.size() == features ? 0 : static_cast<std::size_t>(samples_));
    features_.assign(features, {.first = 0, .count = 0, .lengths = none_.data()});
    for (std::size_t i = 0; i < given.size(); ++i)
        features_[static_cast<std::size_t>(given[i])] = given_[i];
}

SHARDWISE_INLINE void BatchView::cut_out(const BatchView& from, const BatchView* before, std::int64_t sample,
                                         std::int64_t samples) {
    begin(samples, from.narrow_, from.wide_, from.weights_);
    for (int f = 0; f < from.features(); ++f) {
        const std::int64_t first = before == nullptr ? from.first_value(f) : before->first_value(f) + before->values(f);
        const std::int32_t* lengths = from.lengths(f);
        std::int64_t count = samples;
        if (lengths != nullptr) {
            lengths += sample;
            count = std::accumulate(lengths, lengths + samples, std::int64_t{0});
            if (std::all_of(lengths, lengths + samples, [](std::int32_t length) { return length == 1; }))
                lengths = nullptr;
        }
        add_feature(first, count, lengths);
    }
}

SHARDWISE_INLINE void BatchView::narrow_to(const BatchView& part) {
    samples_ = part.samples_;
    features_ = part.features_;
}

SHARDWISE_INLINE void deal_shares(const BatchView& all, std::vector<BatchShare>& shares) {
    const BatchView* before = nullptr;
    std::int64_t sample = 0;
    for (BatchShare& share : shares) {
        share.batch.cut_out(all, before, sample, share.samples);
        before = &share.batch;
        sample += share.samples;
    }
}

SHARDWISE_INLINE void BatchView::begin(std::int64_t samples, std::span<const std::int32_t> narrow,
                                       std::span<const std::int64_t> wide, std::span<const float> weights) {
    samples_ = samples;
    narrow_ = narrow;
    wide_ = wide;
    weights_ = weights;
    features_.clear();
}

SHARDWISE_INLINE void BatchView::add_feature(std::int64_t first, std::int64_t count, const std::int32_t* lengths) {
    features_.push_back({.first = first, .count = count, .lengths = lengths});
}

SHARDWISE_INLINE void BatchView::clear() noexcept {
    samples_ = 0;
    std::fill(features_.begin(), features_.end(), Feature{});
    weights_ = {};
    narrow_ = {};
    wide_ = {};
}

SHARDWISE_INLINE void BatchView::bind_order(std::span<const std::string> keys,
                                            const std::vector<std::string>& features) {
    order_.clear();
    if (std::equal(keys.begin(), keys.end(), features.begin(), features.begin() + std::ssize(keys))) return;
    for (const std::string& feature : features) {
        const auto it = std::find(keys.begin(), keys.end(), feature);
        if (it == keys.end()) throw BadInput{concat({"the batch has no feature '", feature, "'"})};
        order_.push_back(static_cast<std::size_t>(it - keys.begin()));
    }
}

#if defined(SHARDWISE_SOURCE)
template void BatchView::bind(const JaggedView<std::int32_t>&, const std::vector<std::string>&);
template void BatchView::bind(const JaggedView<std::int64_t>&, const std::vector<std::string>&);
#endif

}  // namespace shardwise::inline SHARDWISE_ABI::steps
