// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/batch.hpp"
#include "shardwise/data/keyed_random.hpp"
#include "shardwise/data/slice.hpp"
#include "shardwise/data/zipf.hpp"

/// \file
/// Synthetic click data with a planted signal.

namespace shardwise::inline SHARDWISE_ABI {

/// The number of ids in a bag: uniform in [smallest, largest].
struct BagSizes {
    std::int32_t smallest = 1;
    std::int32_t largest = 1;

    [[nodiscard]] static constexpr BagSizes single() noexcept { return {1, 1}; }
    [[nodiscard]] static constexpr BagSizes fixed(std::int32_t ids) noexcept { return {ids, ids}; }
    [[nodiscard]] static constexpr BagSizes up_to(std::int32_t ids) noexcept { return {0, ids}; }
    /// Every bag has one id: batches then carry no lengths.
    [[nodiscard]] constexpr bool one() const noexcept { return smallest == 1 && largest == 1; }
    [[nodiscard]] constexpr double mean() const noexcept { return 0.5 * smallest + 0.5 * largest; }
};

/// What a ClickGenerator makes.
struct GeneratorOptions {
    std::vector<std::int64_t> rows = {};  ///< rows of each feature's table
    double exponent = 1.05;               ///< of the Zipf distribution of rows; row 0 is the hottest
    std::vector<BagSizes> bags = {{}};    ///< ids in every bag; one for all features, or one each
    bool weights = false;                 ///< a weight in [0.5, 1.5) for every id
    std::int64_t dense_columns = 13;
    /// Groups of features that belong together: not what ids do one by one is hidden then, but what two features of a
    /// group do together. (One feature still tells a little, by the mean of the others.) At most half as many as
    /// features; 0: none
    int groups = 0;
    double bias = -1.0;      ///< of the logit
    double signal = 1.4;     ///< standard deviation of the logit, half of its variance from dense, half from ids
    std::uint64_t seed = 1;  ///< names the data set and what it hides
    std::int64_t first = 0;  ///< the data set starts at this sample: held-out data starts behind the training data
    std::int64_t samples = std::numeric_limits<std::int64_t>::max();  ///< its length; endless unless given
    Slice slice = {};                                                 ///< the batch size, and which rank's batches
};

/// A source of synthetic batches. Sample i is a pure function of (seed, i): any rank generates any slice, and the data
/// set is the same at every world size (to the bit, given the same C library).
///
/// dense: bell-shaped, variance 1, in [-3.5, 3.5]. ids: Zipf. The label is 1 with probability sigmoid(logit), where
/// logit = bias + w . dense + sum over ids of weight * effect(feature, row); the effects are bell-shaped and a pure
/// function of (seed, feature, row). With groups, what a feature's ids add up to does nothing alone: the logit is bias
/// + w . dense + the sum over all pairs of features of one group of the products of what they add up to. With the
/// default bias and signal, ranking by the logit itself has an AUC of about 0.8, which no model can beat. Not
/// collective, not thread safe.
class ClickGenerator {
  public:
    /// \throws BadInput when a table has no row, or a size, exponent, signal or slice is not valid
    explicit ClickGenerator(GeneratorOptions options) : options_{std::move(options)} {
        const auto& o = options_;
        o.slice.validate();
        if (o.bags.size() != 1 && o.bags.size() != o.rows.size())
            throw BadInput{concat(
                {o.bags.size(), " sizes of bags for ", o.rows.size(), " features: give one for all, or one each"})};
        for (const BagSizes& bags : o.bags)
            if (bags.smallest < 0 || bags.largest < bags.smallest)
                throw BadInput{
                    concat({"bags of ", bags.smallest, " to ", bags.largest, " ids: give 0 <= smallest <= largest"})};
        single_ = std::all_of(o.bags.begin(), o.bags.end(), [](const BagSizes& bags) { return bags.one(); });
        if (o.dense_columns < 0 || o.samples < 0 || o.first < 0)
            throw BadInput{"a negative number of dense columns or samples"};
        if (!std::isfinite(o.bias) || !(o.signal >= 0) || !std::isfinite(o.signal))
            throw BadInput{"bias and signal: give finite numbers, the signal not negative"};
        for (const std::int64_t rows : o.rows)
            zipf_.emplace_back(rows, o.exponent);

        const double half = o.signal * std::sqrt(0.5);
        double squares = 0;
        for (std::int64_t c = 0; c != o.dense_columns; ++c) {
            dense_effects_.push_back(KeyedRandom{o.seed, dense_effect, static_cast<std::uint64_t>(c)}.bell());
            squares += dense_effects_.back() * dense_effects_.back();
        }
        if (squares > 0)
            for (double& effect : dense_effects_)
                effect *= half / std::sqrt(squares);
        if (o.groups != 0) {
            row_scale_ = std::sqrt(half / std::sqrt(form_groups()));
            return;
        }
        double ids = 0;
        for (std::size_t f = 0; f != o.rows.size(); ++f)
            ids += bags_of(f).mean();
        row_scale_ = half / std::sqrt(std::max(1.0, ids));
    }

    /// Generates this rank's next batch; it may be empty.
    /// \returns false at the end, on every rank after as many batches
    bool next(ClickBatch& batch) {
        const Slice& slice = options_.slice;
        const std::int64_t left = options_.samples - position_;
        if (left == 0) return false;
        generate(position_ + slice.before(), slice.share(left), batch);
        position_ += std::min(slice.global_batch(), left);
        return true;
    }

    /// Back to the first sample.
    void rewind() noexcept { position_ = 0; }

    /// Generates samples [first, first + count) of the data set, wherever next() stands and whatever its length.
    /// Cost: a Zipf draw an id; no allocation once the batch has been as large.
    void generate(std::int64_t first, std::int64_t count, ClickBatch& batch) {
        const auto features = static_cast<std::int64_t>(zipf_.size());
        batch.resize_single(count, options_.dense_columns, features);
        batch.ids.values.clear();
        logits_.assign(static_cast<std::size_t>(count), options_.bias);
        group_sums_.assign(logits_.size() * static_cast<std::size_t>(options_.groups), 0.0);
        const auto start = static_cast<std::uint64_t>(options_.first + first);

        float* dense = batch.dense.data();
        for (std::size_t s = 0; s != logits_.size(); ++s) {
            KeyedRandom random{options_.seed, dense_value, start + s};
            for (const double effect : dense_effects_) {
                *dense = static_cast<float>(random.bell());
                logits_[s] += effect * static_cast<double>(*dense++);
            }
        }
        // Loops of one kind of work each: independent steps of short loops run side by side.
        for (std::size_t f = 0; f != zipf_.size(); ++f) {
            const std::size_t drawn = batch.ids.values.size();
            const KeyedRandom bags{options_.seed, bag_values + f};
            for (std::size_t s = 0; s != logits_.size(); ++s)
                draw_bag(zipf_[f], bags_of(f), KeyedRandom{bags, start + s}, batch.ids);
            add_effects(f, batch.ids, drawn);
        }
        for (std::size_t s = 0; s != logits_.size(); ++s) {
            KeyedRandom random{options_.seed, label_value, start + s};
            batch.labels[s] = random.uniform() * (1 + std::exp(-logits_[s])) < 1 ? 1.0F : 0.0F;
        }
    }

    /// The true logits of the batch generated last: what an ideal model predicts. (samples)
    [[nodiscard]] std::span<const double> logits() const noexcept { return logits_; }

    /// What one id of weight 1 adds to the logit; with groups, to the factor of its feature.
    [[nodiscard]] double effect(std::int64_t feature, std::int64_t row) const noexcept {
        const auto stream = static_cast<std::uint64_t>(feature) + row_effects;
        return row_scale_ * KeyedRandom{options_.seed, stream, static_cast<std::uint64_t>(row)}.bell();
    }
    /// (feature): its group; empty without groups.
    [[nodiscard]] std::span<const int> groups() const noexcept { return group_of_; }
    /// What each dense column adds to the logit, a unit of its value. (dense_columns)
    [[nodiscard]] std::span<const double> dense_effects() const noexcept { return dense_effects_; }

  private:
    // What random streams are for; a feature has two of its own.
    static constexpr std::uint64_t dense_effect = 0;
    static constexpr std::uint64_t dense_value = 1;
    static constexpr std::uint64_t label_value = 2;
    static constexpr std::uint64_t group_order = 3;
    static constexpr std::uint64_t row_effects = std::uint64_t{1} << 32;
    static constexpr std::uint64_t bag_values = std::uint64_t{2} << 32;

    [[nodiscard]] const BagSizes& bags_of(std::size_t feature) const noexcept {
        return options_.bags[options_.bags.size() == 1 ? 0 : feature];
    }

    // Deals the features, in an order of the seed's, into groups whose sizes differ by one at most.
    // \returns the number of pairs of ids inside groups, of features of one id at least
    double form_groups() {
        const auto features = static_cast<std::int64_t>(options_.rows.size());
        if (options_.groups < 0 || 2 * std::int64_t{options_.groups} > features)
            throw BadInput{concat({options_.groups, " groups of ", features,
                                   " features: give at most half as many groups as features, or 0"})};
        std::vector<std::pair<std::uint64_t, std::size_t>> order;
        for (std::size_t f = 0; f != options_.rows.size(); ++f)
            order.emplace_back(KeyedRandom{options_.seed, group_order, f}.bits(), f);
        std::sort(order.begin(), order.end());
        group_of_.resize(order.size());
        std::vector<double> sizes(static_cast<std::size_t>(options_.groups));
        double pairs = 0;
        for (std::size_t i = 0; i != order.size(); ++i) {
            const std::size_t group = i % sizes.size();
            const double ids = std::max(1.0, bags_of(order[i].second).mean());
            group_of_[order[i].second] = static_cast<int>(group);
            pairs += ids * sizes[group];
            sizes[group] += ids;
        }
        return pairs;
    }

    // Appends one bag.
    void draw_bag(const Zipf& zipf, const BagSizes& bags, KeyedRandom random, JaggedBatch<std::int64_t>& ids) const {
        std::int64_t size = 1;
        if (!bags.one()) size = bags.smallest + random.below(std::int64_t{bags.largest} - bags.smallest + 1);
        if (!single_) ids.lengths.push_back(static_cast<std::int32_t>(size));
        for (std::int64_t i = 0; i != size; ++i) {
            ids.values.push_back(zipf(random));
            if (options_.weights) ids.weights.push_back(static_cast<float>(0.5 + random.uniform()));
        }
    }

    // Adds to the logits what the bags of a feature do, alone or with those of its group before it. Its ids are those
    // from `first` on.
    void add_effects(std::size_t feature, const JaggedBatch<std::int64_t>& ids, std::size_t first) {
        effects_.resize(ids.values.size() - first);
        const KeyedRandom rows{options_.seed, row_effects + feature};
        const std::int64_t* row = ids.values.data() + first;
        for (std::size_t i = 0; i != effects_.size(); ++i)
            effects_[i] = row_scale_ * KeyedRandom{rows, static_cast<std::uint64_t>(row[i])}.bell();
        if (options_.weights)
            for (std::size_t i = 0; i != effects_.size(); ++i)
                effects_[i] *= static_cast<double>(ids.weights[first + i]);
        const double* effect = effects_.data();
        double* const group = group_of_.empty()
                                  ? nullptr
                                  : group_sums_.data() + logits_.size() * static_cast<std::size_t>(group_of_[feature]);
        for (std::size_t s = 0; s != logits_.size(); ++s) {
            const std::int32_t size = single_ ? 1 : ids.lengths[feature * logits_.size() + s];
            double sum = 0;
            for (std::int32_t i = 0; i != size; ++i)
                sum += *effect++;
            logits_[s] += group == nullptr ? sum : sum * group[s];
            if (group != nullptr) group[s] += sum;
        }
    }

    GeneratorOptions options_;
    std::vector<Zipf> zipf_;  // one a feature
    std::vector<double> dense_effects_;
    double row_scale_ = 0;
    bool single_ = true;              // every bag has one id
    std::vector<int> group_of_;       // (feature), or empty
    std::vector<double> logits_;      // (samples)
    std::vector<double> effects_;     // of the ids of one feature
    std::vector<double> group_sums_;  // (group, samples): of the features so far
    std::int64_t position_ = 0;       // first sample of the next global batch
};

}  // namespace shardwise::inline SHARDWISE_ABI
