// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/data/slice_of.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/core/error.hpp"
#include "shardwise/data/slice.hpp"

namespace {

namespace sw = shardwise;

/// 3 features; the bag of sample i and feature f has (i + f) % 3 ids, 100 f + 10 i + k, or one each.
sw::JaggedBatch<int> bags(std::int64_t samples, bool single, bool weighted) {
    sw::JaggedBatch<int> all{.samples = samples, .features = 3};
    for (int f = 0; f != 3; ++f)
        for (int i = 0; i != static_cast<int>(samples); ++i) {
            const int count = single ? 1 : (i + f) % 3;
            if (!single) all.lengths.push_back(count);
            for (int k = 0; k != count; ++k) {
                all.values.push_back(1000 * f + 10 * i + k);
                if (weighted) all.weights.push_back(static_cast<float>(all.values.back()) + 0.5F);
            }
        }
    return all;
}

std::vector<std::int64_t> offsets_of(const sw::JaggedBatch<int>& batch) {
    std::vector<std::int64_t> offsets{0};
    for (const std::int32_t length : batch.lengths)
        offsets.push_back(offsets.back() + length);
    return offsets;
}

/// The ids and weights of one sample, feature by feature, as text.
std::string text_of(const sw::JaggedView<int>& batch, std::int64_t sample) {
    std::string text;
    std::size_t id = 0;
    for (std::int64_t bag = 0; bag != batch.bags(); ++bag)
        for (std::int64_t k = 0; k != batch.length(bag); ++k, ++id)
            if (bag % batch.samples == sample) {
                text += std::to_string(bag / batch.samples) + ":" + std::to_string(batch.values[id]);
                if (!batch.weights.empty()) text += "*" + std::to_string(batch.weights[id]);
                text += " ";
            }
    return text;
}

TEST(SliceOf, AllRanksBatchesOneAfterTheOtherAreTheStream) {
    for (const std::int64_t samples : {1, 5, 6, 7, 12, 13})
        for (const int ranks : {1, 2, 3})
            for (const bool single : {false, true}) {
                const sw::JaggedBatch<int> all = bags(samples, single, true);
                const std::vector<std::int64_t> offsets = offsets_of(all);
                sw::JaggedView<int> by_offsets = all.view();
                if (!single) {
                    by_offsets.lengths = {};
                    by_offsets.offsets = offsets;
                }
                std::vector<float> labels;
                std::vector<float> dense;
                for (int i = 0; i != static_cast<int>(samples); ++i) {
                    labels.push_back(static_cast<float>(i));
                    dense.insert(dense.end(), {static_cast<float>(i), static_cast<float>(-i)});
                }
                std::int64_t next = 0;
                const std::int64_t batches = sw::Slice{.batch = 2, .ranks = ranks}.batches(samples);
                for (std::int64_t g = 0; g != batches; ++g) {
                    std::int64_t together = 0;
                    for (int rank = 0; rank != ranks; ++rank) {
                        const sw::Slice slice{.batch = 2, .rank = rank, .ranks = ranks};
                        const std::span<const float> mine = sw::slice_of(std::as_const(labels), slice, g);
                        const auto rows = sw::slice_of(sw::MatrixView<const float>{dense.data(), samples, 2}, slice, g);
                        const sw::JaggedBatch<int> part = sw::slice_of(all, slice, g);
                        const sw::JaggedBatch<int> the_same = sw::slice_of(by_offsets, slice, g);
                        part.view().validate();
                        EXPECT_EQ(part.values, the_same.values);
                        EXPECT_EQ(part.lengths, the_same.lengths);
                        EXPECT_EQ(part.view().single(), single || part.samples == 0);
                        ASSERT_EQ(std::ssize(mine), part.samples);
                        ASSERT_EQ(rows.rows(), part.samples);
                        together += part.samples;
                        for (std::int64_t i = 0; i != part.samples; ++i, ++next) {
                            EXPECT_EQ(mine[static_cast<std::size_t>(i)], static_cast<float>(next));
                            EXPECT_EQ(rows(i, 1), -static_cast<float>(next));
                            EXPECT_EQ(text_of(part.view(), i), text_of(all.view(), next));
                        }
                    }
                    EXPECT_EQ(together, (sw::Slice{.batch = 2, .ranks = ranks}.global_samples(g, samples)));
                }
                EXPECT_EQ(next, samples);
            }
}

TEST(SliceOf, BehindTheEndThereIsNothing) {
    const sw::JaggedBatch<int> all = bags(5, false, false);
    const std::array<float, 5> labels{};
    const sw::Slice slice{.batch = 2, .rank = 1, .ranks = 2};
    EXPECT_EQ(slice.batches(5), 2);
    for (const std::int64_t g : {std::int64_t{1}, std::int64_t{2}, std::int64_t{1} << 40}) {
        EXPECT_TRUE(sw::slice_of(labels, slice, g).empty());
        EXPECT_EQ(sw::slice_of(all, slice, g).samples, 0);
        EXPECT_EQ(sw::slice_of(all, slice, g).features, 3);
    }
}

std::string refusal(const sw::JaggedView<int>& samples, const sw::Slice& slice, std::int64_t g) {
    try {
        static_cast<void>(sw::slice_of(samples, slice, g));
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return "";
}

TEST(SliceOf, SaysWhatIsWrong) {
    const sw::JaggedBatch<int> all = bags(4, false, false);
    sw::JaggedView<int> view = all.view();
    EXPECT_EQ(refusal(view, {.batch = 2, .rank = 2, .ranks = 2}, 0), "rank 2 of 2 ranks: ranks count from 0");
    EXPECT_EQ(refusal(view, {.batch = 0}, 0), "a batch of 0 samples: give at least 1");
    EXPECT_EQ(refusal(view, {.batch = 2}, -1), "global batch -1: they count from 0");

    const std::vector<std::string> keys{"a", "b", "c"};
    view.keys = keys;
    EXPECT_NE(refusal(view, {.batch = 2}, 0).find("without keys"), std::string::npos);

    view = all.view();
    view.values = view.values.first(3);
    EXPECT_NE(refusal(view, {.batch = 2}, 1).find("the bags hold"), std::string::npos);

    std::vector<std::int64_t> offsets = offsets_of(all);
    view = all.view();
    view.lengths = {};
    offsets[3] = 1000;
    view.offsets = offsets;
    EXPECT_NE(refusal(view, {.batch = 1}, 2).find("offsets run backwards"), std::string::npos);
}

}  // namespace
