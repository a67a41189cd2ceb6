// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "laws/reference_rule.hpp"
#include "shardwise/optimizer/adagrad.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/moment_scale.hpp"
#include "shardwise/optimizer/optimizer.hpp"
#include "shardwise/optimizer/rms_prop.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/optimizer/sgd.hpp"

/// \file
/// The library's rules against the formulas that the laws' reference has, to the last bit, over many more steps of a
/// row than a law takes.

namespace laws {
namespace {

namespace sw = shardwise;

struct State {
    Vector weights;
    std::vector<Vector> element_state;
    Vector row_state;

    [[nodiscard]] ReferenceRow row() {
        ReferenceRow all{.weights = &weights, .element_state = {}, .row_state = &row_state};
        for (Vector& slot : element_state)
            all.element_state.push_back(&slot);
        return all;
    }
};

template <class Rule, std::size_t... Slot>
void update(State& state, const Vector& gradient, const ReferenceStep& step, std::index_sequence<Slot...>) {
    Rule rule;
    if constexpr (sw::ScaledMoment<Rule>) rule.moment_scale = step.c;
    const typename Rule::Row shared =
        rule.row({.learning_rate = step.rate, .step = step.number}, state.row_state.data(),
                 Rule::needs_row_norm ? step.sum_of_squares : 0.0, static_cast<int>(gradient.size()));
    for (std::size_t d = 0; d < gradient.size(); ++d)
        rule.element(shared, state.weights[d], gradient[d], state.element_state[Slot][d]...);
}

template <class Rule>
void check(float c) {
    const ReferenceRule formula = reference_rule(Rule::name);
    ASSERT_EQ(formula.element_slots, Rule::element_slots);
    ASSERT_EQ(formula.row_slots, Rule::row_slots);
    ASSERT_EQ(formula.needs_row_norm, Rule::needs_row_norm);
    ASSERT_EQ(formula.scales, sw::ScaledMoment<Rule>);
    std::mt19937 dice{7};
    std::normal_distribution<float> normal;
    State actual;
    for (int d = 0; d < 19; ++d)
        actual.weights.push_back(normal(dice));
    actual.element_state.assign(static_cast<std::size_t>(Rule::element_slots), Vector(19, 0.0F));
    actual.row_state.assign(static_cast<std::size_t>(Rule::row_slots), 0.0F);
    State expected = actual;
    for (std::int64_t number = 1; number <= 40; ++number) {
        ReferenceStep step{.rate = 0.05F / static_cast<float>(number), .number = number, .c = c};
        Vector g;
        for (int d = 0; d < 19; ++d) {
            g.push_back(number == 9 ? 0.0F : normal(dice) * (d % 3 == 0 ? 37.0F : 0.01F));
            step.sum_of_squares += static_cast<double>(g.back()) * g.back();
        }
        update<Rule>(actual, g, step, std::make_index_sequence<Rule::element_slots>{});
        formula.update(expected.row(), g, step);
        ASSERT_EQ(actual.weights, expected.weights) << "step " << number;
        ASSERT_EQ(actual.element_state, expected.element_state) << "step " << number;
        ASSERT_EQ(actual.row_state, expected.row_state) << "step " << number;
    }
}

template <class Rule>
class Rules : public ::testing::Test {};
using AllRules =
    ::testing::Types<sw::Sgd, sw::Adagrad, sw::Adam, sw::RmsProp, sw::RowwiseAdagrad<>,
                     sw::RowwiseAdagrad<sw::MeanOfSquares>, sw::RowwiseAdagrad<sw::MomentScale<3>, sw::MeanOfSquares>>;
TYPED_TEST_SUITE(Rules, AllRules);

/// Moments divided by nothing, by the number of groups, and by what is no power of two.
TYPED_TEST(Rules, AreTheirFormulasToTheLastBit) {
    for (const float c : {1.0F, 2.0F, 3.0F, 0.7F})
        check<TypeParam>(c);
}

}  // namespace
}  // namespace laws
