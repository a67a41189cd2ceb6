// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/optimizer/learning_rate.hpp"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace shardwise_test {
namespace {

using shardwise::LearningRate;

TEST(LearningRateTest, IsConstantByDefault) {
    const LearningRate rate{.base = 0.3F};
    for (const std::int64_t step : {1, 2, 1000000})
        EXPECT_EQ(rate.at(step), 0.3F);
}

TEST(LearningRateTest, WarmsUpLinearly) {
    const LearningRate rate{.base = 0.5F, .warmup = 4};
    EXPECT_FLOAT_EQ(rate.at(1), 0.125F);
    EXPECT_FLOAT_EQ(rate.at(2), 0.25F);
    EXPECT_FLOAT_EQ(rate.at(3), 0.375F);
    EXPECT_EQ(rate.at(4), 0.5F);
    EXPECT_EQ(rate.at(5), 0.5F);
}

TEST(LearningRateTest, DropsInSteps) {
    const LearningRate rate{
        .base = 0.8F, .decay = LearningRate::Decay::step, .decay_start = 10, .decay_steps = 5, .decay_factor = 0.5F};
    EXPECT_EQ(rate.at(10), 0.8F);
    EXPECT_EQ(rate.at(14), 0.8F);
    EXPECT_EQ(rate.at(15), 0.4F);
    EXPECT_EQ(rate.at(19), 0.4F);
    EXPECT_EQ(rate.at(20), 0.2F);
    EXPECT_FLOAT_EQ(rate.at(60), static_cast<float>(0.8F * std::pow(0.5, 10)));
}

// A checkpoint may say any number of steps: the rate is known at once, and it stays what it comes to.
TEST(LearningRateTest, ManyDropsTakeNoTime) {
    constexpr std::int64_t most = std::int64_t{1} << 53;
    LearningRate rate{.base = 0.5F, .decay = LearningRate::Decay::step};
    for (const float factor : {0.0F, 0.1F, 0.9F, 0.99F}) {
        rate.decay_factor = factor;
        EXPECT_EQ(rate.at(most), 0.0F);
    }
    rate.decay_factor = 1.0F;
    EXPECT_EQ(rate.at(most), 0.5F);
}

TEST(LearningRateTest, DecaysByAPolynomial) {
    const LearningRate rate{.base = 1.0F,
                            .warmup = 2,
                            .decay = LearningRate::Decay::polynomial,
                            .decay_start = 10,
                            .decay_steps = 20,
                            .decay_power = 2.0F,
                            .end = 0.25F};
    EXPECT_EQ(rate.at(1), 0.5F);
    EXPECT_EQ(rate.at(10), 1.0F);
    EXPECT_FLOAT_EQ(rate.at(15), 0.25F + 0.75F * 0.75F * 0.75F);
    EXPECT_FLOAT_EQ(rate.at(20), 0.25F + 0.75F * 0.25F);
    EXPECT_EQ(rate.at(30), 0.25F);
    EXPECT_EQ(rate.at(1000), 0.25F);
}

RC_GTEST_PROP(LearningRateTest, RisesThroughTheWarmUpAndNeverAfterIt, ()) {
    LearningRate rate;
    rate.base = 0.1F;
    rate.warmup = *rc::gen::inRange(0, 20);
    rate.decay =
        *rc::gen::element(LearningRate::Decay::none, LearningRate::Decay::step, LearningRate::Decay::polynomial);
    rate.decay_start = *rc::gen::inRange(0, 40);
    rate.decay_steps = *rc::gen::inRange(1, 40);
    for (std::int64_t step = 1; step < 100; ++step) {
        RC_ASSERT(rate.at(step) >= 0.0F);
        RC_ASSERT(rate.at(step) <= rate.base);
        if (step < rate.warmup) RC_ASSERT(rate.at(step) < rate.at(step + 1));
        if (step > rate.warmup) RC_ASSERT(rate.at(step) >= rate.at(step + 1));
    }
}

TEST(LearningRateTest, NumbersThatMakeNoScheduleAreNamed) {
    const auto message = [](auto change) {
        LearningRate rate;
        change(rate);
        try {
            rate.check();
        } catch (const shardwise::BadInput& error) {
            return std::string{error.what()};
        }
        return std::string{};
    };
    EXPECT_EQ(message([](LearningRate&) {}), "");
    EXPECT_EQ(message([](LearningRate& r) { r.base = -1.0F; }), "learning rate: base is -1.000000");
    EXPECT_EQ(message([](LearningRate& r) { r.end = std::nanf(""); }), "learning rate: end is nan");
    EXPECT_EQ(message([](LearningRate& r) { r.warmup = -1; }), "learning rate: warmup is -1");
    EXPECT_EQ(message([](LearningRate& r) { r.decay_start = -2; }), "learning rate: decay_start is -2");
    EXPECT_EQ(message([](LearningRate& r) { r.decay_steps = 0; }), "learning rate: decay_steps is 0");
    EXPECT_EQ(message([](LearningRate& r) { r.decay_factor = -1.0F; }), "learning rate: decay_factor is -1.000000");
    EXPECT_EQ(message([](LearningRate& r) { r.decay_power = -1.0F; }), "learning rate: decay_power is -1.000000");
}

}  // namespace
}  // namespace shardwise_test
