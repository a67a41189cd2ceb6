// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/metrics/auc.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/core/error.hpp"
#include "shardwise/metrics/streaming_auc.hpp"

namespace shardwise_test {
namespace {

using shardwise::auc;
using shardwise::BadInput;
using shardwise::StreamingAuc;

struct Scored {
    std::vector<float> scores;
    std::vector<float> labels;
};

// Probabilities, often equal ones.
Scored random_scored(std::uint64_t seed) {
    std::mt19937_64 random{seed};
    const std::size_t count = random() % 60;
    const std::uint64_t distinct = 1 + random() % 100;
    const std::uint64_t rarity = 1 + random() % 5;
    Scored scored;
    for (std::size_t i = 0; i != count; ++i) {
        scored.scores.push_back(static_cast<float>(random() % (distinct + 1)) / static_cast<float>(distinct));
        scored.labels.push_back(random() % rarity == 0 ? 1.0F : 0.0F);
    }
    return scored;
}

// The definition: over all pairs of a positive and a negative sample.
double definition(const Scored& scored) {
    double won = 0;
    double pairs = 0;
    for (std::size_t p = 0; p != scored.scores.size(); ++p) {
        for (std::size_t n = 0; n != scored.scores.size(); ++n) {
            if (scored.labels[p] != 1.0F || scored.labels[n] != 0.0F) continue;
            pairs += 1;
            won += scored.scores[p] > scored.scores[n] ? 1.0 : scored.scores[p] == scored.scores[n] ? 0.5 : 0.0;
        }
    }
    return won / pairs;
}
bool same(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

std::string message(const std::vector<float>& scores, const std::vector<float>& labels) {
    try {
        static_cast<void>(auc(scores, labels));
    } catch (const BadInput& error) {
        return error.what();
    }
    return "nothing";
}

RC_GTEST_PROP(Auc, IsItsDefinition, (std::uint64_t seed)) {
    const Scored scored = random_scored(seed);
    RC_ASSERT(same(auc(scored.scores, scored.labels), definition(scored)));
}

RC_GTEST_PROP(Auc, DependsOnRanksAlone, (std::uint64_t seed)) {
    Scored scored = random_scored(seed);
    const double expected = auc(scored.scores, scored.labels);
    Scored logits = scored;
    for (float& score : logits.scores)
        score = 100 * (score - 0.5F) * std::abs(score - 0.5F);
    RC_ASSERT(same(auc(logits.scores, logits.labels), expected));
    std::reverse(scored.scores.begin(), scored.scores.end());
    std::reverse(scored.labels.begin(), scored.labels.end());
    RC_ASSERT(same(auc(scored.scores, scored.labels), expected));
    for (float& label : scored.labels)
        label = 1 - label;
    const double opposite = auc(scored.scores, scored.labels);
    RC_ASSERT(std::isnan(expected) == std::isnan(opposite));
    RC_ASSERT(!(std::abs(opposite + expected - 1) > 1e-14));
}

TEST(Auc, OfKnownCases) {
    EXPECT_EQ(auc(std::vector<float>{1, 2, 3, 4}, std::vector<float>{0, 0, 1, 1}), 1);
    EXPECT_EQ(auc(std::vector<float>{1, 2, 3, 4}, std::vector<float>{1, 1, 0, 0}), 0);
    EXPECT_EQ(auc(std::vector<float>{1, 2, 3, 4}, std::vector<float>{0, 1, 0, 1}), 0.75);
    EXPECT_EQ(auc(std::vector<float>{5, 5, 5}, std::vector<float>{0, 1, 0}), 0.5);
    EXPECT_EQ(auc(std::vector<float>{0.1F, 0.4F, 0.35F, 0.8F}, std::vector<float>{0, 0, 1, 1}), 0.75);
}

TEST(Auc, OrdersEveryKindOfFloat) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr float tiny = std::numeric_limits<float>::denorm_min();
    const std::vector<float> ascending = {-infinity, -1e30F, -1, -tiny, 0, tiny, 1, 1e30F, infinity};
    for (std::size_t positives = 1; positives != ascending.size(); ++positives) {
        std::vector<float> labels(ascending.size(), 0.0F);
        std::fill(labels.end() - static_cast<std::ptrdiff_t>(positives), labels.end(), 1.0F);
        EXPECT_EQ(auc(ascending, labels), 1);
    }
    EXPECT_EQ(auc(std::vector<float>{-0.0F, 0.0F}, std::vector<float>{1, 0}), 0.5);
    EXPECT_EQ(auc(std::vector<float>{0.0F, -0.0F}, std::vector<float>{1, 0}), 0.5);
}

TEST(Auc, IsNotANumberWithoutPairsOrWithoutAnOrder) {
    EXPECT_TRUE(std::isnan(auc({}, {})));
    EXPECT_TRUE(std::isnan(auc(std::vector<float>{1, 2}, std::vector<float>{0, 0})));
    EXPECT_TRUE(std::isnan(auc(std::vector<float>{1, 2}, std::vector<float>{1, 1})));
    EXPECT_TRUE(std::isnan(auc(std::vector<float>{1, std::nanf(""), 2}, std::vector<float>{1, 0, 0})));
}

TEST(Auc, RefusesWhatAreNoLabels) {
    EXPECT_EQ(message({1, 2}, {0}), "2 predictions with 1 labels: give one label a prediction");
    EXPECT_EQ(message({1, 2}, {0, 2}), "sample 1: a label of 2, expected 0 or 1");
    EXPECT_EQ(message({1, 2}, {0.5F, 0}), "sample 0: a label of 0.5, expected 0 or 1");
    EXPECT_EQ(message({1, 2}, {0, std::nanf("")}), "sample 1: a label of nan, expected 0 or 1");
}

TEST(Auc, CountsManyPairsExactly) {
    const std::size_t half = 200000;  // 4e10 pairs: more than 32 bits
    std::vector<float> scores(2 * half);
    std::vector<float> labels(2 * half);
    for (std::size_t i = 0; i != 2 * half; ++i) {
        scores[i] = static_cast<float>(i);
        labels[i] = i >= half ? 1.0F : 0.0F;
    }
    EXPECT_EQ(auc(scores, labels), 1);
    std::swap(labels[half - 1], labels[half]);
    EXPECT_EQ(auc(scores, labels), 1 - 1 / (static_cast<double>(half) * static_cast<double>(half)));
}

RC_GTEST_PROP(StreamingAuc, IsWithinItsBoundOfTheExactOne, (std::uint64_t seed)) {
    const Scored scored = random_scored(seed);
    const double exact = auc(scored.scores, scored.labels);
    for (const std::int64_t bins : {1, 2, 7, 100, 1 << 16}) {
        StreamingAuc streaming{bins};
        streaming.add(scored.scores, scored.labels);
        RC_ASSERT(std::isnan(streaming.value()) == std::isnan(exact));
        RC_ASSERT(std::isnan(streaming.error_bound()) == std::isnan(exact));
        if (std::isnan(exact)) continue;
        RC_ASSERT(std::abs(streaming.value() - exact) <= streaming.error_bound() + 1e-14);
        // With a bin for every value, only real ties are left.
        if (bins == 1 << 16) RC_ASSERT(std::abs(streaming.value() - exact) < 1e-14);
        if (bins == 1) RC_ASSERT(streaming.value() == 0.5);
    }
}

RC_GTEST_PROP(StreamingAuc, MergesByAddingCounts, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    StreamingAuc whole{64};
    StreamingAuc merged{64};
    std::vector<std::int64_t> sum(129);
    for (int rank = 0; rank != 3; ++rank) {
        const Scored scored = random_scored(random());
        StreamingAuc part{64};
        part.add(scored.scores, scored.labels);
        whole.add(scored.scores, scored.labels);
        merged.merge(part.counts());
        for (std::size_t i = 0; i != sum.size(); ++i)
            sum[i] += part.counts()[i];
    }
    RC_ASSERT(std::equal(sum.begin(), sum.end(), whole.counts().begin(), whole.counts().end()));
    RC_ASSERT(same(merged.value(), whole.value()));
    StreamingAuc again{64};
    again.merge(sum);
    RC_ASSERT(same(again.value(), whole.value()));
}

TEST(StreamingAuc, BinsAreEqualPartsOfTheRangeOfProbabilities) {
    StreamingAuc streaming{4};
    streaming.add(std::vector<float>{0, 0.24F, 0.25F, 0.5F, 0.99F, 1}, std::vector<float>{0, 1, 0, 1, 0, 1});
    EXPECT_EQ((std::vector<std::int64_t>{streaming.counts().begin(), streaming.counts().end()}),
              (std::vector<std::int64_t>{1, 1, 0, 1, 1, 0, 1, 1, 0}));
    // Won: 0, 2, 2 negatives below the bins of the positives; tied: 1, 0, 1; of 9 pairs.
    EXPECT_DOUBLE_EQ(streaming.value(), 5.0 / 9);
    EXPECT_DOUBLE_EQ(streaming.error_bound(), 1.0 / 9);
    streaming.reset();
    EXPECT_TRUE(std::isnan(streaming.value()));
    EXPECT_EQ(streaming.counts().size(), 9U);
}

TEST(StreamingAuc, TakesLogitsOfAnySize) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    StreamingAuc streaming{4};
    streaming.add_logits(std::vector<float>{-infinity, -1000, -2, 0, 2, 1000, infinity},
                         std::vector<float>{0, 0, 0, 1, 1, 1, 1});
    EXPECT_EQ((std::vector<std::int64_t>{streaming.counts().begin(), streaming.counts().end()}),
              (std::vector<std::int64_t>{3, 0, 0, 0, 0, 0, 1, 3, 0}));
    EXPECT_EQ(streaming.value(), 1);
}

TEST(StreamingAuc, ANumberThatIsNoneShows) {
    StreamingAuc streaming{4};
    streaming.add(std::vector<float>{0.1F, 0.9F}, std::vector<float>{0, 1});
    EXPECT_EQ(streaming.value(), 1);
    StreamingAuc other = streaming;
    streaming.add_logits(std::vector<float>{std::nanf("")}, std::vector<float>{0});
    EXPECT_TRUE(std::isnan(streaming.value()));
    EXPECT_TRUE(std::isnan(streaming.error_bound()));
    other.merge(streaming.counts());
    EXPECT_TRUE(std::isnan(other.value()));
}

TEST(StreamingAuc, RefusesWhatAreNoProbabilities) {
    StreamingAuc streaming{4};
    const auto text = [&](const std::vector<float>& scores, const std::vector<float>& labels) -> std::string {
        try {
            streaming.add(scores, labels);
        } catch (const BadInput& error) {
            return error.what();
        }
        return "nothing";
    };
    EXPECT_EQ(text({0.5F, 1.5F}, {0, 1}), "sample 1: a prediction of 1.500000, expected a probability from 0 to 1");
    EXPECT_EQ(text({0.5F, -0.5F}, {0, 1}), "sample 1: a prediction of -0.500000, expected a probability from 0 to 1");
    EXPECT_EQ(text({0.5F, 0.5F}, {0, 3}), "sample 1: a label of 3, expected 0 or 1");
    EXPECT_EQ(text({0.5F}, {0, 1}), "1 predictions with 2 labels: give one label a prediction");
    for (const auto count : streaming.counts())
        EXPECT_EQ(count, 0);
    EXPECT_THROW(streaming.add_logits(std::vector<float>{1}, std::vector<float>{2}), BadInput);
    EXPECT_THROW(streaming.merge(StreamingAuc{5}.counts()), BadInput);
    EXPECT_THROW(StreamingAuc{0}, BadInput);
}

}  // namespace
}  // namespace shardwise_test
