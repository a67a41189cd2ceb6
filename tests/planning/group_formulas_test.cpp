// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/group_formulas.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/embedding/copies/averager.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/optimizer/sum_of_squares.hpp"
#include "shardwise/plan/cost.hpp"

namespace {

namespace sw = shardwise;

TEST(GroupFormulas, ThePaperExample) {
    constexpr double s = 500e9;
    const std::array expected{156.25e-3, 468.75e-3, 1093.75e-3};
    for (int i = 0, groups = 2; groups <= 8; ++i, groups *= 2) {
        EXPECT_DOUBLE_EQ(sw::sync_seconds(s, groups, 256, 25e9), expected[static_cast<std::size_t>(i)]);
        EXPECT_DOUBLE_EQ(sw::sync_seconds(s, groups, 256, 175e9), expected[static_cast<std::size_t>(i)] / 7);
        EXPECT_DOUBLE_EQ(sw::replication_overhead(s, groups, 256), s * (groups - 1) / 256);
    }
    EXPECT_EQ(sw::sync_seconds(s, 1, 256, 25e9), 0);
}

/// The largest payload that a rank sends in a sync, and the least.
struct Sent {
    std::int64_t least = 0;
    std::int64_t most = 0;
    std::int64_t across = 0;  // of all ranks, between hosts
    double seconds = 0;
};
Sent sent_in_sync(const sw::LayerBlueprint& layer, const sw::Cluster& cluster) {
    sw::SyncTally tally;
    const std::vector<sw::SegmentCost> costs = layer.predict_sync(tally);
    sw::TrafficMatrix all{layer.world()};
    for (const sw::SegmentCost& cost : costs)
        all += cost.traffic;
    Sent sent{.least = INT64_MAX, .most = 0, .across = all.total().cross_host.payload, .seconds = 0};
    for (int rank = 0; rank < layer.world().ranks(); ++rank) {
        const sw::Traffic by = all.sent_by(rank);
        const std::int64_t payload = by.host.payload + by.cross_host.payload;
        sent.least = std::min(sent.least, payload);
        sent.most = std::max(sent.most, payload);
    }
    sent.seconds = sw::seconds(costs, cluster);
    return sent;
}

// 500 GB of tables and moments on 32 hosts of 8 ranks: what a sync of all rows moves is formula (1)'s, to the byte.
TEST(GroupFormulas, ABlueprintMovesWhatTheFormulaSays) {
    constexpr std::int64_t s = 500'000'000'000;
    constexpr int ranks = 256;
    const sw::Topology world{.hosts = 32, .ranks_per_host = 8};
    const sw::Cluster cluster{.host = {.latency = 0, .bandwidth = 175e9},
                              .cross_host = {.latency = 0, .bandwidth = 25e9}};
    struct Layer {
        const char* optimizer;
        int dim;  // 500 bytes a row, with its moments
    };
    for (const Layer& one : {Layer{"sgd", 125}, Layer{"rowwise_adagrad", 124}}) {
        const std::vector<sw::TableConfig> tables{{.name = "a", .rows = 1'000'000'000, .dim = one.dim}};
        const auto draw = [&](const sw::GroupOptions& groups) {
            return sw::draw_layer(world, tables, {.optimizer = one.optimizer}, {.groups = groups});
        };
        const sw::LayerBlueprint alone = draw({});
        for (const int groups : {2, 4, 8})
            for (const auto placement : {sw::GroupPlacement::across_hosts, sw::GroupPlacement::inside_hosts}) {
                SCOPED_TRACE(one.optimizer + std::string{" "} + std::to_string(groups) + name_of(placement));
                const sw::LayerBlueprint layer =
                    draw({.count = groups, .placement = placement, .sync_every = {}, .rows = sw::SyncRows::all});
                const Sent sent = sent_in_sync(layer, cluster);
                EXPECT_EQ(sent.least, 2 * s * (groups - 1) / ranks);
                EXPECT_EQ(sent.most, 2 * s * (groups - 1) / ranks);
                const bool across = placement == sw::GroupPlacement::across_hosts;
                EXPECT_EQ(sent.across != 0, across);
                EXPECT_NEAR(sent.seconds, sw::sync_seconds(s, groups, ranks, across ? 25e9 : 175e9), 1e-6);
                for (const int rank : {0, 100, 255})
                    EXPECT_EQ(static_cast<double>(layer.static_bytes(rank) - alone.static_bytes(rank)),
                              sw::replication_overhead(static_cast<double>(alone.static_bytes(rank)), groups, 1));
            }
    }
}

// Table 1 by t0 + e * imbalance + sync, with the constants that fit both models.
TEST(GroupFormulas, TheStepModelGivesTable1) {
    struct Model {
        double compute;
        double bytes_a_rank;  // S / T
        double batch;         // of all ranks
        std::array<double, 4> imbalance;
        std::array<double, 4> qps;
    };
    constexpr double e = 74.94e-3;
    constexpr double bandwidth = 387.8e9;
    for (const Model& model :
         {Model{267.7e-3, 1.953e9, 256 * 4096, {5.70, 2.01, 1.57, 1.53}, {1.53e6, 2.34e6, 2.66e6, 2.26e6}},
          Model{1269.6e-3, 1.660e9, 1024 * 896, {5.18, 2.23, 1.65, 1.63}, {5.51e5, 6.31e5, 6.54e5, 6.32e5}}}) {
        std::array<double, 4> qps{};
        for (std::size_t i = 0; i < 4; ++i) {
            const int groups = 1 << i;
            const sw::StepSeconds step{.compute = model.compute,
                                       .lookup = e,
                                       .imbalance = model.imbalance[i],
                                       .exchange = 0,
                                       .sync = sw::sync_seconds(model.bytes_a_rank, groups, 1, bandwidth)};
            qps[i] = model.batch / step.total();
            EXPECT_NEAR(qps[i], model.qps[i], 0.06 * model.qps[i]) << groups;
        }
        EXPECT_EQ(std::max_element(qps.begin(), qps.end()) - qps.begin(), 2);  // four groups
    }
}

/// What rows learn from gradients of mean 1 in each of `dim` columns, with noise; of a group's samples the noise has r
/// times the power of the mean.
class NoisyRows {
  public:
    static constexpr int dim = 64;
    using Rule = sw::RowwiseAdagrad<>;

    NoisyRows(double noise, int groups) : noise_{noise}, groups_{static_cast<std::size_t>(groups)} {
        moments_.resize(groups_);
    }
    /// A step in groups, and one over all samples.
    void step() {
        std::array<double, dim> mean{};
        for (std::size_t m = 0; m < groups_; ++m) {
            std::array<float, dim> gradient;
            for (int d = 0; d < dim; ++d) {
                gradient[d] = static_cast<float>(1 + std::sqrt(noise_) * normal_(random_));
                mean[d] += gradient[d] / static_cast<double>(groups_);
            }
            static_cast<void>(learn(plain_rule_, moments_[m], gradient));
        }
        std::array<float, dim> all;
        std::copy(mean.begin(), mean.end(), all.begin());
        static_cast<void>(learn(plain_rule_, one_group_, all));
        std::vector<const float*> copies;
        for (const float& moment : moments_)
            copies.push_back(&moment);
        double scratch[2];
        float synced = 0;
        sw::mean_of_copies(copies.data(), {.hosts = static_cast<int>(groups_), .ranks_per_host = 1}, 1, scratch,
                           &synced);
        moments_.assign(groups_, synced);
    }
    /// How many times as fast as over all samples the moment has grown.
    [[nodiscard]] double growth() const { return moments_[0] / static_cast<double>(one_group_); }
    /// What a gradient of almost nothing moves a weight, over what it does without groups.
    [[nodiscard]] double rate(float scale) const {
        std::array<float, dim> gradient;
        gradient.fill(1e-3F);
        Rule scaled = plain_rule_;
        scaled.moment_scale = scale;
        float grouped = moments_[0];
        float plain = one_group_;
        return learn(scaled, grouped, gradient) / learn(plain_rule_, plain, gradient);
    }

  private:
    /// \returns what a weight has moved
    static double learn(const Rule& rule, float& moment, const std::array<float, dim>& gradient) {
        const auto row =
            rule.row({.learning_rate = 1, .step = 1}, &moment, sw::sum_of_squares(gradient.data(), dim), dim);
        float weight = 0;
        rule.element(row, weight, gradient[0]);
        return weight;
    }

    Rule plain_rule_;
    double noise_;
    std::size_t groups_;
    std::vector<float> moments_;  // (group)
    float one_group_ = 0;
    std::mt19937_64 random_{17};
    std::normal_distribution<double> normal_;
};

// Proposition 1: what groups do to moments and rates, by the library's own rule and mean.
TEST(GroupFormulas, MomentsGrowAndRatesShrinkAsTheySay) {
    for (const int groups : {4, 16})
        for (const double noise : {0.1, 1.0, 10.0, 100.0}) {
            SCOPED_TRACE(std::to_string(groups) + " groups, noise " + std::to_string(noise));
            NoisyRows rows{noise, groups};
            for (int step = 0; step < 1000; ++step)
                rows.step();
            const double expected = sw::moment_growth(noise, groups);
            EXPECT_NEAR(rows.growth(), expected, 0.02 * expected);
            for (const double c : {1.0, std::sqrt(groups), groups / 2.0, 1.0 * groups}) {
                const double rate = sw::effective_rate(c, noise, groups);
                EXPECT_NEAR(rows.rate(static_cast<float>(c)), rate, 0.02 * rate) << c;
            }
            EXPECT_GE(expected, 1);
            EXPECT_LE(expected, groups);
        }
    // as published for four groups
    const std::array published{1.073, 1.600, 3.142, 3.885};
    const std::array noises{0.1, 1.0, 10.0, 100.0};
    for (std::size_t i = 0; i < 4; ++i)
        EXPECT_NEAR(sw::moment_growth(noises[i], 4), published[i], 1e-3);
}

}  // namespace
