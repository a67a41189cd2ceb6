// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/data/alias_table.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/core/error.hpp"
#include "shardwise/data/keyed_random.hpp"

namespace {
using shardwise::AliasTable;

/// Numbers between which the table's decisions lie, instead of random ones.
struct Given {
    std::vector<double> numbers;
    std::size_t at = 0;
    double uniform() { return numbers.at(at++); }
};

/// Every column's two parts, measured: the probability of each row, but for the width of a step.
std::vector<double> probabilities(const AliasTable& table, int steps) {
    std::vector<double> found(static_cast<std::size_t>(table.rows()), 0.0);
    for (std::int64_t column = 0; column < table.rows(); ++column)
        for (int step = 0; step < steps; ++step) {
            Given given{
                {(static_cast<double>(column) + 0.5) / static_cast<double>(table.rows()), (step + 0.5) / steps}};
            found[static_cast<std::size_t>(table(given))] += 1.0 / steps / static_cast<double>(table.rows());
        }
    return found;
}

RC_GTEST_PROP(AliasTable, HasTheProbabilitiesOfItsWeights, ()) {
    auto weights = *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(
        rc::gen::map(rc::gen::inRange(0, 50), [](int w) { return w < 10 ? 0.0 : w * w / 7.0; })));
    weights.push_back(1.0);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const auto found = probabilities(AliasTable{weights}, 2000);
    for (std::size_t row = 0; row < weights.size(); ++row) {
        RC_ASSERT(std::abs(found[row] - weights[row] / sum) < 1e-3);
        if (weights[row] == 0) RC_ASSERT(found[row] == 0.0);
    }
}

TEST(AliasTable, RefusesWeightsThatAreNone) {
    EXPECT_THROW(AliasTable{std::vector<double>{}}, shardwise::BadInput);
    EXPECT_THROW((AliasTable{std::vector<double>{0.0, 0.0}}), shardwise::BadInput);
    EXPECT_THROW((AliasTable{std::vector<double>{1.0, -1.0}}), shardwise::BadInput);
    EXPECT_THROW((AliasTable{std::vector<double>{1.0, std::numeric_limits<double>::infinity()}}), shardwise::BadInput);
    EXPECT_THROW((AliasTable{std::vector<double>{1.0, std::numeric_limits<double>::quiet_NaN()}}), shardwise::BadInput);
    shardwise::KeyedRandom random{1, 2, 3};
    EXPECT_EQ((AliasTable{std::vector<double>{0.0, 2.0, 0.0}}(random)), 1);
}

}  // namespace
