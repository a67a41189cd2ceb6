// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/metrics/labels.hpp"

/// \file
/// Area under the ROC curve, exactly.

namespace shardwise::inline SHARDWISE_ABI {

/// The area under the ROC curve: the probability that a random positive sample has a higher score than a random
/// negative one, where equal scores count one half. Logits and probabilities rank alike, so either will do; but float
/// probabilities near 0 and 1 tie where their logits do not.
///
/// Of a world: gather scores and labels of all ranks first; the order of samples does not matter.
/// Not collective. Cost: a sort, and 8 bytes a sample. Exact up to the last division, below 4e9 samples.
/// \param scores, labels  (samples); a label is 0 or 1
/// \returns NaN when the labels are all the same or there are none (no pair to compare), or when a score is NaN
/// \throws BadInput when sizes differ or a label is neither 0 nor 1
[[nodiscard]] inline double auc(std::span<const float> scores, std::span<const float> labels) {
    require_binary_labels(scores.size(), labels);
    constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
    // The score as an integer of the same order, above the label.
    std::vector<std::uint64_t> keys(scores.size());
    for (std::size_t i = 0; i != keys.size(); ++i) {
        if (std::isnan(scores[i])) return undefined;
        const auto bits = std::bit_cast<std::uint32_t>(scores[i] + 0.0F);  // -0 becomes +0
        const std::uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
        keys[i] = std::uint64_t{ordered} << 1 | (labels[i] == 1.0F ? 1 : 0);
    }
    std::sort(keys.begin(), keys.end());

    std::uint64_t positives = 0;
    std::uint64_t negatives = 0;
    std::uint64_t twice_won = 0;  // 2 a pair in the right order, 1 a tie
    for (std::size_t i = 0; i != keys.size();) {
        const std::uint64_t score = keys[i] >> 1;
        std::uint64_t equal[2] = {0, 0};
        for (; i != keys.size() && keys[i] >> 1 == score; ++i)
            ++equal[keys[i] & 1];
        twice_won += equal[1] * (2 * negatives + equal[0]);
        negatives += equal[0];
        positives += equal[1];
    }
    if (positives == 0 || negatives == 0) return undefined;
    return static_cast<double>(twice_won) / (2 * static_cast<double>(positives) * static_cast<double>(negatives));
}

}  // namespace shardwise::inline SHARDWISE_ABI
