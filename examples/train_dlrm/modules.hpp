// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "any_module.hpp"
#include "learner.hpp"
#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/traffic.hpp"
#include "shardwise/embedding/layer_base.hpp"

/// \file
/// The modules of a model's towers: each rank has and trains that of its own tower.

namespace train_dlrm {

/// What trains the module of this rank's tower. All but the accessors is collective.
class Modules {
  public:
    /// \param embedding  a layer whose towers have modules; outlives this
    Modules(const AnyModule::Config& config, const std::string& optimizer, sw::LayerBase& embedding,
            sw::CommunicatorRef comm, sw::MemoryAccount& memory);

    /// Adds up gradients inside the tower, then steps.
    void sum() {
        learner_.start();
        learner_.finish();
    }
    void step(double rate) { learner_.step(rate); }
    void set_steps(std::int64_t steps) { learner_.rule().set_steps(steps); }
    /// What the sum of a step moves. A pure function.
    [[nodiscard]] sw::TrafficMatrix predict_reduction() const;

    /// Adds the flops a sample and the parameters of all towers' modules.
    void add_size(std::int64_t& flops, std::int64_t& parameters) const;

    /// Appends the weights and moments of all towers' modules: copies, which `gather` fills and `scatter` takes over.
    void append_tensors(sw::Checkpoint& all);
    void gather();
    void scatter();

  private:
    /// Of one tower, on every rank.
    struct Copy {
        std::unique_ptr<AnyModule> module;
        std::vector<float> state;
    };
    [[nodiscard]] std::size_t mine() const;
    void make_copies();

    AnyModule::Config config_;
    const sw::LayerBase* embedding_;
    sw::CommunicatorRef comm_;
    bool wide_;
    Learner<sw::OneTower> learner_;
    sw::MemoryAccount copied_;
    std::vector<Copy> copies_;  // (tower), once a checkpoint was asked for
};

}  // namespace train_dlrm
