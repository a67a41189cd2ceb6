// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/interaction.hpp"

#include <utility>
#include <vector>

#include "dense/naive.hpp"
#include "dense/support.hpp"

namespace dense_test {
namespace {
using shardwise::DotInteraction;

TEST(interaction, orders_pairs_as_the_reference_does) {
    shardwise::MemoryAccount memory;
    DotInteraction interaction{1, 3, memory.work()};
    Matrix dense{1, 1};
    Matrix features{1, 3};
    dense.view()(0, 0) = 2.0F;
    features.view()(0, 0) = 3.0F;
    features.view()(0, 1) = 5.0F;
    features.view()(0, 2) = 7.0F;
    Matrix output{1, 7};
    ASSERT_EQ(interaction.outputs(), 7);
    interaction.forward(dense.view(), features.view(), output.view());
    expect_all_close(output.elements.span(), std::vector{2.0, 6.0, 10.0, 15.0, 14.0, 21.0, 35.0}, 0.0);
}

TEST(interaction, equals_the_definition_and_its_slopes) {
    Random random{4};
    for (const std::int64_t dimension : {1, 3, 16, 64})
        for (const std::int64_t vectors : {1, 2, 3, 6, 27})
            for (const auto& [samples, with_dense] :
                 {std::pair{0, true}, {1, true}, {3, true}, {0, false}, {3, false}}) {
                const std::int64_t front = with_dense ? dimension : 0;  // columns of the dense vector
                const std::int64_t count = vectors - (with_dense ? 1 : 0);
                SCOPED_TRACE(testing::Message() << "D " << dimension << ", F " << count << ", samples " << samples);
                shardwise::MemoryAccount memory;
                DotInteraction interaction{dimension, count, memory.work(), with_dense};
                ASSERT_EQ(interaction.features(), count);
                ASSERT_EQ(interaction.outputs(), front + vectors * (vectors - 1) / 2);
                const Matrix dense{samples, front, random};
                const Matrix wide{samples, count * dimension + 3, random};  // rows lie further apart
                const auto features = samples == 0 ? MatrixView<const float>{nullptr, 0, count * dimension}
                                                   : wide.view().columns_from(2, count * dimension);
                Matrix output{samples, interaction.outputs(), random};
                Matrix dense_gradient{samples, front, random};
                Matrix feature_gradient{samples, count * dimension, random};
                const Matrix gradient{samples, interaction.outputs(), random};
                const auto allocations = memory.allocations();
                interaction.forward(dense.view(), features, output.view());
                interaction.backward(dense.view(), features, gradient.view(), dense_gradient.view(),
                                     feature_gradient.view());
                EXPECT_EQ(memory.allocations(), allocations);

                for (std::int64_t sample = 0; sample < samples; ++sample) {
                    const auto of = [&](const auto& matrix) {
                        return std::span<const float>{matrix.row(sample), static_cast<std::size_t>(matrix.columns())};
                    };
                    auto x = as_double(of(dense.view()));
                    const auto f = as_double(of(features));
                    x.insert(x.end(), f.begin(), f.end());
                    const auto d = static_cast<std::ptrdiff_t>(front);
                    const auto naive = [&] {
                        return naive_interaction({{x.begin(), x.begin() + d}}, {{x.begin() + d, x.end()}},
                                                 dimension)[0];
                    };
                    expect_all_close(of(output.view()), naive(), 1e-5);
                    const auto dy = of(gradient.view());
                    const auto loss = [&] {
                        const auto y = naive();
                        double sum = 0.0;
                        for (std::size_t i = 0; i < y.size(); ++i)
                            sum += y[i] * static_cast<double>(dy[i]);
                        return sum;
                    };
                    for (std::size_t i = 0; i < x.size(); i += 1 + x.size() / 60) {
                        const auto column = static_cast<std::int64_t>(i);
                        const float computed = column < front ? dense_gradient.view()(sample, column)
                                                              : feature_gradient.view()(sample, column - front);
                        expect_close(computed, slope(x, i, loss), 1e-5);
                    }
                }
            }
}

TEST(interaction, refuses_no_dimension) {
    shardwise::MemoryAccount memory;
    EXPECT_THROW((DotInteraction{0, 3, memory.work()}), shardwise::BadInput);
    EXPECT_THROW((DotInteraction{4, -1, memory.work()}), shardwise::BadInput);
}

}  // namespace
}  // namespace dense_test
