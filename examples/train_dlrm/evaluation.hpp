// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <limits>

#include "data.hpp"
#include "model.hpp"
#include "shardwise/metrics/binary.hpp"
#include "shardwise/metrics/streaming_auc.hpp"

/// \file
/// How good the model is.

namespace train_dlrm {

/// Metrics of some samples. NaN where they make no sense.
struct Quality {
    std::int64_t samples = 0;
    double loss = 0;  ///< mean log loss, nats
    double auc = 0;
    double ne = 0;  ///< normalized entropy

    [[nodiscard]] static Quality unknown() {
        constexpr double none = std::numeric_limits<double>::quiet_NaN();
        return {.samples = 0, .loss = none, .auc = none, .ne = none};
    }
};

/// What an AUC compares: labels of all samples, or of the candidates of one sample, whose mean is then taken.
enum class Ranks : std::uint8_t { samples, candidates };

/// Predicts all test data, or until some rank was asked to stop: metrics are NaN then. Collective.
/// \returns the same on all ranks
[[nodiscard]] Quality evaluate(Model& model, Batches& batches, sw::CommunicatorRef comm, bool prefetch,
                               Ranks ranks = Ranks::samples);

/// Metrics of the samples that a model predicts before it learns from them, in constant memory.
class RunningQuality {
  public:
    void add(std::span<const float> logits, std::span<const float> labels);
    void reset();
    /// Over all ranks. Collective.
    [[nodiscard]] Quality value(sw::CommunicatorRef comm) const;

  private:
    sw::BinarySums sums_;
    sw::StreamingAuc auc_;
};

}  // namespace train_dlrm
