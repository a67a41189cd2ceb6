// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// What docs/metrics.md shows of samples of all ranks, and docs/data.md of arrays of a program's own.

#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/data/slice_of.hpp"
#include "shardwise/shardwise.hpp"

namespace docs {
namespace {

namespace sw = shardwise;

struct Predictions {
    std::vector<float> logits;
    std::vector<float> labels;
};

TEST(Arrays, MetricsOverAllRanks) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        const std::vector<Predictions> batches{{{0.5F, -1.0F}, {1, 0}},
                                               {{2.0F, 0.25F}, {1, comm.rank() == 0 ? 1.0F : 0.0F}}};
        std::vector<float> logits;
        std::vector<float> labels;
        for (const Predictions& batch : batches) {
            logits.insert(logits.end(), batch.logits.begin(), batch.logits.end());
            labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
        }
        // clang-format off
        const sw::BinaryQuality quality = sw::evaluate(comm, logits, labels);  // on all ranks
        if (comm.rank() == 0) std::printf("loss %.4f, AUC %.4f\n", quality.log_loss, quality.auc);
        // clang-format on
        EXPECT_EQ(quality.samples, 8);

        sw::BinarySums sums;   // loss, normalized entropy, accuracy, calibration
        sw::StreamingAuc auc;  // counts by bins of the probability
        for (const Predictions& batch : batches) {
            sums.add_logits(batch.logits, batch.labels);
            auc.add_logits(batch.logits, batch.labels);
        }
        sw::BinarySums all;
        for (const auto& theirs : sw::all_gather_v<sw::BinarySums>(comm, std::span{&sums, 1}))
            all += theirs[0];
        sw::StreamingAuc merged;
        for (const auto& theirs : sw::all_gather_v<std::int64_t>(comm, auc.counts()))
            merged.merge(theirs);
        std::printf("loss %.4f, AUC %.4f, off by %.1e at most\n", all.log_loss(), merged.value(), merged.error_bound());
        EXPECT_NEAR(all.log_loss(), quality.log_loss, 1e-12);
        EXPECT_NEAR(merged.value(), quality.auc, merged.error_bound());
    });
}

TEST(Arrays, Slices) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        const std::int64_t samples = 600;
        const std::vector<float> labels(600, 1.0F);
        const std::vector<float> numbers(600 * 3);
        const sw::MatrixView<const float> dense{numbers.data(), samples, 3};
        const sw::JaggedBatch<std::int32_t> ids{
            .samples = samples, .features = 1, .values = std::vector<std::int32_t>(600)};
        std::int64_t seen = 0;
        std::int64_t all = 0;
        const auto learn = [&](std::span<const float> mine, const sw::MatrixView<const float>& rows,
                               const sw::JaggedBatch<std::int32_t>& bags, std::int64_t global_samples) {
            seen += std::ssize(mine);
            all += global_samples;
            EXPECT_EQ(rows.rows(), std::ssize(mine));
            EXPECT_EQ(bags.samples, std::ssize(mine));
        };
        // clang-format off
        const sw::Slice slice{.batch = 256, .rank = comm.rank(), .ranks = comm.size()};
        for (std::int64_t g = 0; g < slice.batches(samples); ++g) {
            const std::span<const float> mine = sw::slice_of(labels, slice, g);      // of a std::vector, or a std::span
            const sw::MatrixView<const float> rows = sw::slice_of(dense, slice, g);  // of a MatrixView (samples, columns)
            const sw::JaggedBatch<std::int32_t> bags = sw::slice_of(ids, slice, g);  // of a JaggedView or a JaggedBatch
            const std::int64_t global_samples = slice.global_samples(g, samples);    // of all ranks: a loss is their mean
            learn(mine, rows, bags, global_samples);
        }
        // clang-format on
        EXPECT_EQ(seen, comm.rank() == 0 ? 256 + 88 : 256);
        EXPECT_EQ(all, samples);
    });
}

}  // namespace
}  // namespace docs
