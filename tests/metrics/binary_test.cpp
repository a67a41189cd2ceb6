// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/metrics/binary.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/core/error.hpp"

namespace shardwise_test {
namespace {

using shardwise::BadInput;
using shardwise::BinarySums;

constexpr float infinity = std::numeric_limits<float>::infinity();

BinarySums sums_of(const std::vector<float>& logits, const std::vector<float>& labels) {
    BinarySums sums;
    sums.add_logits(logits, labels);
    return sums;
}

TEST(LogLoss, IsMinusTheLogarithmOfTheProbability) {
    for (double logit = -10; logit <= 10; logit += 0.37) {
        const long double p = 1 / (1 + std::exp(static_cast<long double>(-logit)));
        const auto click = static_cast<double>(-std::log(p));
        const auto none = static_cast<double>(-std::log1p(-p));
        EXPECT_NEAR(shardwise::log_loss(logit, true), click, 1e-14 * (1 + click));
        EXPECT_NEAR(shardwise::log_loss(logit, false), none, 1e-14 * (1 + none));
    }
    EXPECT_DOUBLE_EQ(shardwise::log_loss(0, true), std::log(2.0));
}

TEST(LogLoss, IsRightForLogitsOfAnySize) {
    EXPECT_DOUBLE_EQ(shardwise::log_loss(40, true), std::exp(-40.0));
    EXPECT_DOUBLE_EQ(shardwise::log_loss(-40, false), std::exp(-40.0));
    EXPECT_EQ(shardwise::log_loss(1e6, false), 1e6);
    EXPECT_EQ(shardwise::log_loss(-1e6, true), 1e6);
    EXPECT_EQ(shardwise::log_loss(1e6, true), 0);
    EXPECT_EQ(shardwise::log_loss(infinity, true), 0);
    EXPECT_EQ(shardwise::log_loss(-infinity, false), 0);
    EXPECT_EQ(shardwise::log_loss(infinity, false), infinity);
    EXPECT_EQ(shardwise::log_loss(-infinity, true), infinity);
    EXPECT_TRUE(std::isnan(shardwise::log_loss(std::nan(""), true)));
    EXPECT_TRUE(std::isnan(shardwise::log_loss(std::nan(""), false)));
}

TEST(BinarySums, OfAKnownCase) {
    // Probabilities 1/2, 3/4, 1/4, 3/4.
    const float three = std::log(3.0F);
    const BinarySums sums = sums_of({0, three, -three, three}, {0, 1, 0, 0});
    EXPECT_EQ(sums.samples, 4);
    EXPECT_EQ(sums.positives, 1);
    EXPECT_EQ(sums.correct, 3);  // a half predicts 0
    const double loss = (-std::log(0.5) - std::log(0.75) - std::log(0.75) - std::log(0.25)) / 4;
    EXPECT_NEAR(sums.log_loss(), loss, 1e-7);
    EXPECT_EQ(sums.base_rate(), 0.25);
    EXPECT_EQ(sums.accuracy(), 0.75);
    EXPECT_NEAR(sums.calibration(), 2.25, 1e-6);
    const double entropy = -0.25 * std::log(0.25) - 0.75 * std::log(0.75);
    EXPECT_NEAR(sums.normalized_entropy(), loss / entropy, 1e-7);
}

TEST(BinarySums, PredictingTheBaseRateHasANormalizedEntropyOfOne) {
    for (const std::size_t positives : {1U, 100U, 500U, 999U}) {
        const double p = static_cast<double>(positives) / 1000;
        std::vector<float> labels(1000, 0.0F);
        for (std::size_t i = 0; i != positives; ++i)
            labels[i] = 1;
        const BinarySums sums = sums_of(std::vector<float>(1000, static_cast<float>(std::log(p / (1 - p)))), labels);
        EXPECT_NEAR(sums.normalized_entropy(), 1, 1e-9);
        EXPECT_NEAR(sums.calibration(), 1, 1e-6);
    }
}

TEST(BinarySums, SaysWhatIsUndefined) {
    const BinarySums none;
    for (const double value :
         {none.base_rate(), none.log_loss(), none.normalized_entropy(), none.accuracy(), none.calibration()})
        EXPECT_TRUE(std::isnan(value));
    const BinarySums no_clicks = sums_of({0, 0}, {0, 0});
    EXPECT_EQ(no_clicks.base_rate(), 0);
    EXPECT_DOUBLE_EQ(no_clicks.log_loss(), std::log(2.0));
    EXPECT_TRUE(std::isnan(no_clicks.normalized_entropy()));
    EXPECT_TRUE(std::isnan(no_clicks.calibration()));
    EXPECT_EQ(no_clicks.accuracy(), 1);
    const BinarySums clicks = sums_of({0, 0}, {1, 1});
    EXPECT_TRUE(std::isnan(clicks.normalized_entropy()));
    EXPECT_EQ(clicks.calibration(), 0.5);
    EXPECT_EQ(clicks.accuracy(), 0);
}

TEST(BinarySums, ANumberThatIsNoneShows) {
    const BinarySums sums = sums_of({0, std::nanf("")}, {0, 1});
    for (const double value : {sums.log_loss(), sums.normalized_entropy(), sums.accuracy(), sums.calibration()})
        EXPECT_TRUE(std::isnan(value));
    const BinarySums certain = sums_of({infinity, -infinity}, {1, 0});
    EXPECT_EQ(certain.log_loss(), 0);
    EXPECT_EQ(certain.accuracy(), 1);
    EXPECT_EQ(certain.calibration(), 1);
    EXPECT_EQ(sums_of({infinity, 0}, {0, 1}).log_loss(), infinity);
    EXPECT_EQ(sums_of({infinity, 0}, {0, 1}).accuracy(), 0);
}

RC_GTEST_PROP(BinarySums, MergeLikeOneBatch, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    BinarySums merged;
    std::vector<float> logits;
    std::vector<float> labels;
    for (int rank = 0; rank != 3; ++rank) {
        BinarySums part;
        for (std::uint64_t i = random() % 20; i != 0; --i) {
            logits.push_back(static_cast<float>(random() % 1000) / 100 - 5);
            labels.push_back(static_cast<float>(random() % 2));
            part.add_logits({&logits.back(), 1}, {&labels.back(), 1});
        }
        BinarySums gathered;  // as ranks send it
        std::memcpy(static_cast<void*>(&gathered), &part, sizeof part);
        merged += gathered;
    }
    const BinarySums whole = sums_of(logits, labels);
    RC_ASSERT(merged.samples == whole.samples);
    RC_ASSERT(merged.positives == whole.positives);
    RC_ASSERT(merged.correct == whole.correct);
    RC_ASSERT(std::abs(merged.loss - whole.loss) <= 1e-12 * (1 + whole.loss));
    RC_ASSERT(std::abs(merged.predicted - whole.predicted) <= 1e-12 * (1 + whole.predicted));
}

TEST(BinarySums, RefuseWhatAreNoLabels) {
    BinarySums sums;
    const std::vector<float> logits = {1, 2};
    EXPECT_THROW(sums.add_logits(logits, std::vector<float>{1}), BadInput);
    EXPECT_THROW(sums.add_logits(logits, std::vector<float>{1, 0.5F}), BadInput);
    EXPECT_EQ(sums.samples, 0);
    EXPECT_EQ(sums.loss, 0);
}

}  // namespace
}  // namespace shardwise_test
