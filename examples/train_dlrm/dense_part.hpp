// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "options.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/data/batch.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"

/// \file
/// The dense part of whichever model the options name: DLRM, DCN, or a sequence model with one of its poolings.

namespace train_dlrm {

/// What becomes of looked-up vectors, on one rank. Nothing is collective.
class DensePart {
  public:
    DensePart() = default;
    DensePart(const DensePart&) = delete;
    DensePart& operator=(const DensePart&) = delete;
    virtual ~DensePart() = default;

    /// What needs no vectors yet.
    virtual void forward_bottom(const sw::ClickBatch& batch) = 0;
    /// \returns the logits, one a label of the batch
    virtual std::span<const float> forward_top(const sw::LayerVectors& vectors) = 0;
    /// Overwrites the gradients of all parameters. \returns the gradient of the vectors times `to_embeddings`, valid
    /// until the next backward
    virtual sw::LayerVectors backward(std::span<const float> gradient, float to_embeddings) = 0;

    [[nodiscard]] virtual sw::ParameterSet& parameters() = 0;
    /// Of forward and backward together, a sample.
    [[nodiscard]] virtual std::int64_t flops() const = 0;
};

/// \param embedding  whose vectors it takes \param memory  outlives it
[[nodiscard]] std::unique_ptr<DensePart> make_dense_part(const Options& options, const sw::LayerBase& embedding,
                                                         sw::MemoryAccount& memory);

}  // namespace train_dlrm
