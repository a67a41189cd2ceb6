// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "shardwise/core/config.hpp"
#include "shardwise/dense/activation.hpp"

/// \file
/// The loss of a click model.

namespace shardwise::inline SHARDWISE_ABI {

/// Binary cross-entropy of logits, with its gradient. Every term is computed in double, without overflow.
///
/// The loss of a sample is max(z, 0) - z y + log(1 + exp(-|z|)); the loss of a batch is the mean over the samples of
/// all ranks, which is why `global_samples` is asked for: the gradients of all ranks then simply add up.
///
/// Not collective; one pass over the samples, one exponential and one logarithm each.
/// \param logits          z, (samples)
/// \param labels          y in [0, 1], (samples)
/// \param global_samples  number of samples over all ranks, at least 1 where `logits` is not empty
/// \param gradient        (sigmoid(z) - y) / global_samples, (samples)
/// \returns the sum, not the mean, of the losses of these samples, in their order: add it over ranks, then divide
inline double binary_cross_entropy(std::span<const float> logits, std::span<const float> labels,
                                   std::int64_t global_samples, std::span<float> gradient) {
    SHARDWISE_ASSERT(labels.size() == logits.size() && gradient.size() == logits.size());
    SHARDWISE_ASSERT(logits.empty() || global_samples >= static_cast<std::int64_t>(logits.size()));
    const auto count = static_cast<double>(global_samples);
    double sum = 0.0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const double z = logits[i];
        const double y = labels[i];
        sum += std::fma(-z, y, z > 0.0 ? z : 0.0) + std::log1p(std::exp(-std::abs(z)));
        gradient[i] = static_cast<float>((Sigmoid::exact(z) - y) / count);
    }
    return sum;
}

}  // namespace shardwise::inline SHARDWISE_ABI
