// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardwise/checkpoint/checkpoint.hpp"
#include "shardwise/checkpoint/layer_shards.hpp"
#include "shardwise/core/config.hpp"

/// \file
/// A checkpoint's values as they are now, for whoever writes them while training goes on.

namespace shardwise::inline SHARDWISE_ABI {

/// A copy of what this rank saves of a checkpoint. Not collective. Memory and time: those of a copy.
class Snapshot {
  public:
    /// Bytes that a copy would take on this rank. \param first  whether it is rank 0, which saves dense tensors
    [[nodiscard]] static std::int64_t bytes_of(const Checkpoint& checkpoint, bool first) {
        std::int64_t floats = 0;
        for (const TableShard& shard : checkpoint.layer.shards)
            if (shard.view.copy == 0) floats += floats_of(checkpoint.layer, shard.view);
        for (const DenseTensor& tensor : checkpoint.dense)
            floats += first ? static_cast<std::int64_t>(tensor.values.size()) : 0;
        return floats * static_cast<std::int64_t>(sizeof(float));
    }
    Snapshot(const Checkpoint& from, bool first)
        : copy_{.layer = from.layer, .dense = {}, .numbers = from.numbers, .chunk_bytes = from.chunk_bytes} {
        if (from.layer.layer != nullptr) steps_ = from.layer.layer->steps();
        copy_.layer.layer = nullptr;
        std::erase_if(copy_.layer.shards, [](const TableShard& shard) { return shard.view.copy != 0; });
        for (TableShard& shard : copy_.layer.shards) {
            ShardView& view = shard.view;
            const std::int64_t weights = view.rows * view.dim;
            view.weights = keep(view.weights, weights);
            view.element_state = keep(view.element_state, weights * from.layer.element_slots);
            view.row_state = keep(view.row_state, view.rows * from.layer.row_slots);
        }
        for (const DenseTensor& tensor : from.dense) {
            if (!first) break;
            const auto size = tensor.values.size();
            copy_.dense.push_back(
                {tensor.name, tensor.shape, {keep(tensor.values.data(), std::ssize(tensor.values)), size}});
        }
    }
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;

    [[nodiscard]] const Checkpoint& checkpoint() const noexcept { return copy_; }
    /// Of the layer, where there was one.
    [[nodiscard]] std::optional<std::int64_t> steps() const noexcept { return steps_; }

  private:
    [[nodiscard]] static std::int64_t floats_of(const LayerShards& layer, const ShardView& view) {
        return view.rows * (std::int64_t{view.dim} * (1 + layer.element_slots) + layer.row_slots);
    }
    [[nodiscard]] float* keep(const float* values, std::int64_t count) {
        if (count == 0) return nullptr;
        return kept_.emplace_back(values, values + count).data();
    }

    Checkpoint copy_;
    std::optional<std::int64_t> steps_;
    std::deque<std::vector<float>> kept_;
};

/// Bytes of memory that this machine could still give, as Linux estimates; nothing where it does not say.
[[nodiscard]] inline std::optional<std::int64_t> available_memory() {
    std::ifstream about{"/proc/meminfo"};
    std::string word;
    while (about >> word)
        if (std::int64_t kilobytes = 0; word == "MemAvailable:" && about >> kilobytes) return kilobytes * 1024;
    return std::nullopt;
}

}  // namespace shardwise::inline SHARDWISE_ABI
