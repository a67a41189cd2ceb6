// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// What a checkpoint needs to know of an embedding layer, whatever its policies.

namespace shardwise::inline SHARDWISE_ABI {

/// One shard on this rank, and which rows of its table it holds.
struct TableShard {
    ShardView view;
    std::function<std::int64_t(std::int64_t)> row;  ///< (local row) -> row of the table
};

/// The tables of a layer, all ranks alike, and the shards of this rank. Refers to the layer's memory.
struct LayerShards {
    std::vector<TableConfig> tables;
    std::string optimizer;  ///< the rule's name
    int element_slots = 0;
    int row_slots = 0;
    std::vector<TableShard> shards;
};

/// The shards of `layer`, an EmbeddingLayer of any policies. Not collective. Valid as long as the layer.
template <class Layer>
[[nodiscard]] LayerShards shards_of(Layer& layer) {
    using Rule = typename Layer::rule_type;
    LayerShards all{.tables = layer.tables(),
                    .optimizer = Rule::name,
                    .element_slots = Rule::element_slots,
                    .row_slots = Rule::row_slots,
                    .shards = {}};
    layer.for_each_shard([&](const ShardView& view, auto row) { all.shards.push_back({view, std::move(row)}); });
    return all;
}

}  // namespace shardwise::inline SHARDWISE_ABI
