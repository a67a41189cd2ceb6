// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// What a checkpoint needs to know of an embedding layer, whatever its policies.

namespace shardwise::inline SHARDWISE_ABI {

/// One shard on this rank, and which rows of its table it holds.
struct TableShard {
    ShardView view;
    ShardRowNumbers row;  ///< (local row) -> row of the table
};

/// The tables of a layer, all ranks alike, and the shards of this rank. Refers to the layer's memory, which is to be
/// read when no sync of copies is under way.
struct LayerShards {
    std::vector<TableConfig> tables;
    std::string optimizer;  ///< the rule's name
    int element_slots = 0;
    int row_slots = 0;
    bool learns = true;  ///< else weights are all that is asked of a checkpoint, whatever the optimizer that wrote it
    std::vector<TableShard> shards;
    LayerBase* layer = nullptr;  ///< whose training steps belong to the checkpoint; null: none do
};

/// The shards of `layer`. Not collective. Valid as long as the layer.
[[nodiscard]] inline LayerShards shards_of(LayerBase& layer) {
    LayerShards all{.tables = layer.tables(),
                    .optimizer = layer.optimizer(),
                    .element_slots = layer.element_slots(),
                    .row_slots = layer.row_slots(),
                    .learns = layer.learns(),
                    .shards = {},
                    .layer = &layer};
    layer.visit_shards([&](const ShardView& view, const ShardRowNumbers& rows) { all.shards.push_back({view, rows}); });
    return all;
}

}  // namespace shardwise::inline SHARDWISE_ABI
