// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// How well a model ranks the right candidate of each sample among those of the same sample.

namespace shardwise::inline SHARDWISE_ABI {

/// Counts over samples with one right candidate and several wrong ones, from which the mean AUC of a sample follows.
/// Trivially copyable, and exact: ranks gather and add them in any order.
struct RankingSums {
    std::int64_t pairs = 0;      ///< of right and wrong candidates of one sample
    std::int64_t twice_won = 0;  ///< 2 a pair in the right order, 1 a tie
    std::int64_t not_numbers = 0;

    /// Adds samples of `candidates` scores each, the first of which is the right one's. Not collective.
    /// \param scores  (samples, candidates) \param candidates  at least 2
    /// \throws BadInput when the scores are none of whole samples; nothing is added then
    template <class Score>
    void add(std::span<const Score> scores, std::int64_t candidates) {
        if (candidates < 2 || std::ssize(scores) % candidates != 0)
            throw BadInput{concat({std::ssize(scores), " scores of samples with ", candidates,
                                   " candidates: give all scores of each sample, and at least 2 candidates"})};
        for (std::size_t first = 0; first < scores.size(); first += static_cast<std::size_t>(candidates)) {
            const Score right = scores[first];
            for (const Score wrong : scores.subspan(first + 1, static_cast<std::size_t>(candidates) - 1)) {
                ++pairs;
                twice_won += right > wrong ? 2 : right == wrong ? 1 : 0;
                if constexpr (std::is_floating_point_v<Score>)
                    not_numbers += std::isnan(right) || std::isnan(wrong) ? 1 : 0;
            }
        }
    }

    RankingSums& operator+=(const RankingSums& other) noexcept {
        pairs += other.pairs;
        twice_won += other.twice_won;
        not_numbers += other.not_numbers;
        return *this;
    }

    /// The probability that a sample's right candidate has a higher score than one of its wrong ones, equal scores for
    /// one half; samples of as many candidates count alike. NaN when there is no pair, or a score is NaN.
    [[nodiscard]] double auc() const noexcept {
        if (pairs == 0 || not_numbers != 0) return std::numeric_limits<double>::quiet_NaN();
        return static_cast<double>(twice_won) / (2 * static_cast<double>(pairs));
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
