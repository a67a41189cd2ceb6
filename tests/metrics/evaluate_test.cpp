// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/metrics/evaluate.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/metrics/auc.hpp"
#include "shardwise/metrics/binary.hpp"

namespace {

namespace sw = shardwise;

struct Samples {
    std::vector<float> logits;
    std::vector<float> labels;
};

Samples draw(std::size_t count) {
    std::mt19937 engine{7};
    Samples samples;
    for (std::size_t i = 0; i != count; ++i) {
        const auto half = static_cast<float>(engine() % 41) / 8.0F - 2.5F;  // with ties
        samples.logits.push_back(i % 3 == 0 ? half : half * 1.0001F);
        samples.labels.push_back(static_cast<float>(engine() % 5 < (half > 0 ? 3U : 1U)));
    }
    return samples;
}

void expect_same_bits(const sw::BinaryQuality& a, const sw::BinaryQuality& b) {
    EXPECT_EQ(a.samples, b.samples);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(a.log_loss), std::bit_cast<std::uint64_t>(b.log_loss));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(a.normalized_entropy), std::bit_cast<std::uint64_t>(b.normalized_entropy));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(a.auc), std::bit_cast<std::uint64_t>(b.auc));
}

TEST(Evaluate, IsWhatTheMetricsSay) {
    const Samples all = draw(1000);
    const sw::BinaryQuality quality = sw::evaluate(all.logits, all.labels);
    sw::BinarySums sums;
    sums.add_logits(all.logits, all.labels);
    EXPECT_EQ(quality.samples, 1000);
    EXPECT_NEAR(quality.log_loss, sums.log_loss(), 1e-12);
    EXPECT_NEAR(quality.normalized_entropy, sums.normalized_entropy(), 1e-12);
    EXPECT_EQ(quality.auc, sw::auc(all.logits, all.labels));
    EXPECT_GT(quality.auc, 0.6);
}

// Dealt in turns, so that every number of ranks has another order of samples on rank 0.
TEST(Evaluate, TheSameBitsAtEveryNumberOfRanks) {
    const Samples all = draw(1001);
    const sw::BinaryQuality expected = sw::evaluate(all.logits, all.labels);
    for (const int ranks : {1, 2, 3, 5}) {
        std::vector<sw::BinaryQuality> seen(static_cast<std::size_t>(ranks));
        sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = ranks}};
        world.run([&](sw::ThreadCommunicator& comm) {
            Samples mine;
            for (std::size_t i = 0; i != all.logits.size(); ++i)
                if (static_cast<int>(i * i % 7) % ranks == comm.rank()) {  // some ranks may have none
                    mine.logits.push_back(all.logits[i]);
                    mine.labels.push_back(all.labels[i]);
                }
            seen[static_cast<std::size_t>(comm.rank())] = sw::evaluate(comm, mine.logits, mine.labels);
        });
        for (const sw::BinaryQuality& quality : seen)
            expect_same_bits(quality, expected);
    }
    // The sum that it takes does depend on the order: otherwise this test could not fail.
    sw::BinarySums forwards;
    forwards.add_logits(all.logits, all.labels);
    Samples reversed = all;
    std::reverse(reversed.logits.begin(), reversed.logits.end());
    std::reverse(reversed.labels.begin(), reversed.labels.end());
    sw::BinarySums backwards;
    backwards.add_logits(reversed.logits, reversed.labels);
    EXPECT_NE(forwards.loss, backwards.loss);
    expect_same_bits(sw::evaluate(reversed.logits, reversed.labels), expected);
}

TEST(Evaluate, WithoutMeaning) {
    const sw::BinaryQuality none = sw::evaluate(std::vector<float>{}, std::vector<float>{});
    EXPECT_EQ(none.samples, 0);
    EXPECT_TRUE(std::isnan(none.log_loss) && std::isnan(none.auc) && std::isnan(none.normalized_entropy));

    const sw::BinaryQuality ones = sw::evaluate(std::vector<float>{1.0F, 2.0F}, std::vector<float>{1.0F, 1.0F});
    EXPECT_NEAR(ones.log_loss, (std::log1p(std::exp(-1.0)) + std::log1p(std::exp(-2.0))) / 2, 1e-15);
    EXPECT_TRUE(std::isnan(ones.auc) && std::isnan(ones.normalized_entropy));

    const float nan = std::numeric_limits<float>::quiet_NaN();
    const sw::BinaryQuality lost = sw::evaluate(std::vector<float>{nan, 1.0F, nan}, std::vector<float>{0, 1, 1});
    EXPECT_EQ(lost.samples, 3);
    EXPECT_TRUE(std::isnan(lost.log_loss) && std::isnan(lost.auc) && std::isnan(lost.normalized_entropy));
}

TEST(Evaluate, OneRanksBadLabelIsAnErrorOnAll) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 3}};
    std::vector<std::string> said(3);
    world.run([&](sw::ThreadCommunicator& comm) {
        const std::vector<float> logits{0.0F, 1.0F};
        const std::vector<float> labels{0.0F, comm.rank() == 1 ? 2.0F : 1.0F};
        try {
            static_cast<void>(sw::evaluate(comm, logits, labels));
        } catch (const sw::BadInput& error) {
            said[static_cast<std::size_t>(comm.rank())] = error.what();
        }
    });
    for (const std::string& text : said)
        EXPECT_EQ(text, "rank 1: sample 1: a label of 2, expected 0 or 1");
}

}  // namespace
