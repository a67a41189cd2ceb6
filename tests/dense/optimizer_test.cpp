// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/optimizer.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "dense/support.hpp"
#include "shardwise/core/error.hpp"

namespace dense_test {
namespace {
using shardwise::DenseAdagrad;
using shardwise::DenseAdam;
using shardwise::DenseSgd;

static_assert(shardwise::DenseOptimizer<DenseSgd>);
static_assert(shardwise::DenseOptimizer<DenseAdagrad>);
static_assert(shardwise::DenseOptimizer<DenseAdam>);

constexpr std::size_t parameter_count = 77;
constexpr int steps = 20;

/// Twenty steps with a rate that changes, beside a rule for one element in double precision; and no allocation.
template <class Optimizer, class... Options, class Rule>
void check(Rule rule, Options... options) {
    shardwise::MemoryAccount memory;
    Optimizer optimizer{parameter_count, memory.tables(), options...};
    Random random{6};
    std::vector<float> values(parameter_count);
    std::vector<float> gradients(parameter_count);
    random.fill(values);
    auto expected = as_double(values);
    std::vector<decltype(rule)> rules(parameter_count, rule);
    const auto allocations = memory.allocations();
    for (int t = 1; t <= steps; ++t) {
        random.fill(gradients);
        const double rate = 0.1 / t;
        optimizer.step(values, gradients, rate);
        for (std::size_t i = 0; i < parameter_count; ++i)
            rules[i](expected[i], gradients[i], rate, t);
        EXPECT_EQ(optimizer.steps(), t);
    }
    EXPECT_EQ(memory.allocations(), allocations);
    expect_all_close(values, expected, 2e-6);
}

TEST(optimizer, sgd) {
    check<DenseSgd>([](double& w, double g, double rate, int) { w -= rate * g; });
}

TEST(optimizer, adagrad) {
    const auto rule = [s = 0.5](double& w, double g, double rate, int) mutable {
        s += g * g;
        w -= rate * g / (std::sqrt(s) + 1e-3);
    };
    check<DenseAdagrad>(rule, shardwise::DenseAdagradOptions{.epsilon = 1e-3, .initial = 0.5});
}

TEST(optimizer, adam) {
    const auto rule = [m = 0.0, v = 0.0](double& w, double g, double rate, int t) mutable {
        m = 0.8 * m + 0.2 * g;
        v = 0.99 * v + 0.01 * g * g;
        const double denominator = std::sqrt(v) / std::sqrt(1 - std::pow(0.99, t)) + 1e-6;
        w -= rate / (1 - std::pow(0.8, t)) * m / denominator;
    };
    check<DenseAdam>(rule, shardwise::DenseAdamOptions{.beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-6});
}

template <class Optimizer, class Options>
std::string complaint(const Options& options) {
    shardwise::MemoryAccount memory;
    try {
        Optimizer{parameter_count, memory.tables(), options};
    } catch (const shardwise::BadInput& error) {
        return error.what();
    }
    return {};
}

TEST(optimizer, refuses_options_that_make_no_rule) {
    using Adagrad = shardwise::DenseAdagradOptions;
    using Adam = shardwise::DenseAdamOptions;
    const std::string number = ": give a finite number, 0 or more";
    const std::string beta = ": give a number from 0 to below 1";
    EXPECT_EQ(complaint<DenseAdagrad>(Adagrad{.epsilon = 0.0}), "");
    EXPECT_EQ(complaint<DenseAdagrad>(Adagrad{.epsilon = -1.0}), "optimizer 'dense_adagrad': epsilon is -1" + number);
    EXPECT_EQ(complaint<DenseAdagrad>(Adagrad{.initial = -0.5}), "optimizer 'dense_adagrad': initial is -0.5" + number);
    EXPECT_EQ(complaint<DenseAdagrad>(Adagrad{.initial = 1e39}),
              "optimizer 'dense_adagrad': initial is 1e+39" + number);  // too large for the floats that it fills
    EXPECT_EQ(complaint<DenseAdam>(Adam{.beta1 = 0.0, .beta2 = 0.0, .epsilon = 0.0}), "");
    EXPECT_EQ(complaint<DenseAdam>(Adam{.beta1 = 1.0}), "optimizer 'dense_adam': beta1 is 1" + beta);
    EXPECT_EQ(complaint<DenseAdam>(Adam{.beta2 = 2.0}), "optimizer 'dense_adam': beta2 is 2" + beta);
    EXPECT_EQ(complaint<DenseAdam>(Adam{.epsilon = std::nan("")}), "optimizer 'dense_adam': epsilon is nan" + number);
}

template <class Optimizer>
void check_zero() {
    shardwise::MemoryAccount memory;
    Optimizer optimizer{3, memory.tables()};
    std::vector<float> values(3, 0.0F);
    const std::vector<float> gradients(3, 0.0F);
    for (int t = 0; t < 3; ++t)
        optimizer.step(values, gradients, 0.1);
    for (const float value : values)
        EXPECT_EQ(value, 0.0F);
}

TEST(optimizer, leaves_the_padding_of_a_parameter_set_zero) {
    check_zero<DenseSgd>();
    check_zero<DenseAdagrad>();
    check_zero<DenseAdam>();
}

/// State and steps are all there is to restore.
template <class Optimizer>
void check_restored() {
    shardwise::MemoryAccount memory;
    Optimizer optimizer{parameter_count, memory.tables()};
    Random random{8};
    std::vector<float> values(parameter_count);
    std::vector<float> gradients(parameter_count);
    random.fill(values);
    for (int t = 0; t < 3; ++t) {
        random.fill(gradients);
        optimizer.step(values, gradients, 0.1);
    }
    Optimizer other{parameter_count, memory.tables()};
    std::copy(optimizer.state().begin(), optimizer.state().end(), other.state().begin());
    other.set_steps(optimizer.steps());
    std::vector<float> other_values = values;
    random.fill(gradients);
    optimizer.step(values, gradients, 0.1);
    other.step(other_values, gradients, 0.1);
    EXPECT_EQ(values, other_values);
}

TEST(optimizer, is_restored_from_state_and_steps) {
    check_restored<DenseSgd>();
    check_restored<DenseAdagrad>();
    check_restored<DenseAdam>();
}

}  // namespace
}  // namespace dense_test
