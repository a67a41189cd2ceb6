// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <cblas.h>
#include <gtest/gtest.h>

#include "dense/support.hpp"
#include "shardwise/dense/interaction.hpp"
#include "shardwise/dense/linear.hpp"
#include "shardwise/dense/mlp.hpp"
#include "shardwise/plan/memory.hpp"

/// \file
/// Each layer alone computes on the calling thread, in a process whose OpenBLAS was told to take four.

namespace dense_test {
namespace {

namespace sw = shardwise;

/// Runs `use(memory)` in a process of its own, where no product was computed before.
template <class Use>
void expect_one_thread(Use use) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            openblas_set_num_threads(4);
            if (openblas_get_num_threads() == 1) std::exit(2);
            sw::MemoryAccount memory;
            use(memory);
            std::exit(openblas_get_num_threads() == 1 ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

class BlasThreads : public testing::TestWithParam<sw::DensePrecision> {};

TEST_P(BlasThreads, MlpTakesTheCallingOne) {
    expect_one_thread([](sw::MemoryAccount& memory) {
        sw::ParameterSet set{memory.tables()};
        sw::Mlp<> mlp{set, "mlp", std::array<std::int64_t, 3>{5, 4, 2}, memory.work(), GetParam()};
        set.allocate(GetParam());
        const Matrix x{3, 5};
        static_cast<void>(mlp.forward(x.view()));
    });
}

TEST(blas_threads, linear_takes_the_calling_one) {
    expect_one_thread([](sw::MemoryAccount& memory) {
        sw::ParameterSet set{memory.tables()};
        const sw::Linear linear{set, "linear", 5, 2};
        set.allocate();
        const Matrix x{3, 5};
        Matrix y{3, 2};
        linear.forward(x.view(), y.view());
    });
}

TEST(blas_threads, interaction_takes_the_calling_one) {
    expect_one_thread([](sw::MemoryAccount& memory) {
        sw::DotInteraction interaction{4, 40, memory.work()};
        const Matrix dense{3, 4};
        const Matrix features{3, 160};
        Matrix out{3, interaction.outputs()};
        interaction.forward(dense.view(), features.view(), out.view());
    });
}

INSTANTIATE_TEST_SUITE_P(Precisions, BlasThreads,
                         testing::Values(sw::DensePrecision::single, sw::DensePrecision::blocks,
                                         sw::DensePrecision::wide),
                         [](const auto& instance) {
                             return std::array{"single", "blocks", "wide"}[static_cast<std::size_t>(instance.param)];
                         });

}  // namespace
}  // namespace dense_test
