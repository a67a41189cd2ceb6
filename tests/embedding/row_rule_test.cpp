// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A rule over whole rows, of whatever width: each column learns what it would alone.

#include "shardwise/embedding/tables/row_rule.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/core/text.hpp"
#include "shardwise/embedding/tables/store.hpp"
#include "shardwise/optimizer/adagrad.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/rms_prop.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/optimizer/sgd.hpp"

namespace shardwise_test {
namespace {

namespace sw = shardwise;

constexpr std::int64_t rows = 100;

/// Rows of weights -0.0, without a past.
sw::ShardStore shard_of(int dim, const sw::RowRule& rule) {
    sw::ShardStore shard{.rows = rows, .dim = dim, .weights = {}, .element_state = {}, .row_state = {}};
    const auto fill = [](sw::Buffer<float>& buffer, std::int64_t count, float value) {
        buffer.resize(static_cast<std::size_t>(count));
        std::fill_n(buffer.data(), buffer.size(), value);
    };
    fill(shard.weights, rows * dim, -0.0F);
    fill(shard.element_state, rows * dim * rule.element_slots(), 0.0F);
    fill(shard.row_state, rows * rule.row_slots(), 0.0F);
    return shard;
}

/// The bits of a table's weights and of the state of its elements after some steps, its columns in shards of so many.
/// \param zero  what stands for a gradient of none
std::vector<std::uint32_t> learnt(const sw::RowRule& rule, int dim, int columns, float zero) {
    std::vector<sw::ShardStore> shards;
    for (int first = 0; first < dim; first += columns)
        shards.push_back(shard_of(columns, rule));
    std::mt19937 dice{7};
    std::normal_distribution<float> normal;
    std::vector<float> gradient(static_cast<std::size_t>(sw::RowRule::most_rows * dim));
    for (int step = 1; step <= 3; ++step) {
        for (float& g : gradient)
            g = dice() % 8 == 0 ? zero : normal(dice);
        std::vector<sw::TouchedRow> touched;
        for (int i = 0; i < sw::RowRule::most_rows - step; ++i)  // from the last on, and not all
            touched.push_back({.row = static_cast<sw::LocalRow>(rows - 1 - i - step),
                               .gradient = gradient.data() + i * dim,
                               .sum_of_squares = 0.5 + i});
        for (sw::ShardStore& shard : shards) {
            rule.apply({.learning_rate = 0.1F, .step = step}, shard, dim, touched);
            for (sw::TouchedRow& row : touched)
                row.gradient += columns;
        }
    }
    std::vector<std::uint32_t> all;
    const auto add = [&](const sw::Buffer<float>& of, std::int64_t row) {
        for (int d = 0; d < columns; ++d)
            all.push_back(std::bit_cast<std::uint32_t>(of.data()[row * columns + d]));
    };
    for (std::int64_t row = 0; row < rows; ++row) {
        for (const sw::ShardStore& shard : shards)
            add(shard.weights, row);
        for (int slot = 0; slot < rule.element_slots(); ++slot)
            for (const sw::ShardStore& shard : shards)
                add(shard.element_state, row * rule.element_slots() + slot);
    }
    return all;
}

TEST(RowRule, AColumnLearnsTheSameInARowOfAnyWidth) {
    const std::vector<std::shared_ptr<const sw::RowRule>> rules{
        sw::make_row_rule(sw::Sgd{}), sw::make_row_rule(sw::RowwiseAdagrad<>{}), sw::make_row_rule(sw::Adagrad{}),
        sw::make_row_rule(sw::Adam{}), sw::make_row_rule(sw::RmsProp{})};
    for (const auto& rule : rules) {
        const std::shared_ptr<const sw::RowRule> settled = sw::for_groups(rule, 1);
        for (const int dim : {1, 7, 15, 16, 17, 32, 48, 63, 64, 65, 128, 136, 256}) {
            SCOPED_TRACE(sw::concat({rule->name(), ", ", dim, " columns"}));
            EXPECT_EQ(learnt(*settled, dim, dim, -0.0F), learnt(*settled, dim, 1, 0.0F));
        }
    }
}

}  // namespace
}  // namespace shardwise_test
