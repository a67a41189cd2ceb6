// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/jagged.hpp"

/// \file
/// A batch of a layer, whatever the width of its ids, in the layer's order of features.

namespace shardwise::inline SHARDWISE_ABI {

/// Refers to a user's batch until its ids have left (Split copies what later steps need).
class BatchView {
  public:
    BatchView() = default;

    /// Binds a batch to a layer with these features. \throws BadInput when it does not fit
    template <class Id>
    void bind(const JaggedView<Id>& batch, const std::vector<std::string>& features) {
        clear();
        batch.validate();
        if (batch.features != static_cast<std::int64_t>(features.size()))
            throw BadInput{"a batch of " + std::to_string(batch.features) + " features for a layer of " +
                           std::to_string(features.size())};
        bind_order(batch.keys, features);
        std::int64_t first = 0;
        std::vector<std::int64_t>& starts = starts_;
        starts.resize(features.size() + 1);
        for (std::int64_t f = 0; f < batch.features; ++f) {
            starts[static_cast<std::size_t>(f)] = first;
            if (batch.single()) {
                first += batch.samples;
            } else if (!batch.offsets.empty()) {
                first = batch.offsets[static_cast<std::size_t>((f + 1) * batch.samples)];
            } else {
                for (std::int64_t i = 0; i < batch.samples; ++i)
                    first += batch.length(f * batch.samples + i);
            }
        }
        starts[features.size()] = first;
        samples_ = batch.samples;
        weights_ = batch.weights;
        if constexpr (std::is_same_v<Id, std::int64_t>) {
            wide_ = batch;
            is_wide_ = true;
        } else {
            narrow_ = batch;
            is_wide_ = false;
        }
    }
    /// Becomes the batch without samples, which every layer accepts.
    void clear() noexcept {
        samples_ = 0;
        order_.clear();
        starts_.clear();
        weights_ = {};
        narrow_ = {};
        wide_ = {};
    }

    [[nodiscard]] std::int64_t samples() const noexcept { return samples_; }
    [[nodiscard]] bool weighted() const noexcept { return !weights_.empty(); }
    /// Where feature `feature` of the layer has its ids among the values.
    [[nodiscard]] std::int64_t first_value(int feature) const noexcept {
        return starts_.empty() ? 0 : starts_[position(feature)];
    }
    /// How many ids feature `feature` of the layer has.
    [[nodiscard]] std::int64_t values(int feature) const noexcept {
        return starts_.empty() ? 0 : starts_[position(feature) + 1] - starts_[position(feature)];
    }
    [[nodiscard]] std::int64_t length(int feature, std::int64_t sample) const noexcept {
        const std::int64_t bag = static_cast<std::int64_t>(position(feature)) * samples_ + sample;
        return is_wide_ ? wide_.length(bag) : narrow_.length(bag);
    }
    [[nodiscard]] std::int64_t id(std::int64_t value) const noexcept {
        return is_wide_ ? wide_.values[static_cast<std::size_t>(value)]
                        : narrow_.values[static_cast<std::size_t>(value)];
    }
    [[nodiscard]] float weight(std::int64_t value) const noexcept {
        return weights_.empty() ? 1.0F : weights_[static_cast<std::size_t>(value)];
    }
    /// Calls `use` with a pointer to the ids, of the batch's own width.
    template <class Use>
    void with_ids(Use use) const {
        if (is_wide_) {
            use(wide_.values.data());
        } else {
            use(narrow_.values.data());
        }
    }

  private:
    [[nodiscard]] std::size_t position(int feature) const noexcept {
        return order_.empty() ? static_cast<std::size_t>(feature) : order_[static_cast<std::size_t>(feature)];
    }
    void bind_order(std::span<const std::string> keys, const std::vector<std::string>& features) {
        bool same = true;
        for (std::size_t i = 0; i < keys.size(); ++i)
            same = same && keys[i] == features[i];
        if (same) return;
        for (const std::string& feature : features) {
            const auto it = std::find(keys.begin(), keys.end(), feature);
            if (it == keys.end()) {
                order_.clear();
                throw BadInput{"the batch has no feature '" + feature + "'"};
            }
            order_.push_back(static_cast<std::size_t>(it - keys.begin()));
        }
    }

    std::int64_t samples_ = 0;
    bool is_wide_ = false;
    JaggedView<std::int32_t> narrow_;
    JaggedView<std::int64_t> wide_;
    std::span<const float> weights_;
    std::vector<std::size_t> order_;    // (feature of the layer) -> feature of the batch; empty: the same
    std::vector<std::int64_t> starts_;  // (feature of the batch + 1): first value
};

}  // namespace shardwise::inline SHARDWISE_ABI
