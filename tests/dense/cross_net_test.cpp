// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/cross_net.hpp"

#include <cstdint>
#include <span>
#include <vector>

#include "dense/naive.hpp"
#include "dense/support.hpp"

namespace dense_test {
namespace {
using shardwise::CrossNet;
using shardwise::CrossNetConfig;
using shardwise::DensePrecision;

void check_cross_net(const CrossNetConfig& config, std::int64_t samples, DensePrecision precision) {
    SCOPED_TRACE(testing::Message() << samples << " samples, " << config.layers << " layers, width " << config.width
                                    << ", rank " << config.rank);
    shardwise::MemoryAccount memory;
    shardwise::ParameterSet set{memory.tables()};
    const CrossNet net{set, "cross", config, precision};
    CrossNet::Work work{memory.work()};
    set.allocate(precision);
    net.initialize(5);
    Random random{11};
    for (const auto& parameter : set)
        if (parameter.rows == 1) random.fill(parameter.values());  // biases are zero at first
    random.fill(set.gradients());
    for (double& wide : set.wide_gradients())
        wide = 7.0;
    const Matrix x{samples, config.width, random};
    const Matrix gradient{samples, config.width, random};
    Matrix x_gradient{samples, config.width, random};

    auto parameters = naive_parameters(set);
    auto inputs = as_double(x.elements.span());
    const auto naive = [&] { return naive_cross_net(as_rows(inputs, samples, config.width), parameters, config); };
    const auto y = net.forward(x.view(), work);
    const Rows expected = naive();
    ASSERT_EQ(y.rows(), samples);
    for (std::int64_t i = 0; i < samples; ++i)
        expect_all_close(std::span{y.row(i), static_cast<std::size_t>(y.columns())},
                         expected[static_cast<std::size_t>(i)], 1e-5);

    net.backward(work, gradient.view(), x_gradient.view());
    if (precision != DensePrecision::single) set.round_gradients();
    const auto loss = [&] {
        double sum = 0.0;
        const Rows output = naive();
        for (std::int64_t i = 0; i < samples; ++i)
            for (std::int64_t j = 0; j < config.width; ++j)
                sum += output[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] *
                       static_cast<double>(gradient.view()(i, j));
        return sum;
    };
    expect_slopes(set, parameters, loss);
    for (std::size_t i = 0; i < inputs.size(); i += 1 + inputs.size() / 40)
        expect_close(x_gradient.elements[i], slope(inputs, i, loss), 1e-4);
}

TEST(cross_net, equals_the_definition_and_its_slopes) {
    for (const DensePrecision precision : {DensePrecision::single, DensePrecision::blocks, DensePrecision::wide})
        for (const std::int64_t samples : {0, 1, 9})
            for (const CrossNetConfig& config :
                 {CrossNetConfig{.width = 5, .layers = 1}, CrossNetConfig{.width = 12, .layers = 3},
                  CrossNetConfig{.width = 12, .layers = 3, .rank = 2},
                  CrossNetConfig{.width = 7, .layers = 1, .rank = 7},
                  CrossNetConfig{.width = 1, .layers = 2, .rank = 3}})
                check_cross_net(config, samples, precision);
}

TEST(cross_net, starts_without_biases_and_counts_its_flops) {
    shardwise::MemoryAccount memory;
    shardwise::ParameterSet set{memory.tables()};
    const CrossNet net{set, "cross", {.width = 3456, .layers = 3, .rank = 512}};
    EXPECT_EQ(net.flops(), 6 * 3 * (2 * 3456 * 512 + 3456));
    EXPECT_EQ(set.size(), 9U);
    EXPECT_NE(set.find("cross.2.v.weight"), nullptr);
    EXPECT_EQ(set.find("cross.2.v.bias"), nullptr);
    const CrossNet full{set, "full", {.width = 10, .layers = 2}};
    EXPECT_EQ(full.flops(), 6 * 2 * (100 + 10));
    set.allocate();
    net.initialize(3);
    for (const float bias : set.find("cross.1.u.bias")->values())
        ASSERT_EQ(bias, 0.0F);
    EXPECT_NE(set.find("cross.1.v.weight")->values()[0], 0.0F);
}

TEST(cross_net, refuses_shapes_that_are_none) {
    shardwise::MemoryAccount memory;
    shardwise::ParameterSet set{memory.tables()};
    for (const CrossNetConfig& config :
         {CrossNetConfig{.width = 0, .layers = 1}, CrossNetConfig{.width = 1, .layers = 0},
          CrossNetConfig{.width = 1, .layers = 1, .rank = -1}})
        EXPECT_THROW((CrossNet{set, "cross", config}), shardwise::BadInput);
}

}  // namespace
}  // namespace dense_test
