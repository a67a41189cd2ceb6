// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/dense/gemm.hpp"

/// \file
/// Products of a batch's matrices whose bits do not depend on how the batch is split over ranks.

namespace shardwise::inline SHARDWISE_ABI {

/// How dense layers sum products, and ranks the gradients of dense weights.
///
/// - single: one product over all samples of a rank. The last bits of a product depend on its shape, hence on how a
///   batch is split over ranks: two world sizes agree but for rounding.
/// - blocks: products over blocks of BatchProducts::block samples. A sample's row is the same in any batch, since all
///   products have one shape: the last one is filled up with zeros. A gradient of weights is a sum of each whole block
///   in float, and of blocks, the samples that remain, and ranks in double, rounded at its end. So two world sizes
///   agree all but always where the samples of every rank are whole blocks, or fewer than one; else but for rounding.
/// - wide: all sums in double, rounded at their end: how the batch is split all but never shows, whatever its size.
///   Costs about twice the time of products.
///
/// Blocks and wide keep 8 bytes a weight for gradients, and ranks send doubles.
enum class DensePrecision : std::uint8_t { single, blocks, wide };

/// Products in blocks or in double, by a precision. Keeps copies of operands in work buffers. Not collective.
class BatchProducts {
  public:
    /// Samples of a block: 128.
    static constexpr std::int64_t block = 128;

    BatchProducts() = default;
    BatchProducts(DensePrecision precision, std::pmr::memory_resource& work) : precision_{precision} { on(work); }

    /// Takes memory from `work` from now on, where it has none yet.
    BatchProducts& on(std::pmr::memory_resource& work) noexcept {
        for (Buffer<double>* buffer : {&wide_a_, &wide_b_, &wide_c_})
            buffer->on(work);
        for (Buffer<float>* buffer : {&block_a_, &block_b_, &block_c_})
            buffer->on(work);
        return *this;
    }
    /// Itself, from now on in this precision; null in single precision, which needs none.
    BatchProducts* in(DensePrecision precision) noexcept {
        precision_ = precision;
        return precision == DensePrecision::single ? nullptr : this;
    }

    /// What the buffers need for all products of a linear map and its gradients, in bytes.
    struct Needs {
        DensePrecision precision = DensePrecision::wide;
        std::array<std::int64_t, 6> bytes = {};

        /// \param rows  samples
        void add(std::int64_t rows, std::int64_t inputs, std::int64_t outputs) noexcept {
            const std::int64_t widest = std::max(inputs, outputs);
            const auto need = [&](std::array<std::int64_t, 6> elements) {
                for (std::size_t i = 0; i < bytes.size(); ++i)
                    bytes[i] = std::max(bytes[i], (i < 3 ? 8 : 4) * elements[i]);
            };
            if (precision == DensePrecision::wide)
                need({rows * widest, std::max(inputs * outputs, rows * inputs), rows * widest, 0, 0, 0});
            if (precision == DensePrecision::blocks)
                need({block * outputs, block * inputs, 0, block * widest, block * inputs,
                      std::max(block * widest, std::min(outputs, stripe) * inputs)});
        }
    };

    /// c = a b, rounded. \param a (samples, k) \param b (k, n) \param c (samples, n), overlaps neither
    void nn(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) {
        by_samples(CblasNoTrans, a, b, c);
    }
    /// c = a b^T, rounded. \param a (samples, k) \param b (n, k) \param c (samples, n), overlaps neither
    void nt(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) {
        by_samples(CblasTrans, a, b, c);
    }
    /// c = a^T b, not rounded. \param a (samples, m) \param b (samples, n) \param c (m, n)
    void tn(MatrixView<const float> a, MatrixView<const float> b, MatrixView<double> c) {
        if (precision_ == DensePrecision::wide)
            return detail::gemm<double>(CblasTrans, CblasNoTrans, wide(a, wide_a_), wide(b, wide_b_), c);
        const std::int64_t remain = a.rows() % block;
        const std::int64_t whole_rows = a.rows() - remain;
        room(wide_a_, block * a.columns());
        room(wide_b_, block * b.columns());
        if (remain != 0 || whole_rows == 0)
            detail::gemm<double>(CblasTrans, CblasNoTrans, wide(rows_of(a, whole_rows, remain), wide_a_),
                                 wide(rows_of(b, whole_rows, remain), wide_b_), c);
        // A part of c at a time, which stays in the second cache while block after block is added.
        for (std::int64_t first = 0; first < c.rows(); first += stripe) {
            const std::int64_t rows = std::min(stripe, c.rows() - first);
            add_blocks(a.columns_from(first, rows), b, whole_rows, remain != 0, c.rows_from(first, rows));
        }
    }

  private:
    static constexpr std::int64_t stripe = 128;

    void by_samples(CBLAS_TRANSPOSE b_form, MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) {
        if (precision_ == DensePrecision::wide) return rounded(b_form, a, b, c);
        float* const result = room(block_c_, block * c.columns());
        room(block_a_, block * a.columns());
        for (std::int64_t first = 0; first < a.rows(); first += block) {
            const std::int64_t rows = std::min(block, a.rows() - first);
            const bool in_place = rows == block && c.stride() == c.columns();
            const MatrixView<float> to =
                in_place ? c.rows_from(first, rows) : MatrixView<float>{result, block, c.columns()};
            detail::gemm<float>(CblasNoTrans, b_form, whole(a, first, block_a_), b, to);
            for (std::int64_t i = 0; i < rows && !in_place; ++i)
                std::copy_n(to.row(i), c.columns(), c.row(first + i));
        }
    }
    /// \param begun  whether c has a sum already
    void add_blocks(MatrixView<const float> a, MatrixView<const float> b, std::int64_t whole_rows, bool begun,
                    MatrixView<double> c) {
        const MatrixView<float> part{room(block_c_, c.rows() * c.columns()), c.rows(), c.columns()};
        room(block_a_, block * a.columns());
        room(block_b_, block * b.columns());
        for (std::int64_t first = 0; first < whole_rows; first += block) {
            detail::gemm<float>(CblasTrans, CblasNoTrans, whole(a, first, block_a_), whole(b, first, block_b_), part);
            for (std::int64_t i = 0; i < c.rows(); ++i)
                if (begun || first != 0)
                    add(part.row(i), c.columns(), c.row(i));
                else
                    std::copy_n(part.row(i), c.columns(), c.row(i));
        }
    }
    static void add(const float* __restrict from, std::int64_t count, double* __restrict to) noexcept {
        for (std::int64_t j = 0; j < count; ++j)
            to[j] += static_cast<double>(from[j]);
    }
    /// Rows of a matrix that may have no memory.
    static MatrixView<const float> rows_of(MatrixView<const float> x, std::int64_t first, std::int64_t count) {
        return count == 0 ? MatrixView<const float>{nullptr, 0, x.columns()} : x.rows_from(first, count);
    }
    /// The block of samples from `first` on: where it lies, or in `copy`, filled up with zeros. Its rows follow each
    /// other in both cases, so that a product sees one shape and stride.
    static MatrixView<const float> whole(MatrixView<const float> x, std::int64_t first, Buffer<float>& copy) {
        const std::int64_t rows = std::min(block, x.rows() - first);
        if (rows == block && x.stride() == x.columns()) return x.rows_from(first, rows);
        const MatrixView<float> to{room(copy, block * x.columns()), block, x.columns()};
        for (std::int64_t i = 0; i < rows; ++i)
            std::copy_n(x.row(first + i), x.columns(), to.row(i));
        std::fill_n(to.row(rows), (block - rows) * x.columns(), 0.0F);
        return to;
    }
    template <class T>
    static T* room(Buffer<T>& buffer, std::int64_t elements) {
        return buffer.resize(static_cast<std::size_t>(elements)).data();
    }

    void rounded(CBLAS_TRANSPOSE b_form, MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) {
        const MatrixView<double> result{wide_c_.resize(static_cast<std::size_t>(c.rows() * c.columns())).data(),
                                        c.rows(), c.columns()};
        detail::gemm<double>(CblasNoTrans, b_form, wide(a, wide_a_), wide(b, wide_b_), result);
        for (std::int64_t i = 0; i < c.rows(); ++i)
            for (std::int64_t j = 0; j < c.columns(); ++j)
                c(i, j) = static_cast<float>(result(i, j));
    }
    static MatrixView<const double> wide(MatrixView<const float> x, Buffer<double>& copy) {
        double* to = copy.resize(static_cast<std::size_t>(x.rows() * x.columns())).data();
        for (std::int64_t i = 0; i < x.rows(); ++i)
            for (std::int64_t j = 0; j < x.columns(); ++j)
                *to++ = static_cast<double>(x(i, j));
        return {copy.data(), x.rows(), x.columns()};
    }

    DensePrecision precision_ = DensePrecision::wide;
    Buffer<double> wide_a_;
    Buffer<double> wide_b_;
    Buffer<double> wide_c_;
    Buffer<float> block_a_;
    Buffer<float> block_b_;
    Buffer<float> block_c_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
