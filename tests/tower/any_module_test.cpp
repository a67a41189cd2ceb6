// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/tower/any_module.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "dense/support.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/embedding/lanes/tower_module.hpp"

namespace {

namespace sw = shardwise;

static_assert(sw::TowerModule<sw::AnyModule>);

/// All that it says and computes beside the module that it stands for, bit for bit.
template <class M>
void expect_same(const typename M::Config& config, const sw::TowerShape& shape, std::uint32_t seed) {
    SCOPED_TRACE(seed);
    const sw::AnyModule::Config any_config{config};
    EXPECT_EQ(sw::AnyModule::outputs(any_config, shape), M::outputs(config, shape));
    EXPECT_EQ(sw::AnyModule::static_bytes(any_config, shape), M::static_bytes(config, shape));
    EXPECT_EQ(sw::AnyModule::parameter_count(any_config, shape), M::parameter_count(config, shape));
    EXPECT_EQ(sw::AnyModule::span_elements(any_config, shape), M::span_elements(config, shape));
    EXPECT_EQ(sw::AnyModule::flops(any_config, shape), M::flops(config, shape));

    sw::MemoryAccount memory;
    M module{config, shape, seed, memory};
    const std::int64_t of_one = memory.static_bytes();
    sw::AnyModule any{any_config, shape, seed, memory};
    EXPECT_EQ(memory.static_bytes(), 2 * of_one);
    EXPECT_TRUE(std::ranges::equal(any.parameters().values(), module.parameters().values()));

    dense_test::Random random{seed};
    typename M::Work work;
    sw::AnyModule::Work any_work;
    sw::MemoryTally tally;
    sw::MemoryTally any_tally;
    for (const std::int64_t rows : {0, 1, 7}) {
        M::work_bytes(config, shape, rows, tally);
        sw::AnyModule::work_bytes(any_config, shape, rows, any_tally);
        EXPECT_EQ(any_tally.bytes(), tally.bytes());
        const dense_test::Matrix in{rows, shape.width(), random};
        const dense_test::Matrix gradient{rows, M::outputs(config, shape), random};
        dense_test::Matrix out{rows, gradient.columns};
        dense_test::Matrix any_out{rows, gradient.columns};
        dense_test::Matrix through{rows, in.columns};
        dense_test::Matrix any_through{rows, in.columns};
        module.forward(in.view(), work, out.view(), memory.work());
        any.forward(in.view(), any_work, any_out.view(), memory.work());
        module.backward(work, gradient.view(), through.view(), memory.work());
        any.backward(any_work, gradient.view(), any_through.view(), memory.work());
        EXPECT_TRUE(std::ranges::equal(any_out.elements.span(), out.elements.span()));
        EXPECT_TRUE(std::ranges::equal(any_through.elements.span(), through.elements.span()));
        EXPECT_TRUE(std::ranges::equal(any.parameters().gradients(), module.parameters().gradients()));
        EXPECT_TRUE(std::ranges::equal(any.parameters().wide_gradients(), module.parameters().wide_gradients()));
    }
}

TEST(any_module, does_what_the_chosen_one_does) {
    dense_test::Random random{5};
    const auto below = [&](std::int64_t n) { return static_cast<int>(random.below(n)); };
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
        sw::TowerShape shape{.tower = below(4), .dims = {}};
        const auto precision = seed % 2 == 0 ? sw::DensePrecision::single : sw::DensePrecision::wide;
        for (int features = 1 + below(4); features > 0; --features)
            shape.dims.push_back(1 + below(9));
        expect_same<sw::Dot>(
            {.per_feature = 1 + below(2), .per_tower = below(3), .dimension = 1 + below(6), .precision = precision},
            shape, seed);
        expect_same<sw::Cross>({.layers = 1 + below(3),
                                .rank = below(3),
                                .per_tower = 1 + below(2),
                                .dimension = 1 + below(6),
                                .precision = precision},
                               shape, seed);
    }
}

TEST(any_module, says_which_one_to_ranks_that_have_to_agree) {
    const auto digest = [](const sw::AnyModule::Config& config) {
        sw::Digest all;
        config.add_to(all);
        return all.bits16();
    };
    const sw::Dot::Config dot{.per_feature = 1, .per_tower = 0, .dimension = 4};
    EXPECT_NE(digest({dot}), digest({sw::Dot::Config{.per_feature = 1, .per_tower = 0, .dimension = 5}}));
    const sw::Cross::Config cross{.layers = 1, .rank = 0, .per_tower = 1, .dimension = 4};
    sw::Digest second;
    second.add(std::int64_t{1});
    cross.add_to(second);
    EXPECT_EQ(digest({cross}), second.bits16());
}

}  // namespace
