// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "shardwise/checkpoint/checkpoint.hpp"
#include "shardwise/checkpoint/dense_tensors.hpp"
#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/dense/data_parallel.hpp"
#include "shardwise/dense/optimizer.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/embedding/lanes/tower_module.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/topology/groups.hpp"
#include "shardwise/topology/topology.hpp"
#include "shardwise/tower/layer_modules.hpp"

/// \file
/// The modules of all towers as tensors of a checkpoint.

namespace shardwise::inline SHARDWISE_ABI {

/// Copies, on every rank, of the modules of all towers and their moments: each rank trains the module of its own tower
/// alone, and a checkpoint holds what every rank has. `append_to` makes the copies part of a checkpoint; `gather` fills
/// them before one is saved, and `scatter` hands this rank's own over after one was loaded.
///
/// Memory: the modules of all towers, gradients included, and their moments, on every rank, from the first append or
/// gather on; in no account of the layer's.
/// \tparam M          the module of the layer's policy `Tower<M>`
/// \tparam Optimizer  of its parameters
template <class M, DenseOptimizer Optimizer>
class TowerTensors {
  public:
    /// Not collective.
    /// \param layer, training  with the module of this rank's tower, and what trains it; both outlive this
    TowerTensors(const LayerBase& layer, DataParallel<Optimizer, OneTower>& training, CommunicatorRef comm)
        : layer_{&layer}, training_{&training}, comm_{comm} {}

    /// Appends the copies as `append_tensors` does, tower by tower, so that names say which. Not collective. `all`
    /// refers to this.
    void append_to(Checkpoint& all) {
        make_copies();
        for (Copy& copy : copies_)
            append_tensors(all, copy.module.parameters(), copy.state.span(), training_->optimizer().moments());
    }
    /// Fills the copies from what each tower's first rank trains, that of the first replica group. Collective. Each of
    /// these sends the module's parameters and its moments to every other rank: two messages, of 4 bytes an element of
    /// ParameterSet::values() and of state.
    void gather() {
        make_copies();
        copy_mine(training_->parameters().values(), mine().module.parameters().values());
        copy_mine(training_->optimizer().state(), mine().state.span());
        int index = 0;
        for (Copy& copy : copies_) {
            const int first = layer_->groups().rank_of(0, index);
            broadcast(comm_, first, copy.module.parameters().values());
            broadcast(comm_, first, copy.state.span());
            index += layer_->topology().ranks_per_tower();
        }
    }
    /// Makes this rank's copy of its own tower's module what it trains. Not collective. The optimizer's steps are the
    /// program's to restore.
    void scatter() {
        copy_mine(mine().module.parameters().values(), training_->parameters().values());
        copy_mine(mine().state.span(), training_->optimizer().state());
    }

  private:
    /// Of one tower.
    struct Copy {
        Copy(const typename M::Config& config, const TowerShape& shape, std::size_t moments, MemoryAccount& memory)
            : module{config, shape, 0, memory}, state{memory.tables()} {
            state.assign_zero(moments * module.parameters().values().size());
        }
        M module;
        Buffer<float> state;
    };

    static void copy_mine(std::span<const float> from, std::span<float> to) { std::ranges::copy(from, to.begin()); }
    void make_copies() {
        if (!copies_.empty()) return;
        for (const TowerShape& shape : layer_->towers().shapes)
            copies_.emplace_back(layer_->template module_config<M>(), shape, training_->optimizer().moments(), memory_);
        copy_mine(training_->optimizer().state(), mine().state.span());  // a file of weights alone leaves it as it is
    }
    [[nodiscard]] Copy& mine() {
        make_copies();
        return copies_[static_cast<std::size_t>(layer_->topology().tower_of(layer_->groups().index_of(comm_.rank())))];
    }

    const LayerBase* layer_;
    DataParallel<Optimizer, OneTower>* training_;
    CommunicatorRef comm_;
    MemoryAccount memory_;
    std::deque<Copy> copies_;  // (tower), once they were asked for; modules need not be movable
};

}  // namespace shardwise::inline SHARDWISE_ABI
