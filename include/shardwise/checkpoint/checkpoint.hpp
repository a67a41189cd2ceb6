// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "shardwise/checkpoint/layer_shards.hpp"
#include "shardwise/core/config.hpp"

/// \file
/// What goes into a checkpoint, without what reads and writes files: checkpoint/layer_checkpoint.hpp.

namespace shardwise::inline SHARDWISE_ABI {

/// A tensor that every rank has a copy of.
struct DenseTensor {
    std::string name;
    std::vector<std::int64_t> shape;
    std::span<float> values;
    bool moment = false;  ///< of an optimizer's state, which a file of weights alone does not have
};

/// What goes into a checkpoint, or comes out of it. Refers to memory of the model.
struct Checkpoint {
    LayerShards layer;
    std::vector<DenseTensor> dense;
    std::map<std::string, std::int64_t> numbers;  ///< by name; `load` fills in the values of the names that stand here
    std::int64_t chunk_bytes = std::int64_t{4} << 20;  ///< of a table that are on their way at once
};

/// What a load has filled in.
enum class Loaded : std::uint8_t {
    everything,  ///< all that was asked for: training goes on where it was
    weights,  ///< the file has weights alone: moments, steps and numbers are as they were before, in a new model fresh
};

}  // namespace shardwise::inline SHARDWISE_ABI
