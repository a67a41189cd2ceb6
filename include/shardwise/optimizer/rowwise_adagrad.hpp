// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <concepts>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/optimizer/moment_scale.hpp"
#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// AdaGrad with one moment a row.

namespace shardwise::inline SHARDWISE_ABI {

/// The moment grows by the sum of the squares of the row's gradient (two-dimensional sparse parallelism, Algorithm 1).
struct SumOfSquares {
    static constexpr const char* name = "rowwise_adagrad";
    SHARDWISE_HOST_DEVICE static double growth(double sum_of_squares, int) { return sum_of_squares; }
};

/// The moment grows by the mean of the squares of the row's gradient, as in FBGEMM.
struct MeanOfSquares {
    static constexpr const char* name = "rowwise_adagrad_mean";
    SHARDWISE_HOST_DEVICE static double growth(double sum_of_squares, int dim) { return sum_of_squares / dim; }
};

namespace detail {

template <class T>
concept RowMoment = requires(double sum, int dim) {
    T::name;
    { T::growth(sum, dim) } -> std::convertible_to<double>;
};
template <class T>
using IsRowMoment = std::bool_constant<RowMoment<T>>;
template <class T>
using IsMomentScale = std::bool_constant<is_moment_scale<T>>;

/// What a list says of one thing, or else what it is without being asked.
template <template <class> class Is, class Fallback, class... Options>
using OptionOr = boost::mp11::mp_front<
    boost::mp11::mp_push_back<boost::mp11::mp_copy_if<boost::mp11::mp_list<Options...>, Is>, Fallback>>;

}  // namespace detail

/// s <- s + growth of g; w <- w - learning_rate / (sqrt(s / moment_scale) + epsilon) * g. The growth is added in double
/// precision, and the row learns by the moment that has grown. (Two-dimensional sparse parallelism, Algorithm 1)
/// \tparam Options  in any order: SumOfSquares (default), MeanOfSquares or a struct of your own like them, and
///                  MomentScale<c> (MomentScale<>: as many as there are groups)
template <class... Options>
struct RowwiseAdagrad {
    static_assert(((detail::RowMoment<Options> || detail::is_moment_scale<Options>)&&...) &&
                      (0 + ... + int{detail::RowMoment<Options>}) <= 1 &&
                      (0 + ... + int{detail::is_moment_scale<Options>}) <= 1,
                  "RowwiseAdagrad<> takes SumOfSquares or MeanOfSquares, and MomentScale<c>, each at most once");
    using Moment = detail::OptionOr<detail::IsRowMoment, SumOfSquares, Options...>;
    using Scale = detail::OptionOr<detail::IsMomentScale, MomentScale<>, Options...>;

    static constexpr const char* name = Moment::name;
    static constexpr int row_slots = 1;
    static constexpr int element_slots = 0;
    static constexpr bool needs_row_norm = true;
    /// What row() hands to element().
    struct Row {
        float scale;
    };

    float epsilon = 1e-8F;
    float moment_scale = Scale::value;

    /// Checks the constants.
    /// \throws BadInput for an epsilon that is negative or no finite number
    void check() const { detail::require_not_negative(name, "epsilon", epsilon); }
    void add_to(Digest& digest) const { digest.add(epsilon).add(detail::divisor_of(moment_scale)); }

    SHARDWISE_HOST_DEVICE Row row(const UpdateStep& step, float* moment, double sum_of_squares, int dim) const {
        *moment = static_cast<float>(static_cast<double>(*moment) + Moment::growth(sum_of_squares, dim));
        const float divisor = detail::divisor_of(moment_scale);
        const float scaled = divisor == 1.0F ? *moment : *moment / divisor;  // the same bits, and most have 1
        return {step.learning_rate / (std::sqrt(scaled) + epsilon)};
    }
    SHARDWISE_HOST_DEVICE void element(const Row& row, float& weight, float gradient) const {
        weight = std::fma(-row.scale, gradient, weight);
    }
};
static_assert(SparseOptimizer<RowwiseAdagrad<>> && SparseOptimizer<RowwiseAdagrad<MeanOfSquares>>);

}  // namespace shardwise::inline SHARDWISE_ABI
