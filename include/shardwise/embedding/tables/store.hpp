// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/tables/held_shards.hpp"
#include "shardwise/embedding/tables/initial_values.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// The rows that a rank holds: weights, and the optimizer's state beside them. And how many bytes that takes.

namespace shardwise::inline SHARDWISE_ABI {

/// One shard of a table on a rank that holds it.
struct ShardStore {
    int table = 0;  ///< number in the placement
    int shard = 0;
    std::int64_t rows = 0;
    int dim = 0;                  ///< columns of this shard
    Buffer<float> weights;        ///< (rows, dim)
    Buffer<float> element_state;  ///< (rows, element slots, dim)
    Buffer<float> row_state;      ///< (rows, row slots)
};

/// The shards of one placement that live on one rank, by slot.
class Store {
  public:
    static constexpr const char* state_name = "Store";
    static constexpr bool trained = true;
    static constexpr bool looked_up = true;

    /// Allocates weights, uninitialised, and `element_slots` and `row_slots` floats of zero state.
    Store(const HeldShards& held, int element_slots, int row_slots, std::pmr::memory_resource& weights,
          std::pmr::memory_resource& moments);

    [[nodiscard]] std::vector<ShardStore>& shards() noexcept { return shards_; }
    [[nodiscard]] const std::vector<ShardStore>& shards() const noexcept { return shards_; }
    [[nodiscard]] int element_slots() const noexcept { return element_slots_; }
    [[nodiscard]] int row_slots() const noexcept { return row_slots_; }

  private:
    int element_slots_;
    int row_slots_;
    std::vector<ShardStore> shards_;
};

/// Fills the weights of every shard. \param laws  (table of the layer)
void initialize(Store& store, const Placement& placement, std::uint64_t seed, std::span<const InitialValues> laws);

/// The bytes that the shards of a placement take on one rank, with an optimizer of `element_slots` floats an element
/// and `row_slots` a row. A pure function; a layer's MemoryAccount counts as much.
[[nodiscard]] std::int64_t static_bytes(const Placement& placement, int rank, int element_slots, int row_slots);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/tables/store.ipp"
#endif
