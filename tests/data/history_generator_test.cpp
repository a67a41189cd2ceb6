// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/data/history_generator.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/core/error.hpp"
#include "shardwise/data/alias_table.hpp"
#include "shardwise/data/zipf.hpp"

namespace {
using shardwise::AliasTable;
using shardwise::generate_histories;
using shardwise::Histories;
using shardwise::HistoryGeneratorOptions;

TEST(HistoryGenerator, ItemsFollowTheLawWhateverIsHidden) {
    const std::vector<double> weights{8, 0, 1, 4, 2, 1, 0.5, 16};
    double sum = 0;
    for (const double w : weights)
        sum += w;
    for (const double loyalty : {0.0, 0.7, 1.0}) {
        const HistoryGeneratorOptions options{
            .users = 40000, .shortest = 3, .longest = 5, .tastes = 3, .loyalty = loyalty, .seed = 5};
        const Histories all = generate_histories(AliasTable{weights}, options);
        std::vector<double> counts(weights.size(), 0.0);
        for (const std::int64_t item : all.items)
            counts[static_cast<std::size_t>(item)] += 1;
        const auto items = static_cast<double>(all.items.size());
        EXPECT_NEAR(items, 160000, 600);                        // 4 a user
        for (std::size_t row = 0; row < weights.size(); ++row)  // items of a user are not independent: a wide margin
            EXPECT_NEAR(counts[row] / items, weights[row] / sum, 0.008) << row << ", loyalty " << loyalty;
    }
}

TEST(HistoryGenerator, UsersHaveTastes) {
    const HistoryGeneratorOptions options{.users = 2000, .tastes = 8, .loyalty = 0.8, .seed = 2};
    const Histories all = generate_histories(shardwise::Zipf{500, 0.8}, options);
    ASSERT_EQ(all.size(), 2000);
    ASSERT_EQ(all.rows, 500);
    std::int64_t same = 0;
    std::int64_t pairs = 0;
    double by_chance = 0;  // of two items of different users
    for (std::int64_t user = 0; user + 1 < all.size(); ++user) {
        const auto mine = all.of(user);
        ASSERT_GE(std::ssize(mine), 20);
        ASSERT_LE(std::ssize(mine), 60);
        for (std::size_t i = 0; i + 1 < mine.size(); ++i) {
            ++pairs;
            same += taste_of(options, mine[i]) == taste_of(options, mine[i + 1]) ? 1 : 0;
            by_chance += taste_of(options, mine[i]) == taste_of(options, all.of(user + 1)[0]) ? 1 : 0;
        }
    }
    // 0.64 both loyal, and the share of the group else
    const double share = by_chance / static_cast<double>(pairs);
    EXPECT_NEAR(static_cast<double>(same) / static_cast<double>(pairs), 0.64 + 0.36 * share, 0.02);
    EXPECT_LT(share, 0.4);
}

TEST(HistoryGenerator, AUserIsAFunctionOfTheSeed) {
    const shardwise::Zipf law{100, 1.0};
    const Histories few = generate_histories(law, {.users = 10, .seed = 3});
    const Histories many = generate_histories(law, {.users = 20, .seed = 3});
    for (std::int64_t user = 0; user < 10; ++user)
        EXPECT_TRUE(std::ranges::equal(few.of(user), many.of(user)));
    EXPECT_FALSE(std::ranges::equal(few.of(0), few.of(1)));
    EXPECT_FALSE(std::ranges::equal(few.of(0), generate_histories(law, {.users = 10, .seed = 4}).of(0)));
}

TEST(HistoryGenerator, RefusesNumbersThatMakeNone) {
    const shardwise::Zipf law{100, 1.0};
    const auto wrong = [&](const HistoryGeneratorOptions& options) {
        EXPECT_THROW(static_cast<void>(generate_histories(law, options)), shardwise::BadInput);
    };
    wrong({.users = 0});
    wrong({.users = 1, .shortest = 0});
    wrong({.users = 1, .shortest = 9, .longest = 8});
    wrong({.users = 1, .tastes = 0});
    wrong({.users = 1, .loyalty = 1.5});
    wrong({.users = 1, .loyalty = std::nan("")});
}

}  // namespace
