// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "shardwise/comm/one_sided_ref.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/runtime/layer_bound.hpp"
#include "shardwise/embedding/runtime/layer_groups.hpp"
#include "shardwise/embedding/tables/table_settings.hpp"
#include "shardwise/optimizer/learning_rate.hpp"
#include "shardwise/plan/trace.hpp"
#include "shardwise/sharding/row_plan.hpp"
#include "shardwise/sharding/shard_map.hpp"
#include "shardwise/sharding/towers.hpp"

/// \file
/// What a layer is made with, beside tables and policies, and what it shows of its shards.

namespace shardwise::inline SHARDWISE_ABI {

/// A shard of a table on this rank, as checkpoints and tests see it.
struct ShardView {
    int table = 0;  ///< number in the layer
    std::int64_t rows = 0;
    int first_column = 0;
    int dim = 0;                     ///< columns of the shard
    int copy = 0;                    ///< which of the table's copies it is part of
    int copies = 1;                  ///< how many there are
    float* weights = nullptr;        ///< (rows, dim)
    float* element_state = nullptr;  ///< (rows, element slots, dim)
    float* row_state = nullptr;      ///< (rows, row slots)
};

/// Which rows of its table a shard has: rows(local) is the table's row in the shard's row `local`.
class ShardRowNumbers {
  public:
    ShardRowNumbers(std::shared_ptr<const ShardMap> map, int shard) : map_{std::move(map)}, shard_{shard} {}
    [[nodiscard]] std::int64_t operator()(std::int64_t local) const {
        return map_->row({.shard = shard_, .local = local});
    }

  private:
    std::shared_ptr<const ShardMap> map_;
    int shard_;
};

/// Run-time choices of a layer, besides its tables and the constants of its optimizer.
struct LayerOptions {
    LearningRate learning_rate = {};  ///< by step
    std::uint64_t seed = 1;           ///< of the initial weights
    /// How tables begin and learn, by the table's name; "*" is all tables that are not named.
    SettingsByTable by_table = {};
    /// Above 0: gradients are multiplied by clip_norm / (n + 1e-6) where their norm n, of all tables' rows over all
    /// ranks and of what LayerBase::clip_with was told, is greater (torch.nn.utils.clip_grad_norm_). One message a peer
    /// more.
    float clip_norm = 0.0F;
    /// Whether backward looks at every number of the gradient first: one that is no finite number is bad input.
    bool check_gradients = true;
    /// Which tables are placed together, each tower on its part of the hosts. None given: on all hosts, but with
    /// Collective<Hierarchical> in the communicator's towers, one a host unless it says otherwise, as deal_tables says
    /// (shardings by load, such as Col<4>, without a module: blocks of a table in whichever towers have least to do).
    Towers towers = {};
    GroupOptions groups = {};       ///< of ranks that each hold every table (docs/groups.md); one of all ranks
    const RowPlan* rows = nullptr;  ///< with Tiered<>: read while the layer is made; null: all rows in the last tier
    /// Bytes of weights and moments that a rank may hold of the tables that a policy places by load, such as Col<4>;
    /// 0: enough. Blocks go where there is room.
    std::int64_t room = 0;
    BoundOptions bound = {};                ///< with Collective<BoundedLag<>>: how far ranks may be apart
    std::optional<OneSidedRef> slots = {};  ///< with BoundedLag: what messages travel over; outlives the layer
    MemoryAccount* memory = nullptr;        ///< counts every buffer of the layer; null: an account of the layer's own
    Tracer* tracer = nullptr;               ///< takes spans of all steps, for write_chrome_trace(); null: none
};

}  // namespace shardwise::inline SHARDWISE_ABI
