// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/jagged.hpp"

/// \file
/// A batch on a lane, whatever the width of its ids, feature by feature of the plan that it runs through.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// Refers to the ids and weights of a user's batch until they have left (Split copies what later steps need), and has
/// the lengths of its bags for as long as the flight lasts.
class BatchView {
  public:
    BatchView() = default;
    /// Takes its memory from `resource`.
    BatchView& on(std::pmr::memory_resource& resource) noexcept {
        lengths_.on(resource);
        none_.on(resource);
        return *this;
    }

    /// Binds a batch to a layer with these features. One pass over its lengths. \throws BadInput when it does not fit
    template <class Id>
    void bind(const JaggedView<Id>& batch, const std::vector<std::string>& features);
    /// Becomes some features of another, which has to stay.
    void select(const BatchView& from, std::span<const int> features);
    /// Becomes a batch of these ids (of either width) and weights, which have to stay, without features yet.
    void begin(std::int64_t samples, std::span<const std::int32_t> narrow, std::span<const std::int64_t> wide,
               std::span<const float> weights);
    /// One more feature: `count` ids from `first` on. \param lengths  (sample), which have to stay
    void add_feature(std::int64_t first, std::int64_t count, const std::int32_t* lengths);
    /// Of a batch of some of a layer's features: becomes one of all, the others without an id.
    /// \param given  (feature of the batch): its number in the layer
    void spread(std::span<const int> given, std::size_t features);
    /// Becomes some samples of another, which has to stay. \param before  the samples before them; null: they are the
    /// first \param sample  the number of the first
    void cut_out(const BatchView& from, const BatchView* before, std::int64_t sample, std::int64_t samples);
    /// Becomes a part that was cut out of it.
    void narrow_to(const BatchView& part);
    /// Where each sample's bag has other lengths than was thought. \param lengths  (sample), which have to stay
    void set_lengths(int feature, const std::int32_t* lengths) {
        features_[static_cast<std::size_t>(feature)].lengths = lengths;
    }
    /// Becomes the batch without samples, which every plan accepts.
    void clear() noexcept;
    /// Has no weights: every id counts once.
    void drop_weights() noexcept { weights_ = {}; }

    [[nodiscard]] std::int64_t samples() const noexcept { return samples_; }
    [[nodiscard]] int features() const noexcept { return static_cast<int>(features_.size()); }
    [[nodiscard]] bool weighted() const noexcept { return !weights_.empty(); }
    /// Where a feature has its ids among the values.
    [[nodiscard]] std::int64_t first_value(int feature) const noexcept { return of(feature).first; }
    /// How many ids a feature has.
    [[nodiscard]] std::int64_t values(int feature) const noexcept { return of(feature).count; }
    /// (sample): the lengths of a feature's bags; null where each has one id.
    [[nodiscard]] const std::int32_t* lengths(int feature) const noexcept { return of(feature).lengths; }
    [[nodiscard]] std::int64_t length(int feature, std::int64_t sample) const noexcept {
        const Feature& f = of(feature);
        return f.lengths == nullptr ? 1 : f.lengths[sample];
    }
    [[nodiscard]] std::int64_t id(std::int64_t value) const noexcept {
        const auto i = static_cast<std::size_t>(value);
        return narrow_.empty() ? wide_[i] : narrow_[i];
    }
    [[nodiscard]] float weight(std::int64_t value) const noexcept {
        return weights_.empty() ? 1.0F : weights_[static_cast<std::size_t>(value)];
    }
    /// Calls `use` with the ids of a feature, a span of their own width.
    template <class Use>
    void with_ids(int feature, Use use) const {
        const auto first = static_cast<std::size_t>(of(feature).first);
        const auto count = static_cast<std::size_t>(of(feature).count);
        if (narrow_.empty()) {
            use(wide_.subspan(count == 0 ? 0 : first, count));
        } else {
            use(narrow_.subspan(first, count));
        }
    }
    /// What the lengths take.
    [[nodiscard]] std::int64_t bytes() const noexcept {
        return static_cast<std::int64_t>(lengths_.size() + none_.size()) * 4;
    }

  private:
    struct Feature {
        std::int64_t first = 0;
        std::int64_t count = 0;
        const std::int32_t* lengths = nullptr;
    };
    [[nodiscard]] const Feature& of(int feature) const noexcept { return features_[static_cast<std::size_t>(feature)]; }
    void bind_order(std::span<const std::string> keys, const std::vector<std::string>& features);

    std::int64_t samples_ = 0;
    std::span<const std::int32_t> narrow_;
    std::span<const std::int64_t> wide_;
    std::span<const float> weights_;
    std::vector<Feature> features_;
    std::vector<Feature> given_;      // (feature of the batch)
    std::vector<std::size_t> order_;  // (feature of the layer) -> feature of the batch
    Buffer<std::int32_t> lengths_;    // (feature of the batch, sample), where bags have others than 1
    Buffer<std::int32_t> none_;       // (sample): zeros, the lengths of features that are not given
};

/// The samples of one rank, in a batch of several ranks' (Ids<AtOwner>).
struct BatchShare {
    std::int64_t samples = 0;
    std::string wrong;  ///< what is wrong with its bags, of which there are none then; empty: nothing
    BatchView batch;    ///< they alone
};
/// Cuts a batch up by whose samples they are. Features that are not given have no ids. One pass over its lengths.
void deal_shares(const BatchView& all, std::vector<BatchShare>& shares);

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/lanes/batch.ipp"
#endif
