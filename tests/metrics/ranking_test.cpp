// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/metrics/ranking.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/metrics/auc.hpp"

namespace {
using shardwise::RankingSums;

RC_GTEST_PROP(RankingSums, IsTheMeanOfTheSamplesOwnAuc, ()) {
    const auto candidates = *rc::gen::inRange<std::int64_t>(2, 6);
    const auto samples = *rc::gen::inRange<std::int64_t>(1, 20);
    std::vector<float> scores;  // few values, so that many tie
    for (std::int64_t i = 0; i < samples * candidates; ++i)
        scores.push_back(static_cast<float>(*rc::gen::inRange(-2, 3)));
    std::vector<float> labels(static_cast<std::size_t>(candidates), 0.0F);
    labels[0] = 1.0F;
    double mean = 0;
    RankingSums first;
    RankingSums rest;
    const std::int64_t cut = *rc::gen::inRange<std::int64_t>(0, samples + 1) * candidates;
    for (std::int64_t s = 0; s < samples; ++s)
        mean +=
            shardwise::auc(std::span{scores}.subspan(static_cast<std::size_t>(s * candidates), labels.size()), labels) /
            static_cast<double>(samples);
    first.add(std::span<const float>{scores}.first(static_cast<std::size_t>(cut)), candidates);
    rest.add(std::span<const float>{scores}.subspan(static_cast<std::size_t>(cut)), candidates);
    RC_ASSERT(first.pairs + rest.pairs == samples * (candidates - 1));
    rest += first;
    RC_ASSERT(std::abs(rest.auc() - mean) < 1e-12);
}

TEST(RankingSums, TellsWhatCannotBeRanked) {
    RankingSums sums;
    EXPECT_TRUE(std::isnan(sums.auc()));
    const std::vector<float> scores{1, 0, std::numeric_limits<float>::quiet_NaN(), 2};
    EXPECT_THROW(sums.add(std::span<const float>{scores}, 3), shardwise::BadInput);
    EXPECT_THROW(sums.add(std::span<const float>{scores}, 1), shardwise::BadInput);
    EXPECT_EQ(sums.pairs, 0);
    sums.add(std::span<const float>{scores}.first(2), 2);
    EXPECT_EQ(sums.auc(), 1.0);
    sums.add(std::span<const float>{scores}, 2);
    EXPECT_TRUE(std::isnan(sums.auc()));
}

}  // namespace
