// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/embedding/tables/initial_weight.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/embedding/tables/store.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"

namespace shardwise_test {
namespace {

using shardwise::initial_weight;

TEST(InitialWeight, IsKnownAtCompileTimeAndAlwaysTheSame) {
    // The bits are part of the interface: checkpoints and tests of other versions rely on them.
    static_assert(initial_weight(1, 0, 0, 0, 1.0F) == initial_weight(1, 0, 0, 0, 1.0F));
    EXPECT_EQ(std::bit_cast<std::uint32_t>(initial_weight(1, 0, 0, 0, 1.0F)), 0xbf2aac62U);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(initial_weight(42, 3, 1000000000000, 127, 0.125F)), 0x3dd3f0d6U);
}

RC_GTEST_PROP(InitialWeight, LiesInItsBoundsAndScalesWithThem, (std::uint64_t seed, std::uint16_t table)) {
    const auto row = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 40);
    const auto column = *rc::gen::inRange(0, 1024);
    const float weight = initial_weight(seed, table, row, column, 1.0F);
    RC_ASSERT(weight >= -1.0F);
    RC_ASSERT(weight < 1.0F);
    RC_ASSERT(initial_weight(seed, table, row, column, 0.25F) == 0.25F * weight);
}

/// Chi square of counts over equally likely bins, and how much of it a fair draw almost never exceeds.
double chi_square(const std::vector<std::int64_t>& counts) {
    double total = 0.0;
    for (const std::int64_t count : counts)
        total += static_cast<double>(count);
    const double expected = total / static_cast<double>(counts.size());
    double sum = 0.0;
    for (const std::int64_t count : counts)
        sum += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) / expected;
    return sum;
}

TEST(InitialWeight, IsUniformAlongEveryArgument) {
    constexpr int bins = 64;
    constexpr int draws = 64000;
    for (int axis = 0; axis < 4; ++axis) {
        std::vector<std::int64_t> counts(bins);
        double sum = 0.0;
        double product = 0.0;
        double before = 0.0;
        for (int i = 0; i < draws; ++i) {
            const double weight = initial_weight(axis == 0 ? static_cast<std::uint64_t>(i) : 7U, axis == 1 ? i : 2,
                                                 axis == 2 ? i : 12345, axis == 3 ? i : 5, 1.0F);
            ++counts[static_cast<std::size_t>((weight + 1.0) / 2.0 * bins)];
            sum += weight;
            product += weight * before;
            before = weight;
        }
        EXPECT_LT(chi_square(counts), 63 + 5 * std::sqrt(2.0 * 63)) << "axis " << axis;
        EXPECT_LT(std::abs(sum / draws), 5 * std::sqrt(1.0 / 3.0 / draws)) << "axis " << axis;
        EXPECT_LT(std::abs(product / draws), 5 * (1.0 / 3.0) / std::sqrt(draws)) << "axis " << axis;  // neighbours
    }
}

TEST(InitialWeight, EveryArgumentMatters) {
    const float weight = initial_weight(1, 2, 3, 4, 1.0F);
    EXPECT_NE(initial_weight(2, 2, 3, 4, 1.0F), weight);
    EXPECT_NE(initial_weight(1, 3, 3, 4, 1.0F), weight);
    EXPECT_NE(initial_weight(1, 2, 4, 4, 1.0F), weight);
    EXPECT_NE(initial_weight(1, 2, 3, 5, 1.0F), weight);
    EXPECT_NE(initial_weight(1, 2, 4, 3, 1.0F), weight);  // arguments do not trade places
    EXPECT_NE(initial_weight(1, 3, 2, 4, 1.0F), weight);
}

/// Whatever the sharding, a row has the same weights.
template <class S>
void check_initialize() {
    const shardwise::Topology topology{.hosts = 2, .ranks_per_host = 2};
    const std::vector<shardwise::TableConfig> tables{
        {.name = "skipped", .rows = 4, .dim = 2, .features = {}, .sharding = ""},
        {.name = "a", .rows = 13, .dim = 6, .features = {}, .sharding = ""},
        {.name = "b", .rows = 2, .dim = 3, .features = {}, .sharding = ""}};
    const auto placement = shardwise::place_tables<S>(topology, tables, {1, 2});
    std::int64_t seen = 0;
    for (int rank = 0; rank < topology.ranks(); ++rank) {
        const shardwise::HeldShards held{placement, rank};
        shardwise::Store store{held, 2, 1, *std::pmr::new_delete_resource(), *std::pmr::new_delete_resource()};
        shardwise::initialize(store, placement, 9, std::vector<shardwise::InitialValues>(3));
        for (const auto& shard : store.shards()) {
            const auto& table = placement.tables[static_cast<std::size_t>(shard.table)];
            const auto& columns = table.shards[static_cast<std::size_t>(shard.shard)].columns;
            const float bound = 1.0F / std::sqrt(static_cast<float>(table.rows));
            for (std::int64_t local = 0; local < shard.rows; ++local) {
                const std::int64_t row = table.map->row({.shard = shard.shard, .local = local});
                for (int d = 0; d < columns.count; ++d, ++seen)
                    EXPECT_EQ(shard.weights[static_cast<std::size_t>(local * shard.dim + d)],
                              initial_weight(9, table.table, row, columns.first + d, bound));
            }
            for (const float state : shard.element_state.span())
                EXPECT_EQ(state, 0.0F);
            EXPECT_EQ(shard.element_state.size(), 2 * shard.weights.size());
            EXPECT_EQ(shard.row_state.size(), static_cast<std::size_t>(shard.rows));
        }
    }
    EXPECT_EQ(seen, (13 * 6 + 2 * 3) * placement.copies());
}

TEST(Initialize, GivesEveryRowItsWeightsUnderEverySharding) {
    check_initialize<shardwise::Row>();
    check_initialize<shardwise::Col<>>();
    check_initialize<shardwise::Table>();
    check_initialize<shardwise::DP>();
}

}  // namespace
}  // namespace shardwise_test
