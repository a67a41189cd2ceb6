// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/dense/gemm.hpp"

/// \file
/// Matrix products of floats whose sums are taken in double.

namespace shardwise::inline SHARDWISE_ABI {

/// In which precision dense layers sum products, and ranks the gradients of dense weights.
///
/// In single precision the last bits of a product depend on the shapes, hence on how a batch is split over ranks: two
/// world sizes agree but for rounding. Sums in double are rounded to float once, at their end, so that how the batch
/// is split all but never shows. Costs about twice the time of a product, and 8 bytes a weight for gradients.
enum class DensePrecision : std::uint8_t { single, wide };

/// Products of floats with sums in double. Keeps copies of the operands in double in work buffers. Not collective.
class WideProducts {
  public:
    WideProducts() = default;
    explicit WideProducts(std::pmr::memory_resource& work) { on(work); }

    /// Takes memory from `work` from now on, where it has none yet.
    WideProducts& on(std::pmr::memory_resource& work) noexcept {
        for (Buffer<double>* buffer : {&a_, &b_, &c_})
            buffer->on(work);
        return *this;
    }

    /// What the buffers need for all products of a linear map and its gradients.
    struct Needs {
        std::int64_t a = 0;
        std::int64_t b = 0;
        std::int64_t c = 0;

        /// \param rows  samples
        void add(std::int64_t rows, std::int64_t inputs, std::int64_t outputs) noexcept {
            const std::int64_t samples = 8 * rows * std::max(inputs, outputs);
            a = std::max(a, samples);
            b = std::max({b, 8 * inputs * outputs, 8 * rows * inputs});
            c = std::max(c, samples);
        }
    };

    /// c = a b, rounded. \param a (m, k) \param b (k, n) \param c (m, n), overlaps neither
    void nn(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) {
        rounded(CblasNoTrans, a, b, c);
    }
    /// c = a b^T, rounded. \param a (m, k) \param b (n, k) \param c (m, n), overlaps neither
    void nt(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) { rounded(CblasTrans, a, b, c); }
    /// c = a^T b, not rounded. \param a (k, m) \param b (k, n) \param c (m, n)
    void tn(MatrixView<const float> a, MatrixView<const float> b, MatrixView<double> c) {
        detail::gemm<double>(CblasTrans, CblasNoTrans, wide(a, a_), wide(b, b_), c);
    }

  private:
    void rounded(CBLAS_TRANSPOSE b_form, MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) {
        const MatrixView<double> result{c_.resize(static_cast<std::size_t>(c.rows() * c.columns())).data(), c.rows(),
                                        c.columns()};
        detail::gemm<double>(CblasNoTrans, b_form, wide(a, a_), wide(b, b_), result);
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

    Buffer<double> a_;
    Buffer<double> b_;
    Buffer<double> c_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
