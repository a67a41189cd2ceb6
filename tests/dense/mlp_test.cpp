// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/mlp.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "dense/naive.hpp"
#include "dense/support.hpp"

namespace dense_test {
namespace {
using shardwise::DensePrecision;
using shardwise::Identity;
using shardwise::Relu;
using shardwise::Sigmoid;

TEST(activation, values_and_slopes) {
    EXPECT_EQ(Relu::value(2.5F), 2.5F);
    EXPECT_EQ(Relu::value(-2.5F), 0.0F);
    EXPECT_FALSE(std::signbit(Relu::value(-0.0F)));
    EXPECT_TRUE(std::isnan(Relu::value(std::numeric_limits<float>::quiet_NaN())));
    EXPECT_EQ(Relu::through(0.0F, 3.0F), 0.0F);
    EXPECT_EQ(Relu::through(0.5F, 3.0F), 3.0F);
    EXPECT_EQ(Sigmoid::value(0.0F), 0.5F);
    EXPECT_EQ(Sigmoid::value(-1000.0F), 0.0F);
    EXPECT_EQ(Sigmoid::value(1000.0F), 1.0F);
    for (float z = -20.0F; z < 20.0F; z += 0.37F) {
        expect_close(Sigmoid::value(z), naive_sigmoid(z), 1e-7);
        const double y = naive_sigmoid(z);
        expect_close(Sigmoid::through(Sigmoid::value(z), 2.0F), 2 * y * (1 - y), 1e-6);
    }
}

/// Forward, parameter gradients and input gradient against the naive model and its slopes.
template <class Hidden, class Last, class NaiveHidden, class NaiveLast>
void check_mlp(std::vector<std::int64_t> widths, std::int64_t samples, NaiveHidden hidden, NaiveLast last,
               DensePrecision precision) {
    SCOPED_TRACE(testing::Message() << samples << " samples, " << widths.size() - 1 << " layers, " << widths.front()
                                    << " inputs, " << widths.back() << " outputs");
    shardwise::MemoryAccount memory;
    shardwise::ParameterSet set{memory.tables()};
    shardwise::Mlp<Hidden, Last> mlp{set, "mlp", widths, memory.work(), precision};
    set.allocate(precision);
    mlp.initialize(5);
    Random random{11};
    random.fill(set.gradients());  // what stood there before does not matter
    const Matrix x{samples, widths.front(), random};
    const Matrix gradient{samples, widths.back(), random};
    Matrix x_gradient{samples, widths.front(), random};

    auto parameters = naive_parameters(set);
    auto inputs = as_double(x.elements.span());
    const auto naive = [&] { return naive_mlp(as_rows(inputs, samples, widths.front()), parameters, hidden, last); };
    const auto y = mlp.forward(x.view());
    ASSERT_EQ(y.rows(), samples);
    ASSERT_EQ(y.columns(), widths.back());
    const Rows expected = naive();
    for (std::int64_t i = 0; i < samples; ++i)
        expect_all_close(std::span{y.row(i), static_cast<std::size_t>(y.columns())},
                         expected[static_cast<std::size_t>(i)], 1e-5);

    random.fill(set.gradients());
    for (double& wide : set.wide_gradients())
        wide = 7.0;
    mlp.backward(gradient.view(), x_gradient.view());
    if (precision != DensePrecision::single) set.round_gradients();
    const auto loss = [&] {
        double sum = 0.0;
        const Rows output = naive();
        for (std::int64_t i = 0; i < samples; ++i)
            for (std::int64_t j = 0; j < gradient.columns; ++j)
                sum += output[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] *
                       static_cast<double>(gradient.view()(i, j));
        return sum;
    };
    expect_slopes(set, parameters, loss);
    for (std::size_t i = 0; i < inputs.size(); i += 1 + inputs.size() / 40)
        expect_close(x_gradient.elements[i], slope(inputs, i, loss), 1e-4);

    // Without the input's gradient the parameters' are the same.
    const std::vector<float> before(set.gradients().begin(), set.gradients().end());
    std::fill(set.gradients().begin(), set.gradients().end(), 0.0F);
    mlp.backward(gradient.view());
    if (precision != DensePrecision::single) set.round_gradients();
    for (const auto& parameter : set)
        for (std::size_t i = 0; i < parameter.size(); ++i)
            EXPECT_EQ(parameter.gradients()[i],
                      before[static_cast<std::size_t>(parameter.gradient.data() - set.gradients().data()) + i]);
}

TEST(mlp, equals_the_definition_and_its_slopes) {
    for (const DensePrecision precision : {DensePrecision::single, DensePrecision::blocks, DensePrecision::wide}) {
        for (const std::int64_t samples : {0, 1, 2, 33}) {
            check_mlp<Relu, Identity>({7, 1}, samples, naive_relu, naive_identity, precision);
            check_mlp<Relu, Identity>({13, 24, 9, 1}, samples, naive_relu, naive_identity, precision);
            check_mlp<Relu, Relu>({1, 16, 3}, samples, naive_relu, naive_relu, precision);
            check_mlp<Sigmoid, Sigmoid>({5, 4, 3, 2}, samples, naive_sigmoid, naive_sigmoid, precision);
            check_mlp<Identity, Relu>({64, 65}, samples, naive_identity, naive_relu, precision);
        }
    }
}

/// The same batch in one piece and in several: outputs, input gradients and the rounded sum of parameter gradients.
TEST(mlp, in_wide_precision_it_does_not_show_how_a_batch_is_split) {
    constexpr std::int64_t samples = 60;
    const std::array<std::int64_t, 4> widths{40, 128, 64, 1};
    Random random{3};
    const Matrix x{samples, 40, random};
    const Matrix gradient{samples, 1, random};
    std::vector<std::vector<float>> outputs;
    std::vector<std::vector<float>> gradients;
    for (const std::int64_t parts : {1, 2, 3, 4, 60}) {
        shardwise::MemoryAccount memory;
        shardwise::ParameterSet set{memory.tables()};
        shardwise::Mlp<> mlp{set, "mlp", widths, memory.work(), DensePrecision::wide};
        set.allocate(DensePrecision::wide);
        mlp.initialize(5);
        std::vector<double> sum(set.wide_gradients().size());
        std::vector<float> all;
        for (std::int64_t first = 0; first < samples; first += samples / parts) {
            const auto y = mlp.forward(x.view().rows_from(first, samples / parts));
            all.insert(all.end(), y.data(), y.data() + y.rows());
            Matrix dx{samples / parts, 40};
            mlp.backward(gradient.view().rows_from(first, samples / parts), dx.view());
            all.insert(all.end(), dx.elements.span().begin(), dx.elements.span().end());
            for (std::size_t i = 0; i < sum.size(); ++i)
                sum[i] += set.wide_gradients()[i];
        }
        std::sort(all.begin(), all.end());  // pieces put outputs and input gradients in other places
        outputs.push_back(all);
        std::copy(sum.begin(), sum.end(), set.wide_gradients().begin());
        set.round_gradients();
        gradients.emplace_back(set.gradients().begin(), set.gradients().end());
        EXPECT_EQ(outputs.back(), outputs.front()) << parts;
        EXPECT_EQ(gradients.back(), gradients.front()) << parts;
    }
}

TEST(mlp, names_its_parameters) {
    shardwise::MemoryAccount memory;
    shardwise::ParameterSet set{memory.tables()};
    const std::array<std::int64_t, 3> widths{4, 3, 2};
    const shardwise::Mlp<> mlp{set, "bottom", widths, memory.work()};
    std::vector<std::string> names;
    for (const auto& parameter : set)
        names.push_back(parameter.name);
    EXPECT_EQ(names,
              (std::vector<std::string>{"bottom.0.weight", "bottom.0.bias", "bottom.1.weight", "bottom.1.bias"}));
    EXPECT_EQ(set.find("bottom.1.weight")->rows, 2);
    EXPECT_EQ(set.find("bottom.1.weight")->columns, 3);
    EXPECT_EQ(mlp.inputs(), 4);
    EXPECT_EQ(mlp.outputs(), 2);
}

TEST(mlp, refuses_widths_without_a_layer) {
    shardwise::MemoryAccount memory;
    shardwise::ParameterSet set{memory.tables()};
    const auto make = [&](std::vector<std::int64_t> widths) {
        const shardwise::Mlp<> mlp{set, "mlp", widths, memory.work()};
    };
    EXPECT_THROW(make({}), shardwise::BadInput);
    EXPECT_THROW(make({4}), shardwise::BadInput);
    EXPECT_THROW(make({4, 0}), shardwise::BadInput);
}

TEST(mlp, allocates_only_for_a_larger_batch) {
    shardwise::MemoryAccount memory;
    shardwise::ParameterSet set{memory.tables()};
    const std::array<std::int64_t, 3> widths{4, 30, 2};
    shardwise::Mlp<Relu, Relu> mlp{set, "mlp", widths, memory.work()};
    set.allocate();
    Random random{1};
    const Matrix x{20, 4, random};
    const Matrix gradient{20, 2, random};
    std::int64_t warm = 0;
    for (const std::int64_t samples : {20, 20, 3, 0, 19}) {
        mlp.forward(x.view().rows_from(0, samples));
        mlp.backward(gradient.view().rows_from(0, samples));
        if (warm == 0) warm = memory.allocations();
    }
    EXPECT_EQ(memory.allocations(), warm);
}

}  // namespace
}  // namespace dense_test
