// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/core/jagged.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace shardwise_test {
namespace {

using shardwise::BadInput;
using shardwise::JaggedBatch;
using shardwise::JaggedView;

const std::vector<std::int32_t> five_ids{4, 5, 6, 7, 8};
const std::vector<std::int32_t> five_lengths{2, 0, 1, 1, 1, 0};
const std::vector<std::int64_t> five_offsets{0, 2, 2, 3, 4, 5, 5};
const std::vector<float> five_weights{1, 2, 3, 4, 5};
const std::vector<std::string> two_keys{"user", "item"};

/// Two features, three samples, five ids, with everything but offsets.
JaggedView<std::int32_t> good() {
    return {.samples = 3,
            .features = 2,
            .values = five_ids,
            .lengths = five_lengths,
            .offsets = {},
            .weights = five_weights,
            .keys = two_keys};
}

/// What validate says, "" when it finds nothing.
template <class Id>
std::string complaint(const JaggedView<Id>& batch) {
    try {
        batch.validate();
    } catch (const BadInput& error) {
        EXPECT_EQ(error.exit_status(), 2);
        return error.what();
    }
    return "";
}

TEST(JaggedViewTest, AcceptsLengthsOffsetsAndNeither) {
    EXPECT_EQ(complaint(good()), "");
    auto batch = good();
    batch.lengths = {};
    batch.offsets = five_offsets;
    EXPECT_EQ(complaint(batch), "");
    EXPECT_FALSE(batch.single());
    for (std::int64_t bag = 0; bag < batch.bags(); ++bag)
        EXPECT_EQ(batch.length(bag), good().length(bag));
    const std::vector<std::int64_t> ids{3, 4};
    const JaggedView<std::int64_t> single{
        .samples = 1, .features = 2, .values = ids, .lengths = {}, .offsets = {}, .weights = {}, .keys = {}};
    EXPECT_EQ(complaint(single), "");
    EXPECT_TRUE(single.single());
    EXPECT_EQ(single.length(1), 1);
}

TEST(JaggedViewTest, AcceptsNoSamplesAndNoFeatures) {
    EXPECT_EQ(complaint(JaggedView<std::int64_t>{}), "");
    auto batch = JaggedView<std::int32_t>{};
    batch.features = 3;
    EXPECT_EQ(complaint(batch), "");
    const std::vector<std::int64_t> zero{0};
    batch.offsets = zero;
    EXPECT_EQ(complaint(batch), "");
}

struct Flaw {
    std::string name;
    std::function<void(JaggedView<std::int32_t>&)> apply;
    std::string says;
};

const std::vector<std::int32_t> negative_length{2, 0, 1, 3, -1, 0};
const std::vector<std::int32_t> short_lengths{2, 0, 1};
const std::vector<std::int32_t> small_lengths{2, 0, 1, 1, 0, 0};
const std::vector<std::int64_t> short_offsets{0, 2, 2, 3, 4, 5};
const std::vector<std::int64_t> late_offsets{1, 2, 2, 3, 4, 5, 5};
const std::vector<std::int64_t> backward_offsets{0, 2, 1, 3, 4, 5, 5};
const std::vector<std::int64_t> far_offsets{0, 2, 2, 3, 4, 5, 6};
const std::vector<std::int64_t> overflowing_offsets{
    0, std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min() + 1, 3, 4, 5, 5};
const std::vector<float> few_weights{1, 2};
const std::vector<std::string> one_key{"user"};

const std::vector<Flaw> flaws{
    {"NegativeSamples", [](auto& b) { b.samples = -1; }, "a batch with a negative number of samples or features"},
    {"ProductBeyondAllNumbers",
     [](auto& b) {
         b.samples = std::int64_t{1} << 40;
         b.features = std::int64_t{1} << 40;
     },
     "a batch of 5 ids, 1099511627776 samples and 1099511627776 features: a rank's batch has at most 2147483647 ids "
     "and bags; give smaller batches"},
    {"NegativeFeatures", [](auto& b) { b.features = -2; }, "a batch with a negative number of samples or features"},
    {"BothNegative",
     [](auto& b) {
         b.samples = -3;
         b.features = -2;
     },
     "a batch with a negative number of samples or features"},
    {"Keys", [](auto& b) { b.keys = one_key; }, "a batch of 2 features with 1 keys: give one key a feature"},
    {"LengthsAndOffsets", [](auto& b) { b.offsets = five_offsets; },
     "a batch with lengths and offsets: give one of them"},
    {"LengthCount", [](auto& b) { b.lengths = short_lengths; },
     "a batch of 6 bags with 3 lengths: give one length a feature and sample"},
    {"OffsetCount",
     [](auto& b) {
         b.lengths = {};
         b.offsets = short_offsets;
     },
     "a batch of 6 bags with 6 offsets: give one more than there are bags"},
    {"OffsetStart",
     [](auto& b) {
         b.lengths = {};
         b.offsets = late_offsets;
     },
     "offsets start at 1: they start at 0"},
    {"NegativeLength", [](auto& b) { b.lengths = negative_length; }, "feature 'item', sample 1: a length of -1"},
    {"NegativeLengthWithoutKeys",
     [](auto& b) {
         b.lengths = negative_length;
         b.keys = {};
     },
     "feature 1, sample 1: a length of -1"},
    {"OverflowingOffsets",
     [](auto& b) {
         b.lengths = {};
         b.offsets = overflowing_offsets;
     },
     "feature 'user', sample 1: offsets run backwards, from 9223372036854775807 to -9223372036854775807"},
    {"BackwardOffsets",
     [](auto& b) {
         b.lengths = {};
         b.offsets = backward_offsets;
     },
     "feature 'user', sample 1: offsets run backwards, from 2 to 1"},
    {"TooFewIds", [](auto& b) { b.lengths = small_lengths; }, "the bags hold 4 ids, but there are 5 values"},
    {"OffsetsPastTheEnd",
     [](auto& b) {
         b.lengths = {};
         b.offsets = far_offsets;
     },
     "the bags hold 6 ids, but there are 5 values"},
    {"SingleCount", [](auto& b) { b.lengths = {}; }, "the bags hold 6 ids, but there are 5 values"},
    {"Weights", [](auto& b) { b.weights = few_weights; }, "5 ids with 2 weights: give one weight an id, or none"},
};

class JaggedViewFlaw : public testing::TestWithParam<Flaw> {};

TEST_P(JaggedViewFlaw, IsNamed) {
    auto batch = good();
    GetParam().apply(batch);
    EXPECT_EQ(complaint(batch), GetParam().says);
}

INSTANTIATE_TEST_SUITE_P(All, JaggedViewFlaw, testing::ValuesIn(flaws),
                         [](const testing::TestParamInfo<Flaw>& flaw) { return flaw.param.name; });

RC_GTEST_PROP(JaggedBatchTest, ItsViewIsValidExactlyWhenTheLengthsAddUp, ()) {
    JaggedBatch<std::int64_t> batch;
    batch.samples = *rc::gen::inRange(1, 6);
    batch.features = *rc::gen::inRange(1, 4);
    std::int64_t total = 0;
    for (std::int64_t bag = 0; bag < batch.samples * batch.features; ++bag) {
        batch.lengths.push_back(*rc::gen::inRange(0, 4));
        total += batch.lengths.back();
    }
    const int excess = *rc::gen::inRange(0, 2);
    batch.values.resize(static_cast<std::size_t>(total + excess));
    RC_ASSERT(complaint(batch.view()).empty() == (excess == 0));
    RC_ASSERT(batch.view().bags() == batch.samples * batch.features);
}

}  // namespace
}  // namespace shardwise_test
