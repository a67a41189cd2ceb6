// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/core/matrix.hpp"

#include <numeric>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

namespace shardwise_test {
namespace {

using shardwise::MatrixView;

TEST(MatrixViewTest, RowsAreStrideApart) {
    std::vector<int> data(20);
    std::iota(data.begin(), data.end(), 0);
    const MatrixView<int> packed{data.data(), 4, 5};
    EXPECT_EQ(packed.stride(), 5);
    EXPECT_EQ(packed(3, 4), 19);
    const MatrixView<int> wide{data.data(), 4, 2, 5};
    EXPECT_EQ(wide(2, 1), 11);
    EXPECT_EQ(wide.row(3), data.data() + 15);
    wide(2, 1) = -1;
    EXPECT_EQ(data[11], -1);
}

TEST(MatrixViewTest, PartsKeepTheStride) {
    std::vector<int> data(24);
    std::iota(data.begin(), data.end(), 0);
    const MatrixView<int> all{data.data(), 4, 6};
    const MatrixView<int> part = all.columns_from(2, 3).rows_from(1, 2);
    EXPECT_EQ(part.rows(), 2);
    EXPECT_EQ(part.columns(), 3);
    EXPECT_EQ(part.stride(), 6);
    EXPECT_EQ(part(0, 0), 8);
    EXPECT_EQ(part(1, 2), 16);
    EXPECT_EQ(all.columns_from(6, 0).columns(), 0);
    EXPECT_EQ(all.rows_from(4, 0).rows(), 0);
}

TEST(MatrixViewTest, IsEmptyByDefault) {
    constexpr MatrixView<const float> nothing;
    EXPECT_EQ(nothing.data(), nullptr);
    EXPECT_EQ(nothing.rows(), 0);
    EXPECT_EQ(nothing.columns(), 0);
}

TEST(MatrixViewTest, ConvertsToConstantElementsOnly) {
    static_assert(std::is_convertible_v<MatrixView<float>, MatrixView<const float>>);
    static_assert(!std::is_convertible_v<MatrixView<const float>, MatrixView<float>>);
    std::vector<float> data(6, 1.0F);
    const MatrixView<const float> constant = MatrixView<float>{data.data(), 2, 1, 3};
    EXPECT_EQ(constant.row(1), data.data() + 3);
    EXPECT_EQ(constant.columns(), 1);
}

}  // namespace
}  // namespace shardwise_test
