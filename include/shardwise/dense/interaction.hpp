// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/gemm.hpp"
#include "shardwise/dense/parameter.hpp"

/// \file
/// How DLRM lets a sample's vectors meet: every pair's dot product.

namespace shardwise::inline SHARDWISE_ABI {

/// Dot products of all pairs among the dense vector and the feature vectors of a sample.
///
/// With T = [dense; feature 0; ...; feature F-1], an output row is the dense vector followed by T_i . T_j for i = 1..F
/// and, under each i, j = 0..i-1: the strictly lower triangle, row by row, as the reference DLRM orders it (Naumov et
/// al., "Deep Learning Recommendation Model for Personalization and Recommendation Systems", 2019). Without a dense
/// vector T is the features alone, and an output row the products alone.
/// One small matrix product a sample, or, of few vectors, as between towers, a loop over pairs: measured, it takes 0.1
/// to 0.95 of the product's time there. The work buffers hold one sample and are allocated at construction.
class DotInteraction {
  public:
    static constexpr const char* model = "DLRM";
    /// There is nothing to choose.
    struct Config {};

    /// As a model makes one: without parameters, and of one precision, since no sum knows the batch.
    DotInteraction(ParameterSet&, std::int64_t dimension, std::int64_t features, bool dense, const Config&,
                   std::pmr::memory_resource& work, DensePrecision)
        : DotInteraction{dimension, features, work, dense} {}
    void initialize(std::uint64_t) const {}

    /// \param dimension  D, elements of each vector, at least 1
    /// \param features   F, feature vectors a sample, at least 0
    /// \param work       where 2 * (F+1) * (D+F+1) floats live; a MemoryAccount's `work()`
    /// \param dense      whether there is a dense vector; otherwise matrices of them have no columns
    /// \throws BadInput when the dimension is not positive or the number of features negative
    DotInteraction(std::int64_t dimension, std::int64_t features, std::pmr::memory_resource& work, bool dense = true)
        : dimension_{dimension}, dense_{dense ? 1 : 0}, vectors_{features + dense_} {
        if (dimension < 1 || features < 0)
            throw BadInput{concat({"an interaction of ", features, " features of dimension ", dimension,
                                   ": the dimension is at least 1, features at least 0"})};
        for (Buffer<float>* buffer : {&vector_buffer_, &vector_gradient_buffer_}) {
            *buffer = Buffer<float>{work, static_cast<std::size_t>(vectors_ * dimension_)};
        }
        products_ = Buffer<float>{work, static_cast<std::size_t>(vectors_ * vectors_)};
    }

    /// D.
    [[nodiscard]] std::int64_t dimension() const noexcept { return dimension_; }
    /// F.
    [[nodiscard]] std::int64_t features() const noexcept { return vectors_ - dense_; }
    /// Columns of an output: D + (F+1) F / 2; without a dense vector F (F-1) / 2.
    [[nodiscard]] std::int64_t outputs() const noexcept { return outputs(dimension_, features(), dense_ != 0); }

    /// Of forward and backward together, a sample, as a profiler counts: 6 (F+1)^2 D. Backward needs one product of the
    /// two that it counts, since the pairs are symmetric.
    [[nodiscard]] static std::int64_t flops(std::int64_t dimension, std::int64_t features, bool dense,
                                            const Config&) noexcept {
        const std::int64_t vectors = features + (dense ? 1 : 0);
        return 6 * vectors * vectors * dimension;
    }
    [[nodiscard]] static std::int64_t parameter_count(std::int64_t, std::int64_t, bool, const Config&) noexcept {
        return 0;
    }
    [[nodiscard]] static std::int64_t outputs(std::int64_t dimension, std::int64_t features, bool dense) noexcept {
        const std::int64_t vectors = features + (dense ? 1 : 0);
        return (dense ? dimension : 0) + vectors * (vectors - 1) / 2;
    }

    /// Not collective; 2 * samples * (F+1)^2 * D flops.
    /// \param dense     (samples, D), or (samples, 0) where there is no dense vector
    /// \param features  (samples, F * D)
    /// \param output    (samples, outputs()), overlaps neither
    void forward(MatrixView<const float> dense, MatrixView<const float> features, MatrixView<float> output) {
        check(dense, features, output);
        const MatrixView<float> products{products_.data(), vectors_, vectors_};
        for (std::int64_t sample = 0; sample < dense.rows(); ++sample) {
            float* to = std::copy_n(dense.row(sample), dense.columns(), output.row(sample));
            if (few()) {
                pair_dots(dense.row(sample), features.row(sample), to);
                continue;
            }
            const MatrixView<const float> vectors = gather(dense.row(sample), features.row(sample));
            gemm_nt(vectors, vectors, products);
            for (std::int64_t i = 1; i < vectors_; ++i)
                to = std::copy_n(products.row(i), i, to);
        }
    }

    /// Gradients with respect to both inputs. Not collective; as many flops as forward.
    /// \param dense, features   as in forward
    /// \param gradient          (samples, outputs()), with respect to the output
    /// \param dense_gradient    (samples, D), overlaps no other
    /// \param feature_gradient  (samples, F * D), overlaps no other
    void backward(MatrixView<const float> dense, MatrixView<const float> features, MatrixView<const float> gradient,
                  MatrixView<float> dense_gradient, MatrixView<float> feature_gradient) {
        check(dense, features, gradient);
        check(dense_gradient, feature_gradient, gradient);
        const MatrixView<float> pairs{products_.data(), vectors_, vectors_};  // symmetric, zero on the diagonal
        const MatrixView<float> result{vector_gradient_buffer_.data(), vectors_, dimension_};
        for (std::int64_t i = 0; i < vectors_; ++i)
            pairs(i, i) = 0.0F;
        for (std::int64_t sample = 0; sample < dense.rows(); ++sample) {
            const float* from = gradient.row(sample) + dense.columns();
            for (std::int64_t i = 1; i < vectors_; ++i)
                for (std::int64_t j = 0; j < i; ++j)
                    pairs(i, j) = pairs(j, i) = *from++;
            gemm_nn(pairs, gather(dense.row(sample), features.row(sample)), result);
            for (std::int64_t d = 0; d < dense.columns(); ++d)
                dense_gradient(sample, d) = result(0, d) + gradient(sample, d);
            std::copy_n(result.row(dense_), features.columns(), feature_gradient.row(sample));
        }
    }

  private:
    /// As many as a loop over pairs is faster for.
    [[nodiscard]] bool few() const noexcept { return vectors_ <= 5 || (vectors_ <= 9 && dimension_ <= 16); }
    /// Vector i of a sample.
    [[nodiscard]] const float* vector(const float* dense, const float* features, std::int64_t i) const noexcept {
        return i < dense_ ? dense : features + (i - dense_) * dimension_;
    }
    void pair_dots(const float* dense, const float* features, float* to) const {
        for (std::int64_t i = 1; i < vectors_; ++i)
            for (std::int64_t j = 0; j < i; ++j)
                *to++ = dot(vector(dense, features, i), vector(dense, features, j));
    }
    [[nodiscard]] float dot(const float* a, const float* b) const noexcept {
        constexpr std::int64_t lanes = 16;
        float sums[lanes] = {};
        std::int64_t d = 0;
        for (; d + lanes <= dimension_; d += lanes)
            for (std::int64_t lane = 0; lane < lanes; ++lane)
                sums[lane] += a[d + lane] * b[d + lane];
        float sum = 0;
        for (const float of_lane : sums)
            sum += of_lane;
        for (; d < dimension_; ++d)
            sum += a[d] * b[d];
        return sum;
    }
    /// One sample's vectors under each other, (F+1, D).
    MatrixView<const float> gather(const float* dense, const float* features) {
        std::copy_n(features, (vectors_ - dense_) * dimension_,
                    std::copy_n(dense, dense_ * dimension_, vector_buffer_.data()));
        return {vector_buffer_.data(), vectors_, dimension_};
    }
    void check([[maybe_unused]] MatrixView<const float> dense, [[maybe_unused]] MatrixView<const float> features,
               [[maybe_unused]] MatrixView<const float> output) const {
        SHARDWISE_ASSERT(dense.rows() == features.rows() && dense.rows() == output.rows());
        SHARDWISE_ASSERT(dense.columns() == dense_ * dimension_ &&
                         features.columns() == (vectors_ - dense_) * dimension_);
        SHARDWISE_ASSERT(output.columns() == outputs());
    }

    std::int64_t dimension_;
    std::int64_t dense_;    // dense vectors: 1 or 0
    std::int64_t vectors_;  // F + dense_
    Buffer<float> vector_buffer_;
    Buffer<float> vector_gradient_buffer_;
    Buffer<float> products_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
