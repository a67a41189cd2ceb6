// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// What a sparse optimizer is: one struct, free of storage, for host and device.

namespace shardwise::inline SHARDWISE_ABI {

/// When an update happens.
struct UpdateStep {
    float learning_rate = 0.0F;
    std::int64_t step = 1;  ///< the layer's steps so far, this one included
};

namespace detail {

/// Whether `element` takes what the row shares, a weight, its gradient and as many floats as there are slots.
template <class O, std::size_t... Slot>
constexpr bool takes_slots(std::index_sequence<Slot...>) {
    return requires(const O& rule, const typename O::Row& row, float& weight, float gradient, float* slots) {
        rule.element(row, weight, gradient, slots[Slot]...);
    };
}

}  // namespace detail

/// A rule that updates the touched rows of a table. It keeps `row_slots` floats a row and `element_slots` floats an
/// element, all zero at first, and has
/// - `Row row(const UpdateStep&, float* row_state, double sum_of_squares, int dim) const`: once a touched row; what the
///   elements of the row share. `sum_of_squares` is that of the row's whole gradient, 0 unless `needs_row_norm`;
/// - `void element(const Row&, float& weight, float gradient, float& slot...) const`: once an element, with
///   `element_slots` references.
/// It may have
/// - `void check() const`: throws BadInput for constants that make no rule, naming the rule, the field, its value and
///   what is allowed; a layer calls it before anything else;
/// - `void add_to(Digest&) const`: adds the constants to a digest, so that ranks that were given others are told so.
/// - `float moment_scale = as_many_as_groups`: what its moment is divided by before the root is taken; a layer sets it
///   (optimizer/moment_scale.hpp);
/// - `static constexpr bool learns = false`: rows stay as they are, and its layers have no backward pass.
/// A row that no sample touched is not updated; a touched row with a gradient of zero is.
/// Rules write std::fma for every multiply-add, so that results do not depend on compiler flags.
template <class O>
concept SparseOptimizer = requires(const O& rule, const UpdateStep& step, float* state, double norm, int dim) {
    { O::name } -> std::convertible_to<std::string>;
    { O::row_slots } -> std::convertible_to<int>;
    { O::element_slots } -> std::convertible_to<int>;
    { O::needs_row_norm } -> std::convertible_to<bool>;
    { rule.row(step, state, norm, dim) } -> std::same_as<typename O::Row>;
    requires std::default_initializable<typename O::Row> && std::movable<typename O::Row> && std::copy_constructible<O>;
    requires detail::takes_slots<O>(std::make_index_sequence<static_cast<std::size_t>(O::element_slots)>{});
};

/// False for a rule that says that rows stay as they are, as Frozen does.
template <class Rule>
inline constexpr bool rule_learns = true;
/// What the rule says itself.
template <class Rule>
    requires requires {
        Rule::learns;
    }
inline constexpr bool rule_learns<Rule> = Rule::learns;

/// Calls the rule's `check()`, where it has one.
template <class Rule>
void check_rule(const Rule& rule) {
    if constexpr (requires { rule.check(); }) rule.check();
}

namespace detail {

inline std::string constant_text(double value) {
    char number[32];
    std::snprintf(number, sizeof number, "%g", value);
    return number;
}
/// \throws BadInput unless the constant `fits`
inline void require_constant(const std::string& rule, const char* field, double value, bool fits, const char* allowed) {
    if (fits) return;
    throw BadInput{concat({"optimizer '", rule, "': ", field, " is ", constant_text(value), ": give ", allowed})};
}
/// Of what rules add to a root, or start a sum with. As PyTorch, it may be 0. \throws BadInput
inline void require_not_negative(const std::string& rule, const char* field, double value) {
    require_constant(rule, field, value, value >= 0.0 && value <= std::numeric_limits<float>::max(),
                     "a finite number, 0 or more");
}
/// Of what a moving average keeps: of 1 and more it never comes to the mean. \throws BadInput
inline void require_beta(const std::string& rule, const char* field, double value) {
    require_constant(rule, field, value, value >= 0.0 && value < 1.0, "a number from 0 to below 1");
}

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
