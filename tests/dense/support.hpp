// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/matrix.hpp"

/// \file
/// Matrices of random numbers, and how close two numbers have to be.

namespace dense_test {

using shardwise::Buffer;
using shardwise::MatrixView;

/// A source of numbers; the same ones for the same seed.
class Random {
  public:
    explicit Random(std::uint32_t seed) : engine_{seed} {}
    float operator()() { return static_cast<float>(static_cast<double>(engine_()) / 2147483648.0 - 1.0); }
    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine_()) % n; }
    void fill(std::span<float> values) {
        for (float& value : values)
            value = (*this)();
    }

  private:
    std::mt19937 engine_;
};

/// A matrix that owns its elements.
struct Matrix {
    Matrix(std::int64_t row_count, std::int64_t column_count)
        : rows{row_count}, columns{column_count}, elements{*std::pmr::new_delete_resource(), size()} {}
    Matrix(std::int64_t row_count, std::int64_t column_count, Random& random) : Matrix{row_count, column_count} {
        random.fill(elements.span());
    }
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(rows * columns); }
    [[nodiscard]] MatrixView<float> view() { return {elements.data(), rows, columns}; }
    [[nodiscard]] MatrixView<const float> view() const { return {elements.data(), rows, columns}; }

    std::int64_t rows, columns;
    Buffer<float> elements;
};

/// |a - b| <= tolerance * max(1, |b|).
inline void expect_close(double a, double b, double tolerance) {
    EXPECT_LE(std::abs(a - b), tolerance * std::max(1.0, std::abs(b))) << a << " and " << b;
}

template <class A, class B>
void expect_all_close(const A& a, const B& b, double tolerance) {
    ASSERT_EQ(std::size(a), std::size(b));
    for (std::size_t i = 0; i < std::size(a); ++i) {
        SCOPED_TRACE(i);
        expect_close(a[i], b[i], tolerance);
    }
}

/// The slope of `function` at x[i], by a central difference. `x` is changed and restored.
template <class Function>
double slope(std::vector<double>& x, std::size_t i, Function function) {
    constexpr double h = 1e-6;
    const double middle = x[i];
    x[i] = middle + h;
    const double above = function();
    x[i] = middle - h;
    const double below = function();
    x[i] = middle;
    return (above - below) / (2 * h);
}

inline std::vector<double> as_double(std::span<const float> values) {
    return {values.begin(), values.end()};
}

}  // namespace dense_test
