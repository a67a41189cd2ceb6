// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "dense_part.hpp"
#include "embedding.hpp"
#include "options.hpp"
#include "shardwise/checkpoint/checkpoint.hpp"
#include "shardwise/checkpoint/tower_tensors.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/data/batch.hpp"
#include "shardwise/dense/any_optimizer.hpp"
#include "shardwise/dense/data_parallel.hpp"
#include "shardwise/dense/sample_counts.hpp"
#include "shardwise/plan/trace.hpp"
#include "shardwise/tower/any_module.hpp"

/// \file
/// The model on one rank: sharded tables, and dense layers that every rank has a copy of.

namespace train_dlrm {

/// How large a model is.
struct ModelSize {
    std::int64_t flops = 0;  ///< a sample, forward and backward, of the dense part and all modules
    std::int64_t dense = 0;  ///< parameters
    std::int64_t modules = 0;
    std::int64_t tables = 0;
    double compression = 1;  ///< what the modules are given, over what they let travel on
};

/// Seconds of what the embedding layer does on this rank.
struct LayerSeconds {
    double exchange = 0;  ///< messages are packed, or waited for
    double exposed = 0;   ///< of these, where nothing is computed
    double lookup = 0;    ///< rows are looked up, as messages are packed or results put together
    double sync = 0;      ///< copies are made equal

    LayerSeconds& operator+=(const LayerSeconds& more) noexcept;
    LayerSeconds& operator-=(const LayerSeconds& less) noexcept;
};

/// DLRM, DCN or a sequence model: the embedding layer, its towers' modules and the dense part, with their optimizers.
/// All but the accessors is collective.
class Model {
  public:
    Model(const Options& options, sw::CommunicatorRef comm);

    /// Sends the ids of a batch on their way.
    void start(const sw::ClickBatch& batch, sw::BatchKind kind = sw::BatchKind::any) {
        flights_.push_back(embedding_->start(batch.ids.view(), kind));
    }
    /// Predicts the batch that was started first. \returns the logits, one a label
    std::span<const float> forward(const sw::ClickBatch& batch);
    /// Ends the batch that was looked up, without learning.
    void finish() { flights_.pop_front(); }
    /// Ends the batch that was started first: nobody wants to know.
    void drop();
    /// Learns from the batch that was looked up; forward() gave `logits`. \returns the sum of this rank's losses, where
    /// that of a sample is the mean over its labels
    double learn(const sw::ClickBatch& batch, std::span<const float> logits, const sw::SampleCounts& samples);
    /// Ends the sync of copies that learn() has begun, where there is one.
    void finish_sync() {
        while (embedding_->advance_sync()) {
        }
    }

    /// What the sum of dense gradients of a step moves. A pure function.
    [[nodiscard]] sw::TrafficMatrix predict_reduction() const;

    /// What the embedding layer returned for the batch that was looked up last; valid until learn() or finish().
    [[nodiscard]] sw::MatrixView<const float> vectors() const noexcept { return vectors_; }
    [[nodiscard]] sw::LayerBase& embedding() noexcept { return *embedding_; }
    [[nodiscard]] const sw::LayerBase& embedding() const noexcept { return *embedding_; }
    /// What the embedding layer holds, and what the dense part holds.
    [[nodiscard]] const sw::MemoryAccount& embedding_memory() const noexcept { return *embedding_memory_; }
    [[nodiscard]] const sw::MemoryAccount& dense_memory() const noexcept { return *dense_memory_; }
    /// The payload of all messages that the embedding layer has handed to the communicator on this rank, in bytes,
    /// but those of syncs.
    [[nodiscard]] std::int64_t embedding_payload() const;
    [[nodiscard]] sw::Tracer& tracer() noexcept { return *tracer_; }
    [[nodiscard]] ModelSize size() const;
    /// Steps so far.
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    /// Goes on from step `steps`.
    void set_steps(std::int64_t steps);
    /// All weights and moments, as a checkpoint takes them: dense weights under their names, the moments of weight w as
    /// `dense_state/w/<i>`.
    [[nodiscard]] sw::Checkpoint checkpoint();
    /// Before a checkpoint is saved, and after it is loaded: each rank has the module of its own tower alone.
    void gather_modules() {
        if (module_tensors_) module_tensors_->gather();
    }
    void scatter_modules() {
        if (module_tensors_) module_tensors_->scatter();
    }
    [[nodiscard]] LayerSeconds layer_seconds() const noexcept;
    /// Seconds of the sum of dense gradients.
    [[nodiscard]] double reduction_seconds() const noexcept { return reduction_seconds_; }

  private:
    [[nodiscard]] std::uint32_t number() const { return static_cast<std::uint32_t>(steps_ + 1); }

    /// What the embedding layer sends, apart from what else the model does.
    struct LayerMessages {
        explicit LayerMessages(sw::CommunicatorRef comm) : below{comm}, counted{below} {}
        LayerMessages(const LayerMessages&) = delete;
        LayerMessages& operator=(const LayerMessages&) = delete;
        ~LayerMessages() = default;

        sw::CommunicatorRef below;
        sw::CountingCommunicator<sw::CommunicatorRef> counted;
    };

    std::unique_ptr<LayerMessages> messages_;
    std::unique_ptr<sw::MemoryAccount> embedding_memory_ = std::make_unique<sw::MemoryAccount>();
    std::unique_ptr<sw::MemoryAccount> dense_memory_ = std::make_unique<sw::MemoryAccount>();
    std::unique_ptr<sw::Tracer> tracer_ = std::make_unique<sw::Tracer>();
    sw::LearningRate learning_rate_;
    std::unique_ptr<sw::LayerBase> embedding_;
    std::unique_ptr<DensePart> dense_;
    std::int64_t labels_a_sample_;
    sw::DataParallel<sw::AnyDenseOptimizer> training_;
    std::optional<sw::DataParallel<sw::AnyDenseOptimizer, sw::OneTower>> module_training_;
    std::optional<sw::TowerTensors<sw::AnyModule, sw::AnyDenseOptimizer>> module_tensors_;
    sw::Buffer<float> logit_gradient_;
    std::deque<sw::LayerFlight> flights_;  // under way, in the order in which they were started
    sw::MatrixView<const float> vectors_;
    std::int64_t steps_ = 0;
    bool sync_overlap_;
    double reduction_seconds_ = 0;
};

}  // namespace train_dlrm
