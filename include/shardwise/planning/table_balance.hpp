// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/embedding/lanes/workload.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// How evenly tables are placed by load: loads from what is looked up, and how far a placement is from the best one.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Counts of ids by feature.
class FeatureIds {
  public:
    explicit FeatureIds(const std::vector<TableConfig>& tables);
    /// \param keys  a batch's names of features, if it has any
    void add(std::int64_t feature, std::int64_t features, std::span<const std::string> keys, std::int64_t ids,
             std::int64_t bags);
    void set_loads(std::vector<TableConfig>& tables) const;

  private:
    struct Feature {
        std::string name;
        std::size_t table = 0;
        double ids = 0;
        double bags = 0;
    };
    std::vector<Feature> features_;
};

}  // namespace detail

/// Sets the tables' loads to what a workload says: ids a bag, in the mean over a table's features. What is never looked
/// up gets the least positive load.
/// \throws BadInput for a workload of other tables
void set_loads(std::vector<TableConfig>& tables, const Workload& workload);

/// The same, counted in batches. \throws BadInput for batches of other features, and with parts that do not fit
/// together
template <class Id>
void set_loads(std::vector<TableConfig>& tables, std::span<const JaggedView<Id>> batches) {
    detail::FeatureIds counted{tables};
    for (const JaggedView<Id>& batch : batches) {
        batch.validate();
        for (std::int64_t f = 0; f < batch.features; ++f) {
            std::int64_t ids = 0;
            for (std::int64_t i = 0; i < batch.samples; ++i)
                ids += batch.length(f * batch.samples + i);
            counted.add(f, batch.features, batch.keys, ids, batch.samples);
        }
    }
    counted.set_loads(tables);
}

/// A block of a table, as a policy that places by load sees it.
struct LoadedBlock {
    double load = 0;
    double bytes = 0;
    int table = 0;  ///< a rank has at most one block of a table
};

/// The blocks of a placement, and the ranks that have them.
struct PlacedBlocks {
    std::vector<LoadedBlock> blocks;
    std::vector<int> owners;  ///< (block)
    int ranks = 1;
};
/// Of a placement of tables: loads are columns times ids. \param tables  of the layer
[[nodiscard]] PlacedBlocks blocks_of(const Placement& placement, const std::vector<TableConfig>& tables);

/// The most that a rank has to do, over the mean. 1 where there is nothing to do.
[[nodiscard]] double imbalance_of(const PlacedBlocks& placed);

/// The placement whose most loaded rank has least, by branch and bound; of the same blocks.
/// \param room  bytes that a rank has; 0: enough
/// \param most_tries  partial placements that are looked at; nothing is returned when these do not tell
[[nodiscard]] std::optional<PlacedBlocks> best_placement(const PlacedBlocks& placed, double room = 0,
                                                         std::int64_t most_tries = 2'000'000);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/table_balance.ipp"
#endif
