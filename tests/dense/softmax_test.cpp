// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/softmax.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "dense/naive_sequences.hpp"

namespace dense_test {
namespace {
using shardwise::AttentionMask;

/// The definition, with exp as it stands.
std::vector<double> naive_softmax(const std::vector<double>& x, std::size_t columns, double scale, AttentionMask mask) {
    std::vector<double> y(x.size(), 0.0);
    const std::size_t rows = columns == 0 ? 0 : x.size() / columns;
    for (std::size_t i = 0; i < rows; ++i) {
        double sum = 0.0;
        const auto sees = [&](std::size_t j) {
            return mask.kind == AttentionMask::Kind::none || j + rows <= i + columns;
        };
        for (std::size_t j = 0; j < columns; ++j)
            if (sees(j)) sum += std::exp(scale * x[i * columns + j]);
        for (std::size_t j = 0; j < columns; ++j)
            if (sees(j)) y[i * columns + j] = std::exp(scale * x[i * columns + j]) / sum;
    }
    return y;
}

RC_GTEST_PROP(softmax, equals_the_definition_and_its_slopes, ()) {
    const auto rows = *rc::gen::inRange<std::int64_t>(0, 6);
    const auto columns = *rc::gen::inRange<std::int64_t>(0, 6);
    const double scale = *rc::gen::element(0.25, 1.0, 3.0);
    const AttentionMask mask{*rc::gen::element(AttentionMask::Kind::none, AttentionMask::Kind::causal)};
    Random random{*rc::gen::arbitrary<std::uint32_t>()};
    Matrix x{rows, columns, random};
    auto exact = as_double(x.elements.span());
    Matrix gradient{rows, columns, random};
    const auto weights = as_double(gradient.elements.span());
    const auto naive = [&] { return naive_softmax(exact, static_cast<std::size_t>(columns), scale, mask); };

    shardwise::softmax(x.view(), scale, mask);
    RC_ASSERT(worst(x.elements.span(), naive()) < 1e-6);
    shardwise::softmax_backward(x.view(), scale, gradient.view());
    const auto loss = [&] {
        double sum = 0.0;
        const auto y = naive();
        for (std::size_t i = 0; i < y.size(); ++i)
            sum += weights[i] * y[i];
        return sum;
    };
    RC_ASSERT(worst(gradient.elements.span(), slopes(exact, loss)) < 1e-5);
}

TEST(softmax, keeps_to_numbers_however_large_the_scores) {
    Matrix x{2, 3};
    const float scores[] = {1e30F, -1e30F, 1e30F, -3e38F, -3e38F, -3e38F};
    std::copy(std::begin(scores), std::end(scores), x.elements.data());
    shardwise::softmax(x.view(), 2.0);
    expect_all_close(x.elements.span(), std::vector{0.5, 0.0, 0.5, 1.0 / 3, 1.0 / 3, 1.0 / 3}, 1e-7);
}

TEST(softmax, questions_stand_at_the_end_of_the_items) {
    const AttentionMask causal{AttentionMask::Kind::causal};
    EXPECT_EQ(causal.visible(0, 1, 5), 5);
    EXPECT_EQ(causal.visible(0, 3, 5), 3);
    EXPECT_EQ(causal.visible(2, 3, 5), 5);
    EXPECT_EQ(causal.visible(0, 5, 5), 1);
    EXPECT_EQ(causal.visible(0, 6, 5), 0);
    Matrix x{2, 1};
    x.elements[0] = x.elements[1] = 4.0F;
    shardwise::softmax(x.view(), 1.0, causal);  // the first question stands before the only item
    EXPECT_EQ(x.elements[0], 0.0F);
    EXPECT_EQ(x.elements[1], 1.0F);
}

}  // namespace
}  // namespace dense_test
