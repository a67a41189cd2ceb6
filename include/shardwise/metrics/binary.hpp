// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "shardwise/core/config.hpp"
#include "shardwise/metrics/labels.hpp"

/// \file
/// Log loss, normalized entropy, accuracy and calibration of binary predictions.

namespace shardwise::inline SHARDWISE_ABI {

/// -log of the probability that sigmoid(logit) gives to `label` (0 or 1), in nats. Neither overflows nor cancels: for
/// a logit of any size it is right to the last few bits. An infinite logit gives 0 or infinity, NaN gives NaN.
[[nodiscard]] inline double log_loss(double logit, bool label) noexcept {
    const double against = label ? -logit : logit;
    return std::max(against, 0.0) + std::log1p(std::exp(-std::abs(against)));
}

/// Sums over samples from which all metrics of binary predictions follow. Trivially copyable, so that ranks can gather
/// and add them; added up in one order (ranks ascending, say), the sums have the same bits everywhere.
struct BinarySums {
    std::int64_t samples = 0;
    std::int64_t positives = 0;  ///< samples of label 1
    std::int64_t correct = 0;    ///< samples where logit > 0 is the label
    double loss = 0;             ///< sum of log losses, nats
    double predicted = 0;        ///< sum of predicted probabilities

    /// Adds samples in order. Not collective. \param logits (samples) \param labels (samples), each 0 or 1
    /// \throws BadInput when sizes differ or a label is neither; nothing is added then
    void add_logits(std::span<const float> logits, std::span<const float> labels) {
        require_binary_labels(logits.size(), labels);
        for (std::size_t i = 0; i != labels.size(); ++i) {
            const auto logit = static_cast<double>(logits[i]);
            const bool label = labels[i] == 1.0F;
            positives += label ? 1 : 0;
            correct += (logit > 0) == label ? 1 : 0;
            loss += shardwise::log_loss(logit, label);
            predicted += 1 / (1 + std::exp(-logit));
        }
        samples += static_cast<std::int64_t>(labels.size());
    }

    BinarySums& operator+=(const BinarySums& other) noexcept {
        samples += other.samples;
        positives += other.positives;
        correct += other.correct;
        loss += other.loss;
        predicted += other.predicted;
        return *this;
    }

    // Of no samples, and where a prediction was NaN, every metric is NaN.

    /// Share of positive samples.
    [[nodiscard]] double base_rate() const noexcept { return mean(static_cast<double>(positives)); }
    /// Mean log loss, nats.
    [[nodiscard]] double log_loss() const noexcept { return mean(loss); }
    /// Mean log loss over the entropy of the base rate: below 1 is better than always predicting the base rate. (He et
    /// al., "Practical lessons from predicting clicks on ads at Facebook", 2014.) NaN when all labels are the same:
    /// their entropy is 0.
    [[nodiscard]] double normalized_entropy() const noexcept {
        if (positives == 0 || positives == samples) return undefined;
        const double p = base_rate();
        return log_loss() / -(p * std::log(p) + (1 - p) * std::log1p(-p));
    }
    /// Share of samples where predicting 1 for probabilities above one half is right.
    [[nodiscard]] double accuracy() const noexcept {
        return std::isnan(predicted) ? undefined : mean(static_cast<double>(correct));
    }
    /// Mean prediction over mean label: above 1, clicks are overpredicted. NaN when no label is 1.
    [[nodiscard]] double calibration() const noexcept {
        return positives == 0 ? undefined : predicted / static_cast<double>(positives);
    }

  private:
    static constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
    [[nodiscard]] double mean(double sum) const noexcept {
        return samples == 0 ? undefined : sum / static_cast<double>(samples);
    }
};
static_assert(std::is_trivially_copyable_v<BinarySums>);

}  // namespace shardwise::inline SHARDWISE_ABI
