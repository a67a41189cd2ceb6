// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "shardwise/core/config.hpp"

/// \file
/// A view of a row-major matrix.

namespace shardwise::inline SHARDWISE_ABI {

/// A view of a row-major matrix with `stride` elements from one row to the next (stride >= columns).
template <class T>
class MatrixView {
  public:
    /// Of no rows and no columns.
    constexpr MatrixView() = default;
    /// Of rows that lie one after the other.
    constexpr MatrixView(T* data, std::int64_t rows, std::int64_t columns) : MatrixView{data, rows, columns, columns} {}
    /// \param stride  elements from one row to the next, at least `columns`
    constexpr MatrixView(T* data, std::int64_t rows, std::int64_t columns, std::int64_t stride)
        : data_{data}, rows_{rows}, columns_{columns}, stride_{stride} {}
    /// A view of mutable elements is also a view of constant ones.
    constexpr operator MatrixView<const T>() const noexcept requires(!std::is_const_v<T>) {
        return {data_, rows_, columns_, stride_};
    }

    /// The first element of row 0.
    [[nodiscard]] constexpr T* data() const noexcept { return data_; }
    /// How many rows there are.
    [[nodiscard]] constexpr std::int64_t rows() const noexcept { return rows_; }
    /// How many columns there are: the elements of a row.
    [[nodiscard]] constexpr std::int64_t columns() const noexcept { return columns_; }
    /// Elements from one row to the next.
    [[nodiscard]] constexpr std::int64_t stride() const noexcept { return stride_; }
    /// The first of the `columns()` elements of row i, from 0 on. Not checked.
    [[nodiscard]] constexpr T* row(std::int64_t i) const noexcept { return data_ + i * stride_; }
    /// The element in row i, column j, both from 0 on. Not checked.
    [[nodiscard]] constexpr T& operator()(std::int64_t i, std::int64_t j) const noexcept { return row(i)[j]; }
    /// Columns [first, first + count) of every row; a matrix without rows may have no memory.
    [[nodiscard]] constexpr MatrixView columns_from(std::int64_t first, std::int64_t count) const noexcept {
        return {rows_ == 0 ? data_ : data_ + first, rows_, count, stride_};
    }
    /// Rows [first, first + count).
    [[nodiscard]] constexpr MatrixView rows_from(std::int64_t first, std::int64_t count) const noexcept {
        return {row(first), count, columns_, stride_};
    }

  private:
    T* data_ = nullptr;
    std::int64_t rows_ = 0;
    std::int64_t columns_ = 0;
    std::int64_t stride_ = 0;
};

}  // namespace shardwise::inline SHARDWISE_ABI
