// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "embedding.hpp"
#include "options.hpp"
#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/all_reduce.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/data/batch.hpp"
#include "shardwise/dense/dlrm.hpp"
#include "shardwise/dense/optimizer.hpp"
#include "shardwise/plan/trace.hpp"

/// \file
/// The model on one rank: sharded tables, and dense layers that every rank has a copy of.

namespace train_dlrm {

/// DLRM: the embedding layer and the dense part, with their optimizers. All but the accessors is collective.
class Model {
  public:
    Model(const Options& options, sw::CommunicatorRef comm);

    /// Sends the ids of a batch on their way.
    void start(const sw::ClickBatch& batch) { flights_.push_back(embedding_->start(batch.ids.view())); }
    /// Predicts the batch that was started first. \returns the logits, (samples)
    std::span<const float> forward(const sw::ClickBatch& batch);
    /// Ends the batch that was looked up, without learning.
    void finish() { flights_.pop_front(); }
    /// Ends the batch that was started first: nobody wants to know.
    void drop();
    /// Learns from the batch that was looked up; forward() gave `logits`. \returns the sum of this rank's losses
    double learn(const sw::ClickBatch& batch, std::span<const float> logits, std::int64_t global_samples);

    /// What the sum of dense gradients of a step moves. A pure function.
    [[nodiscard]] sw::TrafficMatrix predict_reduction() const;

    [[nodiscard]] sw::LayerBase& embedding() noexcept { return *embedding_; }
    [[nodiscard]] sw::DlrmDense& dense() noexcept { return dense_; }
    [[nodiscard]] const sw::LayerBase& embedding() const noexcept { return *embedding_; }
    /// What the embedding layer holds, and what the dense part holds.
    [[nodiscard]] const sw::MemoryAccount& embedding_memory() const noexcept { return *embedding_memory_; }
    [[nodiscard]] const sw::MemoryAccount& dense_memory() const noexcept { return *dense_memory_; }
    [[nodiscard]] sw::Tracer& tracer() noexcept { return *tracer_; }
    /// Steps so far.
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    /// Goes on from step `steps`.
    void set_steps(std::int64_t steps);
    /// All weights and moments, as a checkpoint takes them: dense weights under their names, the moments of weight w as
    /// `dense_state/w/<i>`.
    [[nodiscard]] sw::Checkpoint checkpoint();
    /// Seconds of exchanges inside the embedding layer, and of the sum of dense gradients.
    [[nodiscard]] double exchange_seconds() const noexcept;
    [[nodiscard]] double reduction_seconds() const noexcept { return reduction_seconds_; }

  private:
    using DenseRule = std::variant<sw::DenseSgd, sw::DenseAdagrad, sw::DenseAdam>;
    [[nodiscard]] bool wide() const { return dense_.config().precision == sw::DensePrecision::wide; }
    [[nodiscard]] std::size_t moments() const;
    [[nodiscard]] std::uint32_t number() const { return static_cast<std::uint32_t>(steps_ + 1); }
    static DenseRule dense_rule(const Options& options, std::size_t elements, sw::MemoryAccount& memory);
    static sw::DlrmConfig dense_config(const Options& options);

    std::unique_ptr<sw::MemoryAccount> embedding_memory_ = std::make_unique<sw::MemoryAccount>();
    std::unique_ptr<sw::MemoryAccount> dense_memory_ = std::make_unique<sw::MemoryAccount>();
    std::unique_ptr<sw::Tracer> tracer_ = std::make_unique<sw::Tracer>();
    sw::Topology topology_;
    sw::LearningRate learning_rate_;
    sw::DlrmDense dense_;
    DenseRule rule_;
    sw::TreeAllReduce reduce_;
    sw::BasicTreeAllReduce<double> wide_reduce_;  // unless --order tree
    sw::Buffer<float> logit_gradient_;
    std::unique_ptr<sw::LayerBase> embedding_;
    std::deque<sw::LayerFlight> flights_;  // under way, in the order in which they were started
    std::int64_t steps_ = 0;
    double reduction_seconds_ = 0;
};

}  // namespace train_dlrm
