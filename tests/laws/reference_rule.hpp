// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "shardwise/optimizer/moment_scale.hpp"
#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// How the reference updates a row: by the optimizer's own struct, one element after the other. That each rule is its
/// formula is for tests of rules to say.

namespace laws {

namespace sw = shardwise;

using Vector = std::vector<float>;

/// A row of a table, with its moments.
struct ReferenceRow {
    Vector* weights;
    std::vector<Vector*> element_state;  ///< (slot)
    Vector* row_state;                   ///< (slot)
};

/// A SparseOptimizer with its own constants, its type forgotten.
struct ReferenceRule {
    int element_slots = 0;
    int row_slots = 0;
    bool needs_row_norm = false;
    bool scales = false;  ///< its moment by c
    void (*update)(const sw::UpdateStep& step, const ReferenceRow& row, const Vector& gradient, double sum_of_squares,
                   float c) = nullptr;
};

namespace detail {

template <class Rule, std::size_t... Slot>
void update_row(const sw::UpdateStep& step, const ReferenceRow& row, const Vector& gradient, double sum_of_squares,
                float c, std::index_sequence<Slot...>) {
    Rule rule;
    if constexpr (sw::ScaledMoment<Rule>) rule.moment_scale = c;
    const typename Rule::Row shared =
        rule.row(step, row.row_state->data(), sum_of_squares, static_cast<int>(gradient.size()));
    for (std::size_t d = 0; d < gradient.size(); ++d)
        rule.element(shared, (*row.weights)[d], gradient[d], (*row.element_state[Slot])[d]...);
}

}  // namespace detail

template <sw::SparseOptimizer Rule>
ReferenceRule reference_rule() {
    return {.element_slots = Rule::element_slots,
            .row_slots = Rule::row_slots,
            .needs_row_norm = Rule::needs_row_norm,
            .scales = sw::ScaledMoment<Rule>,
            .update = [](const sw::UpdateStep& step, const ReferenceRow& row, const Vector& gradient,
                         double sum_of_squares, float c) {
                detail::update_row<Rule>(step, row, gradient, sum_of_squares, c,
                                         std::make_index_sequence<Rule::element_slots>{});
            }};
}

}  // namespace laws
