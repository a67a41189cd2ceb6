// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
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

std::int64_t threads_of_process() {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/task"}, std::filesystem::directory_iterator{});
}

/// Runs `use(memory)` in a process of its own, where no product was computed before.
/// \param by_openblas  whether its products are OpenBLAS's; else oneDNN's, which starts threads when it first computes
template <class Use>
void expect_one_thread(Use use, bool by_openblas) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            openblas_set_num_threads(4);
            if (openblas_get_num_threads() == 1) std::exit(2);
            const std::int64_t before = threads_of_process();
            sw::MemoryAccount memory;
            use(memory);
            if (by_openblas && openblas_get_num_threads() != 1) std::exit(1);
            std::exit(threads_of_process() == before ? 0 : 3);
        },
        testing::ExitedWithCode(0), "");
}
#if defined(SHARDWISE_ONEDNN)
constexpr bool floats_by_openblas = false;
#else
constexpr bool floats_by_openblas = true;
#endif

class BlasThreads : public testing::TestWithParam<sw::DensePrecision> {};

TEST_P(BlasThreads, MlpTakesTheCallingOne) {
    expect_one_thread(
        [](sw::MemoryAccount& memory) {
            sw::ParameterSet set{memory.tables()};
            sw::Mlp<> mlp{set, "mlp", std::array<std::int64_t, 3>{500, 400, 200}, memory.work(), GetParam()};
            set.allocate(GetParam());
            const Matrix x{300, 500};
            static_cast<void>(mlp.forward(x.view()));
        },
        floats_by_openblas || GetParam() == sw::DensePrecision::wide);
}

TEST(blas_threads, linear_takes_the_calling_one) {
    expect_one_thread(
        [](sw::MemoryAccount& memory) {
            sw::ParameterSet set{memory.tables()};
            const sw::Linear linear{set, "linear", 500, 200};
            set.allocate();
            const Matrix x{300, 500};
            Matrix y{300, 200};
            linear.forward(x.view(), y.view());
        },
        floats_by_openblas);
}

TEST(blas_threads, interaction_takes_the_calling_one) {
    expect_one_thread(
        [](sw::MemoryAccount& memory) {
            sw::DotInteraction interaction{4, 40, memory.work()};
            const Matrix dense{3, 4};
            const Matrix features{3, 160};
            Matrix out{3, interaction.outputs()};
            interaction.forward(dense.view(), features.view(), out.view());
        },
        true);
}

INSTANTIATE_TEST_SUITE_P(Precisions, BlasThreads,
                         testing::Values(sw::DensePrecision::single, sw::DensePrecision::blocks,
                                         sw::DensePrecision::wide),
                         [](const auto& instance) {
                             const bool blocks = instance.param == sw::DensePrecision::blocks;
                             return instance.param == sw::DensePrecision::single ? "single"
                                    : blocks                                     ? "blocks"
                                                                                 : "wide";
                         });

}  // namespace
}  // namespace dense_test
