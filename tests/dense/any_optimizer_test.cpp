// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/any_optimizer.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "dense/support.hpp"
#include "shardwise/plan/memory.hpp"

namespace dense_test {
namespace {

namespace sw = shardwise;

static_assert(sw::DenseOptimizer<sw::AnyDenseOptimizer>);

/// Steps of both, the second half behind a restored state, as from a checkpoint.
template <class Optimizer>
void expect_same_bits(const std::string& name) {
    constexpr std::size_t elements = 53;
    sw::MemoryAccount memory;
    Optimizer typed{elements, memory.tables()};
    sw::AnyDenseOptimizer first{name, elements, memory.tables()};
    sw::AnyDenseOptimizer second{name, elements, memory.tables()};
    EXPECT_EQ(first.moments(), Optimizer::moments());
    EXPECT_EQ(first.state().size(), elements * Optimizer::moments());
    Random random{7};
    std::vector<float> expected(elements);
    random.fill(expected);
    std::vector<float> values{expected};
    std::vector<float> gradients(elements);
    const auto allocations = memory.allocations();
    for (int t = 0; t < 10; ++t) {
        if (t == 5) {
            std::ranges::copy(first.state(), second.state().begin());
            second.set_steps(first.steps());
        }
        sw::AnyDenseOptimizer& any = t < 5 ? first : second;
        random.fill(gradients);
        typed.step(expected, gradients, 0.1 / (t + 1));
        any.step(values, gradients, 0.1 / (t + 1));
        EXPECT_EQ(any.steps(), t + 1);
        EXPECT_TRUE(std::ranges::equal(any.state(), typed.state()));
    }
    EXPECT_EQ(values, expected);
    EXPECT_EQ(memory.allocations(), allocations);
}

TEST(any_optimizer, computes_what_the_named_one_does) {
    expect_same_bits<sw::DenseSgd>("sgd");
    expect_same_bits<sw::DenseAdagrad>("adagrad");
    expect_same_bits<sw::DenseAdam>("adam");
}

TEST(any_optimizer, another_name_is_an_error_that_lists_them) {
    sw::MemoryAccount memory;
    try {
        const sw::AnyDenseOptimizer any{"rowwise_adagrad", 3, memory.tables()};
        FAIL();
    } catch (const sw::BadInput& error) {
        EXPECT_STREQ(error.what(), "dense optimizer 'rowwise_adagrad': there is none; give one of sgd, adagrad, adam");
    }
}

}  // namespace
}  // namespace dense_test
