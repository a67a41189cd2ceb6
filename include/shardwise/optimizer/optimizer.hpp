// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "shardwise/core/config.hpp"

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
/// A row that no sample touched is not updated; a touched row with a gradient of zero is.
/// Rules write std::fma for every multiply-add, so that results do not depend on compiler flags.
template <class O>
concept SparseOptimizer = requires(const O& rule, const UpdateStep& step, float* state, double norm, int dim) {
    { O::name } -> std::convertible_to<std::string>;
    { O::row_slots } -> std::convertible_to<int>;
    { O::element_slots } -> std::convertible_to<int>;
    { O::needs_row_norm } -> std::convertible_to<bool>;
    { rule.row(step, state, norm, dim) } -> std::same_as<typename O::Row>;
    requires detail::takes_slots<O>(std::make_index_sequence<static_cast<std::size_t>(O::element_slots)>{});
};

}  // namespace shardwise::inline SHARDWISE_ABI
