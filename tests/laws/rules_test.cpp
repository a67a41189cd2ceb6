// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "laws/reference_rule.hpp"
#include "shardwise/optimizer/adagrad.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/moment_scale.hpp"
#include "shardwise/optimizer/rms_prop.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/optimizer/sgd.hpp"

/// \file
/// The library's rules with their own constants, to the last bit: the laws take a rule's word for what it does with a
/// row, and tests of rules look at formulas within rounding.

namespace laws {
namespace {

struct State {
    Vector weights;
    std::vector<Vector> element_state;
    Vector row_state;
};
using Formula = std::function<void(State&, const Vector& g, float rate, std::int64_t step, double norm)>;

void check(const ReferenceRule& rule, const Formula& formula, float c = 1.0F) {
    ASSERT_TRUE(rule.scales || c == 1.0F);
    std::mt19937 dice{7};
    std::normal_distribution<float> normal;
    State actual;
    for (int d = 0; d < 19; ++d)
        actual.weights.push_back(normal(dice));
    actual.element_state.assign(static_cast<std::size_t>(rule.element_slots), Vector(19, 0.0F));
    actual.row_state.assign(static_cast<std::size_t>(rule.row_slots), 0.0F);
    State expected = actual;
    for (std::int64_t step = 1; step <= 40; ++step) {
        Vector g;
        double norm = 0;
        for (int d = 0; d < 19; ++d) {
            g.push_back(step == 9 ? 0.0F : normal(dice) * (d % 3 == 0 ? 37.0F : 0.01F));
            norm += static_cast<double>(g.back()) * g.back();
        }
        const float rate = 0.05F / static_cast<float>(step);
        ReferenceRow row{.weights = &actual.weights, .element_state = {}, .row_state = &actual.row_state};
        for (Vector& slot : actual.element_state)
            row.element_state.push_back(&slot);
        rule.update({.learning_rate = rate, .step = step}, row, g, rule.needs_row_norm ? norm : 0.0, c);
        formula(expected, g, rate, step, norm);
        ASSERT_EQ(actual.weights, expected.weights) << "step " << step;
        ASSERT_EQ(actual.element_state, expected.element_state) << "step " << step;
        ASSERT_EQ(actual.row_state, expected.row_state) << "step " << step;
    }
}

TEST(Rules, SgdToTheLastBit) {
    check(reference_rule<sw::Sgd>(), [](State& s, const Vector& g, float rate, std::int64_t, double) {
        for (std::size_t d = 0; d < g.size(); ++d)
            s.weights[d] = std::fma(-rate, g[d], s.weights[d]);
    });
}

/// What moments are divided by: by nothing, by the number of groups, and by what is no power of two.
constexpr float scales[] = {1.0F, 2.0F, 3.0F, 0.7F};

TEST(Rules, AdagradToTheLastBit) {
    for (const float c : scales)
        check(
            reference_rule<sw::Adagrad>(),
            [c](State& s, const Vector& g, float rate, std::int64_t, double) {
                for (std::size_t d = 0; d < g.size(); ++d) {
                    float& sum = s.element_state[0][d];
                    sum = std::fma(g[d], g[d], sum);
                    s.weights[d] = std::fma(-rate, g[d] / (std::sqrt(sum / c) + 1e-10F), s.weights[d]);
                }
            },
            c);
}

TEST(Rules, AdamToTheLastBit) {
    for (const float c : scales)
        check(
            reference_rule<sw::Adam>(),
            [c](State& s, const Vector& g, float rate, std::int64_t step, double) {
                const auto power = [&](double beta) {  // by squaring
                    double all = 1;
                    for (std::int64_t rest = step; rest > 0; rest /= 2, beta *= beta)
                        if (rest % 2 == 1) all *= beta;
                    return all;
                };
                const auto size =
                    static_cast<float>(static_cast<double>(rate) * std::sqrt(1 - power(0.999)) / (1 - power(0.9)));
                for (std::size_t d = 0; d < g.size(); ++d) {
                    float& m = s.element_state[0][d];
                    float& v = s.element_state[1][d];
                    m = std::fma(static_cast<float>(1 - 0.9), g[d] - m, m);
                    v = std::fma(static_cast<float>(1 - 0.999), std::fma(g[d], g[d], -v), v);
                    s.weights[d] = std::fma(-size, m / (std::sqrt(v / c) + 1e-8F), s.weights[d]);
                }
            },
            c);
}

TEST(Rules, RmsPropToTheLastBit) {
    for (const float c : scales)
        check(
            reference_rule<sw::RmsProp>(),
            [c](State& s, const Vector& g, float rate, std::int64_t, double) {
                for (std::size_t d = 0; d < g.size(); ++d) {
                    float& v = s.element_state[0][d];
                    v = std::fma(static_cast<float>(1 - 0.99), std::fma(g[d], g[d], -v), v);
                    s.weights[d] = std::fma(-rate, g[d] / (std::sqrt(v / c) + 1e-8F), s.weights[d]);
                }
            },
            c);
}

/// Algorithm 1 of two-dimensional sparse parallelism: the moment first, then the weights by what it is then.
Formula rowwise(double share, float c) {
    return [share, c](State& s, const Vector& g, float rate, std::int64_t, double norm) {
        s.row_state[0] = static_cast<float>(static_cast<double>(s.row_state[0]) + norm / share);
        const float scale = rate / (std::sqrt(s.row_state[0] / c) + 1e-8F);
        for (std::size_t d = 0; d < g.size(); ++d)
            s.weights[d] = std::fma(-scale, g[d], s.weights[d]);
    };
}
TEST(Rules, RowwiseAdagradToTheLastBit) {
    for (const float c : scales) {
        check(reference_rule<sw::RowwiseAdagrad<>>(), rowwise(1, c), c);
        check(reference_rule<sw::RowwiseAdagrad<sw::MeanOfSquares>>(), rowwise(19, c), c);
        check(reference_rule<sw::RowwiseAdagrad<sw::MomentScale<3>, sw::MeanOfSquares>>(), rowwise(19, c), c);
    }
}

}  // namespace
}  // namespace laws
