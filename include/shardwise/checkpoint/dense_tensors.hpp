// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwise/checkpoint/checkpoint.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/dense/data_parallel.hpp"
#include "shardwise/dense/optimizer.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Dense parameters, and the state of what trains them, as tensors of a checkpoint.

namespace shardwise::inline SHARDWISE_ABI {

/// Appends the parameters of a set under their names, and moment i of parameter w as `dense_state/<w>/<i>`, each of the
/// parameter's shape. Not collective. Copies nothing: `all` refers to the set and the state, to save or to load them.
/// \param parameters  allocated, equal on all ranks
/// \param state       (moments, parameters.values().size()), DenseOptimizer::state()
/// \param moments     DenseOptimizer::moments()
inline void append_tensors(Checkpoint& all, ParameterSet& parameters, std::span<float> state, std::size_t moments) {
    const std::span<float> values = parameters.values();
    for (const Parameter& parameter : parameters) {
        const std::vector<std::int64_t> shape{parameter.rows, parameter.columns};
        all.dense.push_back({parameter.name, shape, parameter.values()});
        const auto first = static_cast<std::size_t>(parameter.values().data() - values.data());
        for (std::size_t i = 0; i < moments; ++i)
            all.dense.push_back({.name = "dense_state/" + parameter.name + "/" + std::to_string(i),
                                 .shape = shape,
                                 .values = state.subspan(i * values.size() + first, parameter.size()),
                                 .moment = true});
    }
}

/// The same of parameters that all ranks train together. Its optimizer's steps are the program's to restore.
template <DenseOptimizer Optimizer>
void append_tensors(Checkpoint& all, DataParallel<Optimizer, World>& training) {
    append_tensors(all, training.parameters(), training.optimizer().state(), training.optimizer().moments());
}

}  // namespace shardwise::inline SHARDWISE_ABI
