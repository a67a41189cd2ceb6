// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/tower/partition.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/tower/affinity.hpp"
#include "shardwise/tower/rand_index.hpp"

namespace {
namespace sw = shardwise;

struct Dice {
    std::mt19937_64 engine;
    double operator()() { return static_cast<double>(engine() >> 11U) * 0x1p-53; }
    int below(int n) { return static_cast<int>(engine() % static_cast<std::uint64_t>(n)); }
};

/// Vectors of features that share a direction a sample inside their group.
sw::Affinity planted(const std::vector<int>& group, double noise, std::uint64_t seed) {
    constexpr int dimension = 8;
    constexpr int samples = 200;
    Dice dice{std::mt19937_64{seed}};
    const auto n = static_cast<std::int64_t>(group.size());
    std::vector<float> vectors(static_cast<std::size_t>(samples * n * dimension));
    float* to = vectors.data();
    for (int sample = 0; sample < samples; ++sample) {
        std::map<int, std::vector<double>> direction;
        for (const int g : group)
            if (direction[g].empty())
                for (int d = 0; d < dimension; ++d)
                    direction[g].push_back(dice() - 0.5);
        for (const int g : group) {
            const double sign = dice.below(2) == 0 ? -1.0 : 1.0;
            for (int d = 0; d < dimension; ++d)
                *to++ = static_cast<float>(sign * direction[g][static_cast<std::size_t>(d)] + noise * (dice() - 0.5));
        }
    }
    sw::AffinityMeter meter{n, dimension};
    meter.add({vectors.data(), samples / 2, n * dimension});
    meter.add({vectors.data() + samples / 2 * n * dimension, samples / 2, n * dimension});
    return meter.affinity();
}

TEST(partition, of_coherent_features_finds_planted_groups) {
    for (const int groups : {2, 3, 4, 6})
        for (const std::uint64_t seed : {1, 2, 3}) {
            std::vector<int> group;
            for (int f = 0; f < 24; ++f)
                group.push_back((f * 5 + static_cast<int>(seed)) % groups);
            const sw::Partition found =
                sw::partition_features(planted(group, 0.4, seed), {.towers = groups, .ratio = 1.0});
            EXPECT_GE(sw::adjusted_rand_index(found.tower_of, group), 0.9) << groups << " groups, seed " << seed;
            EXPECT_TRUE(found.within_ratio);
        }
}

TEST(partition, of_diverse_features_puts_groups_apart) {
    std::vector<int> group;
    for (int f = 0; f < 16; ++f)
        group.push_back(f % 4);
    const sw::Affinity affinity = planted(group, 0.2, 5);
    const auto inside = [&](const std::vector<int>& tower_of) {
        double sum = 0;
        int pairs = 0;
        for (int i = 0; i < 16; ++i)
            for (int j = 0; j < i; ++j)
                if (tower_of[static_cast<std::size_t>(i)] == tower_of[static_cast<std::size_t>(j)]) {
                    sum += affinity(i, j);
                    ++pairs;
                }
        return sum / pairs;
    };
    const auto coherent = sw::partition_features(affinity, {.towers = 4, .ratio = 1.0});
    const auto diverse =
        sw::partition_features(affinity, {.towers = 4, .ratio = 1.0, .strategy = sw::TowerStrategy::diverse});
    EXPECT_GT(inside(coherent.tower_of), inside(diverse.tower_of) + 0.1);
    EXPECT_LT(sw::adjusted_rand_index(diverse.tower_of, group), 0.2);
}

// By hand: 6 things, 15 pairs; together in both 2, in a 3 + 3, in b 1 + 3; by chance 6 * 4 / 15.
TEST(adjusted_rand_index, is_its_definition) {
    const std::vector<int> a{0, 0, 0, 1, 1, 1};
    const std::vector<int> b{5, 5, 2, 2, 2, 7};
    EXPECT_DOUBLE_EQ(sw::adjusted_rand_index(a, b), (2.0 - 6.0 * 4.0 / 15.0) / (5.0 - 6.0 * 4.0 / 15.0));
    EXPECT_DOUBLE_EQ(sw::adjusted_rand_index(b, a), sw::adjusted_rand_index(a, b));
    EXPECT_EQ(sw::adjusted_rand_index(a, std::vector<int>{3, 3, 3, -1, -1, -1}), 1.0);
    EXPECT_LT(sw::adjusted_rand_index(a, std::vector<int>{0, 1, 2, 0, 1, 2}), 0.0);
    EXPECT_EQ(sw::adjusted_rand_index(std::vector<int>{1, 1}, std::vector<int>{2, 2}), 1.0);
    EXPECT_EQ(sw::adjusted_rand_index(std::vector<int>{}, std::vector<int>{}), 1.0);
    EXPECT_THROW(static_cast<void>(sw::adjusted_rand_index(a, std::vector<int>{1})), sw::BadInput);
}

sw::Affinity random_affinity(int n, Dice& dice) {
    sw::Affinity affinity{.features = n, .values = std::vector<double>(static_cast<std::size_t>(n * n), 1.0)};
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < i; ++j)
            affinity(i, j) = affinity(j, i) = dice();
    return affinity;
}

TEST(partition, keeps_to_the_ratio_where_a_split_exists) {
    Dice dice{std::mt19937_64{7}};
    int impossible = 0;
    for (int instance = 0; instance < 1000; ++instance) {
        const int n = 1 + dice.below(20);
        const int towers = 1 + dice.below(std::min(n, 6));
        const double ratio = std::vector<double>{1.0, 1.25, 1.5, 2.0, 3.0}[static_cast<std::size_t>(dice.below(5))];
        const sw::Affinity affinity = random_affinity(n, dice);
        const auto strategy = dice.below(2) == 0 ? sw::TowerStrategy::coherent : sw::TowerStrategy::diverse;
        const sw::Partition found = sw::partition_features(affinity, {.towers = towers,
                                                                      .ratio = ratio,
                                                                      .strategy = strategy,
                                                                      .seed = 1 + static_cast<std::uint64_t>(instance),
                                                                      .starts = 1,
                                                                      .plane_steps = 30});
        std::vector<int> sizes(static_cast<std::size_t>(towers), 0);
        for (const int t : found.tower_of)
            ++sizes.at(static_cast<std::size_t>(t));
        const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
        bool exists = false;
        for (int small = 1; small <= n; ++small)
            for (int large = small; large <= ratio * small; ++large)
                exists |= small * towers <= n && n <= large * towers;
        ASSERT_EQ(found.within_ratio, exists) << n << " features, " << towers << " towers, R " << ratio;
        if (exists) {
            ASSERT_LE(*most, ratio * *least) << n << " features, " << towers << " towers, R " << ratio;
        } else {
            ASSERT_EQ(*least, n / towers);
            ASSERT_EQ(*most, (n + towers - 1) / towers);
            ++impossible;
        }
        ASSERT_GE(*least, 1);
    }
    EXPECT_GT(impossible, 50);
}

TEST(partition, of_26_features_into_8_towers_is_as_equal_as_may_be) {
    Dice dice{std::mt19937_64{3}};
    const sw::Partition found =
        sw::partition_features(random_affinity(26, dice), {.towers = 8, .ratio = 1.0, .starts = 2});
    EXPECT_FALSE(found.within_ratio);
    std::vector<int> sizes(8, 0);
    for (const int t : found.tower_of)
        ++sizes[static_cast<std::size_t>(t)];
    std::sort(sizes.begin(), sizes.end());
    EXPECT_EQ(sizes, (std::vector<int>{3, 3, 3, 3, 3, 3, 4, 4}));
}

TEST(partition, by_weights_keeps_to_the_ratio) {
    Dice dice{std::mt19937_64{11}};
    for (int instance = 0; instance < 50; ++instance) {
        const sw::Affinity affinity = random_affinity(24, dice);
        std::vector<double> weights;
        for (int f = 0; f < 24; ++f)
            weights.push_back(1.0 + 9.0 * dice());
        const sw::Partition found = sw::partition_features(
            affinity, {.towers = 4, .ratio = 1.2, .weights = weights, .starts = 1, .plane_steps = 30});
        std::vector<double> heavy(4, 0.0);
        for (std::size_t f = 0; f < 24; ++f)
            heavy[static_cast<std::size_t>(found.tower_of[f])] += weights[f];
        const auto [least, most] = std::minmax_element(heavy.begin(), heavy.end());
        EXPECT_TRUE(found.within_ratio);
        EXPECT_LE(*most, 1.2 * *least * (1 + 1e-9));
    }
}

TEST(partition, never_mixes_categories) {
    Dice dice{std::mt19937_64{13}};
    std::vector<int> categories;
    for (int f = 0; f < 20; ++f)
        categories.push_back(f < 4 ? 7 : f < 12 ? 2 : 5);
    const sw::Partition found =
        sw::partition_features(random_affinity(20, dice),
                               {.towers = 5, .ratio = 1.0, .categories = categories, .starts = 1, .plane_steps = 30});
    std::map<int, int> category_of;
    for (std::size_t f = 0; f < 20; ++f)
        EXPECT_EQ(category_of.emplace(found.tower_of[f], categories[f]).first->second, categories[f]);
    EXPECT_EQ(category_of.size(), 5U);
}

TEST(partition, gives_a_category_no_more_towers_than_features) {
    Dice dice{std::mt19937_64{23}};
    const sw::Partition found =
        sw::partition_features(random_affinity(8, dice), {.towers = 4,
                                                          .ratio = 3.0,
                                                          .weights = {100, 100, 1, 1, 1, 1, 1, 1},
                                                          .categories = {0, 0, 1, 1, 1, 1, 1, 1},
                                                          .starts = 1,
                                                          .plane_steps = 30});
    EXPECT_NE(found.tower_of[0], found.tower_of[1]);
    EXPECT_LT(std::max(found.tower_of[0], found.tower_of[1]), 2);
    std::vector<int> sizes(4, 0);
    for (const int t : found.tower_of)
        ++sizes[static_cast<std::size_t>(t)];
    EXPECT_EQ(sizes[2] + sizes[3], 6);
    EXPECT_LE(std::max(sizes[2], sizes[3]), 3 * std::min(sizes[2], sizes[3]));
    EXPECT_TRUE(found.within_ratio);
}

TEST(partition, is_the_same_every_time) {
    Dice dice{std::mt19937_64{17}};
    const sw::Affinity affinity = random_affinity(12, dice);
    const sw::PartitionOptions options{.towers = 3, .ratio = 2.0, .starts = 2, .plane_steps = 50};
    EXPECT_EQ(sw::partition_features(affinity, options).tower_of, sw::partition_features(affinity, options).tower_of);
}

TEST(partition, refuses_numbers_that_do_not_fit) {
    Dice dice{std::mt19937_64{19}};
    const sw::Affinity affinity = random_affinity(4, dice);
    const auto refused = [&](const sw::PartitionOptions& options) {
        try {
            static_cast<void>(sw::partition_features(affinity, options));
        } catch (const sw::BadInput& error) {
            return std::string{error.what()};
        }
        return std::string{};
    };
    EXPECT_EQ(refused({.towers = 5}),
              "a partition of 4 features into 5 towers: give at least one tower, and at most one a feature");
    EXPECT_NE(refused({.towers = 2, .ratio = 0.5}), "");
    EXPECT_NE(refused({.towers = 2, .weights = {1.0}}), "");
    EXPECT_NE(refused({.towers = 2, .weights = {1.0, 0.0, 1.0, 1.0}}), "");
    EXPECT_NE(refused({.towers = 2, .categories = {0, 1, 2, 3}}), "");
    sw::Affinity wrong = affinity;
    wrong(1, 0) = std::nan("");
    EXPECT_THROW(static_cast<void>(sw::partition_features(wrong, {.towers = 2})), sw::BadInput);
    wrong.values.pop_back();
    EXPECT_THROW(static_cast<void>(sw::partition_features(wrong, {.towers = 2})), sw::BadInput);
    EXPECT_THROW(static_cast<void>(sw::balanced_clusters({{0.0F, 0.0F}}, 2, 1, 1, 1)), sw::BadInput);
    EXPECT_THROW(static_cast<void>(sw::balanced_clusters({}, 1, 0, 1, 1)), sw::BadInput);
    const std::vector<float> vectors{1.0F, 2.0F, std::nanf(""), 0.0F};
    EXPECT_THROW(sw::AffinityMeter(2, 2).add({vectors.data(), 1, 4}), sw::BadInput);
    EXPECT_THROW(sw::AffinityMeter(2, 2).add({vectors.data(), 1, 3}), sw::BadInput);
    EXPECT_THROW(static_cast<void>(sw::AffinityMeter(3, 2).affinity()), sw::BadInput);
}

TEST(affinity, is_the_mean_absolute_cosine) {
    // two samples of three features with two elements
    const std::vector<float> vectors{1, 0, 0, 2, -3, -3, 2, 0, -4, 0, 0, 0};
    sw::AffinityMeter meter{3, 2};
    meter.add({vectors.data(), 2, 6});
    const sw::Affinity affinity = meter.affinity();
    EXPECT_DOUBLE_EQ(affinity(0, 1), 0.5);  // a right angle, then opposite
    EXPECT_DOUBLE_EQ(affinity(1, 0), 0.5);
    EXPECT_NEAR(affinity(0, 2), std::sqrt(0.5) / 2, 1e-12);  // half a right angle, then with a vector of zeros
    EXPECT_NEAR(affinity(1, 2), std::sqrt(0.5) / 2, 1e-12);
    EXPECT_DOUBLE_EQ(affinity(2, 2), 1.0);
}

}  // namespace
