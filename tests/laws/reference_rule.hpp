// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// How the reference updates a row: formulas of its own, written from the papers, that know nothing of the library's
/// rules. `c` is what a moment is divided by before its root is taken.

namespace laws {

using Vector = std::vector<float>;

/// A row of a table, with its moments.
struct ReferenceRow {
    Vector* weights;
    std::vector<Vector*> element_state;  ///< (slot)
    Vector* row_state;                   ///< (slot)
};
/// What a row learns by.
struct ReferenceStep {
    float rate = 0;
    std::int64_t number = 1;
    double sum_of_squares = 0;  ///< of the gradient, where the rule asks for it
    float c = 1;
};

/// What the reference knows of an optimizer.
struct ReferenceRule {
    bool learns = true;
    int element_slots = 0;
    int row_slots = 0;
    bool needs_row_norm = false;
    bool scales = false;  ///< its moment by c
    void (*update)(const ReferenceRow& row, const Vector& gradient, const ReferenceStep& step) = nullptr;
};

namespace detail {

inline void sgd(const ReferenceRow& row, const Vector& g, const ReferenceStep& step) {
    for (std::size_t d = 0; d < g.size(); ++d)
        (*row.weights)[d] = std::fma(-step.rate, g[d], (*row.weights)[d]);
}
inline void adagrad(const ReferenceRow& row, const Vector& g, const ReferenceStep& step) {
    for (std::size_t d = 0; d < g.size(); ++d) {
        float& sum = (*row.element_state[0])[d];
        sum = std::fma(g[d], g[d], sum);
        (*row.weights)[d] = std::fma(-step.rate, g[d] / (std::sqrt(sum / step.c) + 1e-10F), (*row.weights)[d]);
    }
}
inline void adam(const ReferenceRow& row, const Vector& g, const ReferenceStep& step) {
    const auto power = [&](double beta) {  // by squaring
        double all = 1;
        for (std::int64_t rest = step.number; rest > 0; rest /= 2, beta *= beta)
            if (rest % 2 == 1) all *= beta;
        return all;
    };
    const auto rate =
        static_cast<float>(static_cast<double>(step.rate) * std::sqrt(1 - power(0.999)) / (1 - power(0.9)));
    for (std::size_t d = 0; d < g.size(); ++d) {
        float& m = (*row.element_state[0])[d];
        float& v = (*row.element_state[1])[d];
        m = std::fma(static_cast<float>(1 - 0.9), g[d] - m, m);
        v = std::fma(static_cast<float>(1 - 0.999), std::fma(g[d], g[d], -v), v);
        (*row.weights)[d] = std::fma(-rate, m / (std::sqrt(v / step.c) + 1e-8F), (*row.weights)[d]);
    }
}
inline void rms_prop(const ReferenceRow& row, const Vector& g, const ReferenceStep& step) {
    for (std::size_t d = 0; d < g.size(); ++d) {
        float& v = (*row.element_state[0])[d];
        v = std::fma(static_cast<float>(1 - 0.99), std::fma(g[d], g[d], -v), v);
        (*row.weights)[d] = std::fma(-step.rate, g[d] / (std::sqrt(v / step.c) + 1e-8F), (*row.weights)[d]);
    }
}
/// Algorithm 1 of two-dimensional sparse parallelism: the moment first, then the weights by what it is then.
inline void rowwise_adagrad(const ReferenceRow& row, const Vector& g, const ReferenceStep& step, double growth) {
    float& moment = (*row.row_state)[0];
    moment = static_cast<float>(static_cast<double>(moment) + growth);
    const float rate = step.rate / (std::sqrt(moment / step.c) + 1e-8F);
    for (std::size_t d = 0; d < g.size(); ++d)
        (*row.weights)[d] = std::fma(-rate, g[d], (*row.weights)[d]);
}
inline void sum_of_squares(const ReferenceRow& row, const Vector& g, const ReferenceStep& step) {
    rowwise_adagrad(row, g, step, step.sum_of_squares);
}
inline void mean_of_squares(const ReferenceRow& row, const Vector& g, const ReferenceStep& step) {
    rowwise_adagrad(row, g, step, step.sum_of_squares / static_cast<double>(g.size()));
}

}  // namespace detail

/// \param name  the library's, of a rule with its own constants
inline ReferenceRule reference_rule(std::string_view name) {
    if (name == "frozen") return {.learns = false};
    if (name == "sgd") return {.update = detail::sgd};
    if (name == "adagrad") return {.element_slots = 1, .scales = true, .update = detail::adagrad};
    if (name == "adam") return {.element_slots = 2, .scales = true, .update = detail::adam};
    if (name == "rms_prop") return {.element_slots = 1, .scales = true, .update = detail::rms_prop};
    ReferenceRule rowwise{.row_slots = 1, .needs_row_norm = true, .scales = true};
    rowwise.update = name == "rowwise_adagrad"        ? detail::sum_of_squares
                     : name == "rowwise_adagrad_mean" ? detail::mean_of_squares
                                                      : nullptr;
    if (rowwise.update == nullptr) throw std::logic_error{"the reference knows no rule " + std::string{name}};
    return rowwise;
}

}  // namespace laws
