// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/prefetch.hpp"
#include "shardwise/optimizer/sum_of_squares.hpp"

/// \file
/// The look at a gradient's numbers before any row changes, and what else comes out of the same read.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Columns [first, first + columns) of a row.
struct RowPart {
    int first = 0;
    int columns = 0;
    double* squares = nullptr;  ///< (row): where its sum of squares is wanted, or null
};

/// Whether a number has all bits of the exponent set.
[[nodiscard]] inline bool not_finite(float number) noexcept {
    constexpr std::uint32_t exponent = 0x7f800000U;
    return (std::bit_cast<std::uint32_t>(number) & exponent) == exponent;
}
[[nodiscard]] inline bool not_finite(double number) noexcept {
    constexpr std::uint64_t exponent = 0x7ff0000000000000U;
    return (std::bit_cast<std::uint64_t>(number) & exponent) == exponent;
}

/// Whether one of so many numbers is not finite. \tparam Columns  how many, where the compiler is to know; 0:
/// any_columns
template <int Columns>
[[nodiscard, gnu::always_inline]] inline bool some_not_finite(const float* row, int any_columns) noexcept {
    const int columns = Columns > 0 ? Columns : any_columns;
    std::uint32_t bad = 0;
    for (int d = 0; d < columns; ++d)
        bad |= not_finite(row[d]) ? 1U : 0U;
    return bad != 0;
}

/// \tparam Columns  of each row, which the compiler knows then; 0: of.columns()
template <int Columns>
[[nodiscard]] bool rows_finite(const MatrixView<const float>& of) {
    const int columns = Columns > 0 ? Columns : static_cast<int>(of.columns());
    const std::int64_t ahead = rows_ahead(columns) / 2;
    bool bad = false;
    for (std::int64_t i = 0; i < of.rows(); ++i) {
        if (i + ahead < of.rows()) prefetch(of.row(i + ahead), columns);
        bad |= some_not_finite<Columns>(of.row(i), columns);
    }
    return !bad;
}
/// Whether all numbers are finite. In one piece they are looked at 64 at a time, and asked for 8 KiB ahead: what a core
/// foresees by itself ends with each page.
[[nodiscard]] inline bool all_finite(const MatrixView<const float>& of) {
    constexpr int together = 64;
    if (of.stride() != of.columns()) return rows_finite<0>(of);
    const std::int64_t count = of.rows() * of.columns();
    const std::int64_t rest = count % together;
    return rows_finite<together>({of.data(), count / together, together}) &&
           rows_finite<0>({of.data() + (count - rest), 1, rest});
}

/// One part of one row: \returns whether a number is not finite. No sum of squares of floats overflows a double, so
/// that it is finite where all numbers are.
[[nodiscard]] inline bool look_at_part(const float* row, const RowPart& part, std::int64_t i) {
    if (part.squares == nullptr)
        return part.columns == 16 ? some_not_finite<16>(row, 16) : some_not_finite<0>(row, part.columns);
    const double sum = [&] {
        switch (part.columns) {
            case 32:
                return sum_of_squares(row, 32);
            case 64:
                return sum_of_squares(row, 64);
            case 128:
                return sum_of_squares(row, 128);
            default:
                return sum_of_squares(row, part.columns);
        }
    }();
    part.squares[i] = sum;
    return not_finite(sum);
}
/// The same of a matrix whose parts are all its columns, and makes the sums of squares that are wanted: one read of all
/// numbers.
[[nodiscard]] inline bool all_finite(const MatrixView<const float>& of, std::span<const RowPart> parts) {
    const std::int64_t ahead = std::max<std::int64_t>(2048 / std::max<std::int64_t>(of.columns(), 1), 1);
    bool bad = false;
    for (std::int64_t i = 0; i < of.rows(); ++i)
        for (const RowPart& part : parts) {
            if (i + ahead < of.rows()) prefetch(of.row(i + ahead) + part.first, part.columns);
            bad |= look_at_part(of.row(i) + part.first, part, i);
        }
    return !bad;
}

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
