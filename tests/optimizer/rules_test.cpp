// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <ratio>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/core/digest.hpp"
#include "shardwise/optimizer/adagrad.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/moment_scale.hpp"
#include "shardwise/optimizer/rms_prop.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/optimizer/sum_of_squares.hpp"

namespace shardwise_test {
namespace {

using shardwise::UpdateStep;

constexpr std::size_t dim = 11;
using Vector = std::array<double, dim>;

/// One row under a rule, with its state, updated as the library's fused pass does it.
template <class Rule>
class Row {
  public:
    void update(const Rule& rule, const UpdateStep& step, const std::array<float, dim>& gradient) {
        const double norm = Rule::needs_row_norm ? shardwise::sum_of_squares(gradient.data(), dim) : 0.0;
        const auto shared = rule.row(step, row_state_.data(), norm, dim);
        elements(rule, shared, gradient, std::make_index_sequence<Rule::element_slots>{});
    }
    std::array<float, dim> weights{};
    [[nodiscard]] bool has_moments_of(const Row& other) const {
        return row_state_ == other.row_state_ && state_ == other.state_;
    }

  private:
    template <std::size_t... Slot>
    void elements(const Rule& rule, const typename Rule::Row& shared, const std::array<float, dim>& gradient,
                  std::index_sequence<Slot...>) {
        for (std::size_t d = 0; d < dim; ++d)
            rule.element(shared, weights[d], gradient[d], state_[Slot][d]...);
    }
    std::array<float, Rule::row_slots + 1> row_state_{};
    std::array<std::array<float, dim>, Rule::element_slots + 1> state_{};
};

/// Holds a rule against a formula in double precision over several steps: `formula(step, learning rate, gradient,
/// weights)`.
template <class Rule, class Formula>
void check_rule(const Rule& rule, Formula formula) {
    std::mt19937 random{3};
    std::normal_distribution<float> normal;
    Row<Rule> row;
    Vector expected{};
    for (std::size_t d = 0; d < dim; ++d)
        expected[d] = row.weights[d] = normal(random);
    const auto start = row.weights;
    for (std::int64_t step = 1; step <= 20; ++step) {
        std::array<float, dim> gradient{};
        for (float& g : gradient)
            g = step == 7 ? 0.0F : normal(random);
        Vector exact{};
        for (std::size_t d = 0; d < dim; ++d)
            exact[d] = gradient[d];
        const float learning_rate = 0.1F / static_cast<float>(step);
        row.update(rule, {.learning_rate = learning_rate, .step = step}, gradient);
        formula(step, static_cast<double>(learning_rate), exact, expected);
        for (std::size_t d = 0; d < dim; ++d)
            ASSERT_NEAR(row.weights[d], expected[d], 2e-6) << "step " << step << ", column " << d;
    }
    for (std::size_t d = 0; d < dim; ++d)
        EXPECT_GT(std::abs(row.weights[d] - start[d]), 1e-3);  // it did move
}

TEST(SgdTest, IsItsFormula) {
    check_rule(shardwise::Sgd{}, [](std::int64_t, double rate, const Vector& gradient, Vector& weights) {
        for (std::size_t d = 0; d < dim; ++d)
            weights[d] -= rate * gradient[d];
    });
}

TEST(AdagradTest, IsItsFormula) {
    Vector sum{};
    check_rule(shardwise::Adagrad{.epsilon = 1e-3F},
               [&](std::int64_t, double rate, const Vector& gradient, Vector& weights) {
                   for (std::size_t d = 0; d < dim; ++d) {
                       sum[d] += gradient[d] * gradient[d];
                       weights[d] -= rate * gradient[d] / (std::sqrt(sum[d]) + 1e-3F);
                   }
               });
}

template <class Moment>
void check_rowwise(double share) {
    double sum = 0.0;
    check_rule(shardwise::RowwiseAdagrad<Moment>{.epsilon = 1e-3F},
               [&](std::int64_t, double rate, const Vector& gradient, Vector& weights) {
                   for (const double g : gradient)
                       sum += share * g * g;
                   for (std::size_t d = 0; d < dim; ++d)
                       weights[d] -= rate / (std::sqrt(sum) + 1e-3F) * gradient[d];
               });
}

TEST(RowwiseAdagradTest, IsItsFormula) {
    check_rowwise<shardwise::SumOfSquares>(1.0);
}
TEST(RowwiseAdagradTest, OfTheMeanIsItsFormula) {
    check_rowwise<shardwise::MeanOfSquares>(1.0 / dim);
}

TEST(AdamTest, IsItsFormula) {
    Vector mean{};
    Vector square{};
    const double beta1 = 0.8;
    const double beta2 = 0.95;
    check_rule(shardwise::Adam{.beta1 = beta1, .beta2 = beta2, .epsilon = 1e-3F},
               [&](std::int64_t step, double rate, const Vector& gradient, Vector& weights) {
                   const double size = rate * std::sqrt(1.0 - std::pow(beta2, static_cast<double>(step))) /
                                       (1.0 - std::pow(beta1, static_cast<double>(step)));
                   for (std::size_t d = 0; d < dim; ++d) {
                       mean[d] = beta1 * mean[d] + (1.0 - beta1) * gradient[d];
                       square[d] = beta2 * square[d] + (1.0 - beta2) * gradient[d] * gradient[d];
                       weights[d] -= size * mean[d] / (std::sqrt(square[d]) + 1e-3F);
                   }
               });
}

TEST(AdamTest, CountsTheLayersSteps) {
    // A row that is first touched at step 1000 has almost no bias correction left.
    shardwise::Adam rule;
    const auto late = rule.row({.learning_rate = 1.0F, .step = 1000}, nullptr, 0.0, 1);
    EXPECT_NEAR(late.step_size, std::sqrt(1.0 - std::pow(0.999, 1000)), 1e-4);
    const auto first = rule.row({.learning_rate = 1.0F, .step = 1}, nullptr, 0.0, 1);
    EXPECT_NEAR(first.step_size, std::sqrt(0.001) / 0.1, 1e-4);
}

// The moments of one step from zero are the shares times g and g^2: to the last bit those of the betas in double.
TEST(AdamTest, SharesOfAStepAreRoundedOnce) {
    const shardwise::Adam rule;
    const auto shared = rule.row({.learning_rate = 1.0F, .step = 1}, nullptr, 0.0, 1);
    float weight = 0.0F;
    float mean = 0.0F;
    float square = 0.0F;
    rule.element(shared, weight, 1.0F, mean, square);
    EXPECT_EQ(mean, 0.1F);
    EXPECT_EQ(square, 0.001F);
}

TEST(AdamTest, ConstantsAreInTheDigestToTheLastBit) {
    const auto digest_of = [](const shardwise::Adam& rule) {
        shardwise::Digest digest;
        rule.add_to(digest);
        return digest.bits16();
    };
    EXPECT_EQ(digest_of({}), digest_of({}));
    EXPECT_NE(digest_of({}), digest_of({.beta1 = std::nextafter(0.9, 1.0)}));
    EXPECT_NE(digest_of({}), digest_of({.beta2 = std::nextafter(0.999, 1.0)}));
    EXPECT_NE(digest_of({}), digest_of({.epsilon = std::nextafter(1e-8F, 1.0F)}));
}

TEST(RmsPropTest, IsItsFormula) {
    Vector square{};
    check_rule(shardwise::RmsProp{.alpha = 0.95, .epsilon = 1e-3F},
               [&](std::int64_t, double rate, const Vector& gradient, Vector& weights) {
                   for (std::size_t d = 0; d < dim; ++d) {
                       square[d] = 0.95 * square[d] + 0.05 * gradient[d] * gradient[d];
                       weights[d] -= rate * gradient[d] / (std::sqrt(square[d]) + 1e-3F);
                   }
               });
}

// Outside of a layer nobody knows of groups.
TEST(MomentScale, IsAsTheTypeSaysOrElseOpen) {
    using shardwise::MomentScale;
    using shardwise::RowwiseAdagrad;
    static_assert(!MomentScale<>::is_given && MomentScale<4>::value == 4.0F);
    static_assert(MomentScale<std::ratio<1, 2>{}>::value == 0.5F && MomentScale<std::ratio<-7, -2>{}>::value == 3.5F);
    EXPECT_EQ(RowwiseAdagrad<>{}.moment_scale, shardwise::as_many_as_groups);
    EXPECT_EQ((RowwiseAdagrad<shardwise::MeanOfSquares, MomentScale<4>>{}.moment_scale), 4.0F);
    EXPECT_EQ((RowwiseAdagrad<MomentScale<4>, shardwise::SumOfSquares>{}.moment_scale), 4.0F);
    EXPECT_STREQ((RowwiseAdagrad<MomentScale<4>, shardwise::MeanOfSquares>::name), "rowwise_adagrad_mean");
    float open = 0;
    float one = 0;
    const auto a = RowwiseAdagrad<>{}.row({.learning_rate = 1.0F, .step = 1}, &open, 2.0, 1);
    const auto b = RowwiseAdagrad<MomentScale<1>>{}.row({.learning_rate = 1.0F, .step = 1}, &one, 2.0, 1);
    EXPECT_EQ(a.scale, b.scale);
}

/// The root of c times as fast, and the moment itself is what it was.
template <class Rule>
void check_scale() {
    Row<Rule> plain;
    Row<Rule> scaled;
    std::array<float, dim> gradient{};
    gradient.fill(0.25F);
    plain.update(Rule{.epsilon = 0.0F, .moment_scale = 1.0F}, {.learning_rate = 0.1F, .step = 1}, gradient);
    scaled.update(Rule{.epsilon = 0.0F, .moment_scale = 4.0F}, {.learning_rate = 0.1F, .step = 1}, gradient);
    EXPECT_NE(plain.weights[0], 0.0F);
    for (std::size_t d = 0; d < dim; ++d)
        EXPECT_FLOAT_EQ(scaled.weights[d], 2.0F * plain.weights[d]);
    EXPECT_TRUE(scaled.has_moments_of(plain));
}
TEST(MomentScale, ScalesTheStepAndNotTheMoment) {
    check_scale<shardwise::Adagrad>();
    check_scale<shardwise::RowwiseAdagrad<>>();
    check_scale<shardwise::RowwiseAdagrad<shardwise::MeanOfSquares>>();
    check_scale<shardwise::RmsProp>();
    check_scale<shardwise::Adam>();
}

TEST(MomentScale, IsInTheDigest) {
    const auto digest_of = [](float scale) {
        shardwise::Digest digest;
        shardwise::RmsProp{.moment_scale = scale}.add_to(digest);
        return digest.bits16();
    };
    EXPECT_EQ(digest_of(2.0F), digest_of(2.0F));
    EXPECT_NE(digest_of(2.0F), digest_of(1.0F));
}

/// A zero gradient is an update like any other: moments decay, nothing becomes NaN.
template <class Rule>
void check_zero_gradient() {
    Row<Rule> row;
    row.weights.fill(1.0F);
    row.update(Rule{}, {.learning_rate = 0.1F, .step = 1}, {});
    for (const float weight : row.weights)
        EXPECT_EQ(weight, 1.0F);
}

TEST(Rules, AZeroGradientOnAFreshRowMovesNothing) {
    check_zero_gradient<shardwise::Sgd>();
    check_zero_gradient<shardwise::Adagrad>();
    check_zero_gradient<shardwise::RowwiseAdagrad<>>();
    check_zero_gradient<shardwise::RowwiseAdagrad<shardwise::MeanOfSquares>>();
    check_zero_gradient<shardwise::Adam>();
    check_zero_gradient<shardwise::RmsProp>();
}

TEST(Rules, HaveDefaultsAsPyTorchsOrThePapers) {
    EXPECT_EQ(shardwise::Adagrad{}.epsilon, 1e-10F);
    EXPECT_EQ(shardwise::RowwiseAdagrad<>{}.epsilon, 1e-8F);
    EXPECT_EQ(shardwise::Adam{}.beta1, 0.9);
    EXPECT_EQ(shardwise::Adam{}.beta2, 0.999);
    EXPECT_EQ(shardwise::Adam{}.epsilon, 1e-8F);
    EXPECT_EQ(shardwise::RmsProp{}.alpha, 0.99);
    EXPECT_EQ(shardwise::RmsProp{}.epsilon, 1e-8F);
}

/// What a rule needs: an archetype, and the same with one member changed.
struct Archetype {
    static constexpr const char* name = "archetype";
    static constexpr int row_slots = 0;
    static constexpr int element_slots = 2;
    static constexpr bool needs_row_norm = false;
    struct Row {};
    Row row(const UpdateStep&, float*, double, int) const { return {}; }
    void element(const Row&, float&, float, float&, float&) const {}
};
struct OneSlotTooMany : Archetype {
    static constexpr int element_slots = 3;
};
struct NoSlots : Archetype {
    static constexpr int element_slots = 0;
};
struct MutableRow : Archetype {
    Row row(const UpdateStep&, float*, double, int) { return {}; }
};
struct OtherRow : Archetype {
    int row(const UpdateStep&, float*, double, int) const { return 0; }
};
static_assert(shardwise::SparseOptimizer<Archetype>);
static_assert(!shardwise::SparseOptimizer<OneSlotTooMany>);
static_assert(!shardwise::SparseOptimizer<NoSlots>);
static_assert(!shardwise::SparseOptimizer<MutableRow>);
static_assert(!shardwise::SparseOptimizer<OtherRow>);
static_assert(!shardwise::SparseOptimizer<int>);

}  // namespace
}  // namespace shardwise_test
