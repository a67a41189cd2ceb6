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
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/cross_net.hpp"
#include "shardwise/dense/parameter.hpp"

/// \file
/// How DCN lets a sample's vectors meet: a cross network over all of them.

namespace shardwise::inline SHARDWISE_ABI {

/// A CrossNet over [dense, feature 0, ..., feature F-1] side by side; without a dense vector over the features. Its
/// parameters are named `cross.<layer>...`.
class CrossInteraction {
  public:
    static constexpr const char* model = "DCN";
    /// Run-time choices.
    struct Config {
        std::int64_t layers = 3;  ///< of the CrossNet
        std::int64_t rank = 0;    ///< of its weights; 0: full
    };

    /// \param set        has the parameters; outlives this
    /// \param dimension  D, elements of each vector
    /// \param features   F, feature vectors a sample
    /// \param dense      whether there is a dense vector; otherwise matrices of them have no columns
    /// \param work       where a batch's values live; a MemoryAccount's `work()`
    /// \throws BadInput for a config that makes no CrossNet
    CrossInteraction(ParameterSet& set, std::int64_t dimension, std::int64_t features, bool dense, const Config& config,
                     std::pmr::memory_resource& work, DensePrecision precision = DensePrecision::single)
        : net_{set, "cross", net_config(dimension, features, dense, config), precision},
          work_{work},
          vectors_{work},
          gradient_{work} {}

    void initialize(std::uint64_t seed) const { net_.initialize(seed); }
    /// Columns of an output: (F + 1) D; without a dense vector F D.
    [[nodiscard]] std::int64_t outputs() const noexcept { return net_.config().width; }
    [[nodiscard]] static std::int64_t outputs(std::int64_t dimension, std::int64_t features, bool dense) noexcept {
        return (features + (dense ? 1 : 0)) * dimension;
    }
    /// Of forward and backward together, a sample.
    [[nodiscard]] static std::int64_t flops(std::int64_t dimension, std::int64_t features, bool dense,
                                            const Config& config) {
        return CrossNet::flops(net_config(dimension, features, dense, config));
    }
    [[nodiscard]] static std::int64_t parameter_count(std::int64_t dimension, std::int64_t features, bool dense,
                                                      const Config& config) {
        return CrossNet::parameter_count(net_config(dimension, features, dense, config));
    }

    /// Not collective. \param dense (samples, D or 0) \param features (samples, F * D) \param output (samples,
    /// outputs())
    void forward(MatrixView<const float> dense, MatrixView<const float> features, MatrixView<float> output) {
        const MatrixView<float> vectors = matrix(vectors_, dense.rows());
        for (std::int64_t i = 0; i < dense.rows(); ++i)
            std::copy_n(features.row(i), features.columns(),
                        std::copy_n(dense.row(i), dense.columns(), vectors.row(i)));
        const MatrixView<const float> crossed = net_.forward(vectors, work_);
        for (std::int64_t i = 0; i < crossed.rows(); ++i)
            std::copy_n(crossed.row(i), crossed.columns(), output.row(i));
    }

    /// Overwrites the gradients of the cross network, and writes those of both inputs. Not collective.
    /// \param gradient          (samples, outputs()), with respect to the output of the last forward
    /// \param dense_gradient    (samples, D or 0) \param feature_gradient  (samples, F * D)
    void backward(MatrixView<const float>, MatrixView<const float>, MatrixView<const float> gradient,
                  MatrixView<float> dense_gradient, MatrixView<float> feature_gradient) {
        const MatrixView<float> all = matrix(gradient_, gradient.rows());
        net_.backward(work_, gradient, all);
        for (std::int64_t i = 0; i < all.rows(); ++i) {
            std::copy_n(all.row(i), dense_gradient.columns(), dense_gradient.row(i));
            std::copy_n(all.row(i) + dense_gradient.columns(), feature_gradient.columns(), feature_gradient.row(i));
        }
    }

  private:
    static CrossNetConfig net_config(std::int64_t dimension, std::int64_t features, bool dense, const Config& config) {
        return {.width = outputs(dimension, features, dense), .layers = config.layers, .rank = config.rank};
    }
    [[nodiscard]] MatrixView<float> matrix(Buffer<float>& buffer, std::int64_t rows) const {
        return {buffer.resize(static_cast<std::size_t>(rows * outputs())).data(), rows, outputs()};
    }

    CrossNet net_;
    CrossNet::Work work_;
    Buffer<float> vectors_;   // (samples, outputs())
    Buffer<float> gradient_;  // (samples, outputs())
};

}  // namespace shardwise::inline SHARDWISE_ABI
