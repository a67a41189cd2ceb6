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
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/metrics/labels.hpp"

/// \file
/// Area under the ROC curve in constant memory.

namespace shardwise::inline SHARDWISE_ABI {

/// AUC from counts of labels in equal bins of the predicted probability: takes any number of samples, and merges
/// across ranks by adding counts. Two samples in one bin count as a tie, hence error_bound().
///
/// A prediction of NaN makes the value NaN. Not collective, not thread safe. Memory: 16 bytes a bin.
class StreamingAuc {
  public:
    /// Without samples. \param bins at least 1 \throws BadInput otherwise
    explicit StreamingAuc(std::int64_t bins = 1 << 16) {
        if (bins < 1) throw BadInput{concat({"an AUC of ", bins, " bins: give at least 1"})};
        counts_.resize(2 * static_cast<std::size_t>(bins) + 1);
    }

    /// Adds samples. \param probabilities (samples), in [0, 1] \param labels (samples), each 0 or 1
    /// \throws BadInput when one is not, naming sample and value; nothing is added then
    void add(std::span<const float> probabilities, std::span<const float> labels) {
        require_binary_labels(probabilities.size(), labels);
        for (std::size_t i = 0; i != labels.size(); ++i)
            if (probabilities[i] < 0 || probabilities[i] > 1)
                throw BadInput{concat(
                    {"sample ", i, ": a prediction of ", probabilities[i], ", expected a probability from 0 to 1"})};
        for (std::size_t i = 0; i != labels.size(); ++i)
            add_sample(static_cast<double>(probabilities[i]), labels[i]);
    }

    /// As add(), from logits. \param logits (samples) \throws BadInput for labels
    void add_logits(std::span<const float> logits, std::span<const float> labels) {
        require_binary_labels(logits.size(), labels);
        for (std::size_t i = 0; i != labels.size(); ++i)
            add_sample(1 / (1 + std::exp(-static_cast<double>(logits[i]))), labels[i]);
    }

    /// All that it knows, to be summed over ranks: negatives by bin, positives by bin, predictions of NaN.
    /// \returns (2 * bins + 1)
    [[nodiscard]] std::span<const std::int64_t> counts() const noexcept { return counts_; }
    /// Adds another's counts(), or a sum of these. \throws BadInput when they are of another number of bins
    void merge(std::span<const std::int64_t> counts) {
        if (counts.size() != counts_.size())
            throw BadInput{concat({"counts of ", counts.size(), " numbers, expected ", counts_.size(),
                                   ": merge an AUC of as many bins"})};
        for (std::size_t i = 0; i != counts.size(); ++i)
            counts_[i] += counts[i];
    }
    /// Forgets all samples.
    void reset() { std::fill(counts_.begin(), counts_.end(), 0); }

    /// The AUC of the binned predictions; NaN when all labels are the same or there are none, or when a
    /// prediction was NaN
    [[nodiscard]] double value() const { return fold().value; }
    /// How far value() can be from the AUC of the predictions themselves: half of the share of pairs that
    /// fall into one bin. NaN where value() is
    [[nodiscard]] double error_bound() const { return fold().error_bound; }

  private:
    struct Result {
        double value = std::numeric_limits<double>::quiet_NaN();
        double error_bound = std::numeric_limits<double>::quiet_NaN();
    };

    [[nodiscard]] std::size_t bins() const noexcept { return counts_.size() / 2; }

    void add_sample(double probability, float label) {
        if (std::isnan(probability)) {
            ++counts_.back();
            return;
        }
        const auto bin = static_cast<std::size_t>(probability * static_cast<double>(bins()));
        ++counts_[std::min(bin, bins() - 1) + (label == 1.0F ? bins() : 0)];
    }

    [[nodiscard]] Result fold() const {
        double won = 0;
        double tied = 0;
        double below = 0;  // negatives in lower bins
        double positives = 0;
        for (std::size_t bin = 0; bin != bins(); ++bin) {
            const auto negative = static_cast<double>(counts_[bin]);
            const auto positive = static_cast<double>(counts_[bins() + bin]);
            won += positive * below;
            tied += positive * negative;
            below += negative;
            positives += positive;
        }
        const double pairs = positives * below;
        if (pairs == 0 || counts_.back() != 0) return {};
        return {(won + tied / 2) / pairs, tied / 2 / pairs};
    }

    std::vector<std::int64_t> counts_;  // (2 * bins + 1)
};

}  // namespace shardwise::inline SHARDWISE_ABI
