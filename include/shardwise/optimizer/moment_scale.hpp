// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstdint>
#include <ratio>
#include <type_traits>

#include "shardwise/core/config.hpp"

/// \file
/// What a moment is divided by before its root is taken: of groups of ranks, each sees fewer samples a step, and so a
/// moment that is larger. (Two-dimensional sparse parallelism, section 3.2 and Algorithm 1)

namespace shardwise::inline SHARDWISE_ABI {

/// A rule's c is as many as the layer has groups of ranks; outside of a layer 1.
inline constexpr float as_many_as_groups = 0.0F;

namespace detail {

template <class T>
inline constexpr bool is_ratio = false;
template <std::intmax_t N, std::intmax_t D>
inline constexpr bool is_ratio<std::ratio<N, D>> = true;
template <class T>
inline constexpr bool is_scale = (std::integral<T> && !std::same_as<T, bool>) || is_ratio<T>;

template <class T>
constexpr float scale_of(T value) {
    if constexpr (is_ratio<T>)
        return static_cast<float>(static_cast<double>(T::num) / static_cast<double>(T::den));
    else
        return static_cast<float>(value);
}

}  // namespace detail

/// c in sqrt(v / c): MomentScale<4>, MomentScale<std::ratio<5, 2>{}>, or MomentScale<>, as many as the layer has
/// groups. The moment itself is stored as it was. In (0, groups]; without groups 1.
template <auto... C>
struct MomentScale {
    static_assert(sizeof...(C) <= 1 && ((detail::is_scale<std::remove_cv_t<decltype(C)>>)&&...),
                  "MomentScale<> takes an integer, a std::ratio<n, d>{}, or nothing: as many as there are groups");
    static constexpr float value = (0.0F + ... + detail::scale_of(C));
    /// False for MomentScale<>: known when the layer is made.
    static constexpr bool is_given = sizeof...(C) > 0;
    static_assert(!is_given || value > 0.0F, "MomentScale<c> takes a c above 0");
};

/// A rule whose moment a layer may scale: it has `float moment_scale`, and divides by it before it takes the root.
template <class Rule>
concept ScaledMoment = requires(Rule rule) {
    { rule.moment_scale } -> std::same_as<float&>;
};

namespace detail {

template <class T>
inline constexpr bool is_moment_scale = false;
template <auto... C>
inline constexpr bool is_moment_scale<MomentScale<C...>> = true;

/// What a rule divides its moment by.
SHARDWISE_HOST_DEVICE constexpr float divisor_of(float moment_scale) noexcept {
    return moment_scale > 0.0F ? moment_scale : 1.0F;
}

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
