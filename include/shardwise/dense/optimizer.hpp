// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/optimizer/bias_correction.hpp"
#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// Optimizers of dense parameters: one pass over flat spans, with PyTorch's formulas.
///
/// In the formulas w is a value, g its gradient, e epsilon and t the number of steps, this one included. Nothing is
/// collective: every rank holds the same values and gradients and computes the same bits. Nothing allocates after
/// construction.

namespace shardwise::inline SHARDWISE_ABI {

/// What a trainer asks of an optimizer of dense parameters: `step(values, gradients, learning_rate)`, where the
/// learning rate is that of this step; `state()`, its moments as one span, all elements' first ones before the second,
/// and `moments()`, how many an element has; `steps()`, which like the state goes into checkpoints, restored by
/// `set_steps(t)`. Those here are made of a number of elements and a memory resource (a MemoryAccount's `tables()`),
/// where the state lies.
template <class T>
concept DenseOptimizer = requires(T& optimizer, std::span<float> values, std::span<const float> gradients,
                                  std::int64_t steps) {
    optimizer.step(values, gradients, 0.1);
    { optimizer.state() } -> std::same_as<std::span<float>>;
    { optimizer.moments() } -> std::same_as<std::size_t>;
    { optimizer.steps() } -> std::same_as<std::int64_t>;
    optimizer.set_steps(steps);
};

/// w -= lr g. No state. Moves 12 bytes an element.
class DenseSgd {
  public:
    DenseSgd(std::size_t, std::pmr::memory_resource&) {}

    /// \param values, gradients  of equal size
    void step(std::span<float> values, std::span<const float> gradients, double learning_rate) {
        SHARDWISE_ASSERT(values.size() == gradients.size());
        const auto rate = static_cast<float>(-learning_rate);
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = std::fma(rate, gradients[i], values[i]);
        ++steps_;
    }
    [[nodiscard]] std::span<float> state() noexcept { return {}; }
    [[nodiscard]] static constexpr std::size_t moments() noexcept { return 0; }
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    void set_steps(std::int64_t steps) noexcept { steps_ = steps; }

  private:
    std::int64_t steps_ = 0;
};

/// Settings of DenseAdagrad; the defaults are PyTorch's.
struct DenseAdagradOptions {
    double epsilon = 1e-10;
    double initial = 0.0;  ///< of the sum of squares

    /// Checks the constants.
    /// \throws BadInput for numbers that are negative or not finite
    void check() const {
        detail::require_not_negative("dense_adagrad", "epsilon", epsilon);
        detail::require_not_negative("dense_adagrad", "initial", initial);
    }
};

/// s += g^2; w -= lr g / (sqrt(s) + e). State: s. Moves 20 bytes an element.
class DenseAdagrad {
  public:
    /// \throws BadInput for options that make no rule
    DenseAdagrad(std::size_t elements, std::pmr::memory_resource& resource, DenseAdagradOptions options = {})
        : options_{options}, sums_{resource, elements} {
        options_.check();
        for (float& sum : sums_.span())
            sum = static_cast<float>(options_.initial);
    }

    /// \param values, gradients  as many as `elements`
    void step(std::span<float> values, std::span<const float> gradients, double learning_rate) {
        SHARDWISE_ASSERT(values.size() == gradients.size() && values.size() == sums_.size());
        const auto rate = static_cast<float>(-learning_rate);
        const auto epsilon = static_cast<float>(options_.epsilon);
        float* sums = sums_.data();
        for (std::size_t i = 0; i < values.size(); ++i) {
            const float g = gradients[i];
            const float sum = std::fma(g, g, sums[i]);
            sums[i] = sum;
            values[i] = std::fma(rate, g / (std::sqrt(sum) + epsilon), values[i]);
        }
        ++steps_;
    }
    /// s, (elements).
    [[nodiscard]] std::span<float> state() noexcept { return sums_.span(); }
    [[nodiscard]] static constexpr std::size_t moments() noexcept { return 1; }
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    void set_steps(std::int64_t steps) noexcept { steps_ = steps; }

  private:
    DenseAdagradOptions options_;
    Buffer<float> sums_;
    std::int64_t steps_ = 0;
};

/// Settings of DenseAdam; the defaults are PyTorch's.
struct DenseAdamOptions {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;

    /// Checks the constants.
    /// \throws BadInput for a beta outside of [0, 1), and an epsilon that is negative or no finite number
    void check() const {
        detail::require_beta("dense_adam", "beta1", beta1);
        detail::require_beta("dense_adam", "beta2", beta2);
        detail::require_not_negative("dense_adam", "epsilon", epsilon);
    }
};

/// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; w -= lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + e).
/// State: m, then v. Moves 28 bytes an element.
class DenseAdam {
  public:
    /// \throws BadInput for options that make no rule
    DenseAdam(std::size_t elements, std::pmr::memory_resource& resource, DenseAdamOptions options = {})
        : options_{options}, moments_{resource} {
        options_.check();
        moments_.assign_zero(2 * elements);
    }

    /// \param values, gradients  as many as `elements`
    void step(std::span<float> values, std::span<const float> gradients, double learning_rate) {
        SHARDWISE_ASSERT(values.size() == gradients.size() && 2 * values.size() == moments_.size());
        ++steps_;
        const double correction1 = bias_correction(options_.beta1, steps_);
        const double correction2 = bias_correction(options_.beta2, steps_);
        const auto rate = static_cast<float>(-learning_rate / correction1);
        const auto root = static_cast<float>(std::sqrt(correction2));
        const auto epsilon = static_cast<float>(options_.epsilon);
        const auto keep1 = static_cast<float>(options_.beta1);
        const auto take1 = static_cast<float>(1.0 - options_.beta1);
        const auto keep2 = static_cast<float>(options_.beta2);
        const auto take2 = static_cast<float>(1.0 - options_.beta2);
        float* first = moments_.data();
        float* second = first + values.size();
        for (std::size_t i = 0; i < values.size(); ++i) {
            const float g = gradients[i];
            const float m = std::fma(take1, g, keep1 * first[i]);
            const float v = std::fma(take2 * g, g, keep2 * second[i]);
            first[i] = m;
            second[i] = v;
            values[i] = std::fma(rate, m / (std::sqrt(v) / root + epsilon), values[i]);
        }
    }
    /// m, (elements), then v, (elements).
    [[nodiscard]] std::span<float> state() noexcept { return moments_.span(); }
    [[nodiscard]] static constexpr std::size_t moments() noexcept { return 2; }
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    void set_steps(std::int64_t steps) noexcept { steps_ = steps; }

  private:
    DenseAdamOptions options_;
    Buffer<float> moments_;
    std::int64_t steps_ = 0;
};

}  // namespace shardwise::inline SHARDWISE_ABI
