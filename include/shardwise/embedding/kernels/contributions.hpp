// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "shardwise/core/config.hpp"
#include "shardwise/core/prefetch.hpp"

/// \file
/// What contributes to the rows that a batch touched.

namespace shardwise::inline SHARDWISE_ABI {

/// One term of a row's gradient: weight * gradient[0..dim), from a sample of rank `source`.
struct Contribution {
    const void* gradient = nullptr;  ///< floats; doubles where partial sums are wide (RowSet::wide)
    float weight = 1.0F;
    std::int32_t source = 0;

    /// \tparam T  what the step before wrote
    template <class T>
    [[nodiscard]] const T* terms() const noexcept {
        return static_cast<const T*>(gradient);
    }
};

/// All of a set, by number. Gradients that lie evenly need no list: a number says where they are, sooner than a list
/// that is read from the second cache.
struct Contributions {
    const Contribution* list = nullptr;  ///< (count); null: they lie evenly, and are of one source
    std::int64_t count = 0;
    const float* even = nullptr;  ///< that of a number is even[number * stride ...], of weight 1; null: as listed
    std::int64_t stride = 0;
    const double* squares = nullptr;  ///< (count), where they lie evenly: the sum of squares of each; null: not made

    [[nodiscard]] bool one_source() const noexcept { return list == nullptr; }
    [[nodiscard]] const float* even_terms(std::uint64_t number) const noexcept {
        return even + static_cast<std::int64_t>(number) * stride;
    }
    [[nodiscard, gnu::always_inline]] inline Contribution operator[](std::uint64_t number) const noexcept {
        if (even == nullptr) return list[number];
        return {.gradient = even_terms(number), .weight = 1.0F, .source = one_source() ? 0 : list[number].source};
    }
    /// Asks for the gradient of a number, of so many floats, which will be read soon.
    [[gnu::always_inline]] inline void prefetch(std::uint64_t number, int floats) const {
        shardwise::prefetch(even != nullptr ? even_terms(number) : list[number].terms<float>(), floats);
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
