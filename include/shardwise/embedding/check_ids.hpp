// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/embedding/batch_view.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// Ids that are no rows, and weights that are no numbers.

namespace shardwise::inline SHARDWISE_ABI {

/// The first id or weight of a feature that is wrong, in words; empty when there is none.
[[nodiscard]] inline std::string first_wrong_id(const BatchView& batch, const FeaturePlacement& feature,
                                                const TablePlacement& table) {
    const std::int64_t first = batch.first_value(feature.feature);
    const std::int64_t ids = batch.values(feature.feature);
    const auto bad_id = [&](std::int64_t i) { return batch.id(first + i) < 0 || batch.id(first + i) >= table.rows; };
    std::int64_t i = 0;
    while (i < ids && !bad_id(i) && std::isfinite(batch.weight(first + i)))
        ++i;
    if (i == ids) return {};
    std::int64_t sample = 0;
    for (std::int64_t end = batch.length(feature.feature, 0); end <= i;)
        end += batch.length(feature.feature, ++sample);
    const std::string where = "feature '" + feature.name + "', sample " + std::to_string(sample) + ": ";
    const std::string id = std::to_string(batch.id(first + i));
    if (bad_id(i))
        return where + "id " + id + " is not a row of table '" + table.name + "'; its rows are 0 to " +
               std::to_string(table.rows - 1);
    return where + "the weight of id " + id + " is " + std::to_string(batch.weight(first + i)) +
           ", not a finite number";
}

inline constexpr const char* weights_of_a_sequence =
    "per-sample weights with Pooling<None>: a sequence has nothing to weigh; give no weights";

/// Checks every id and weight of a batch. \throws BadInput naming the first that is wrong
inline void check_ids(const std::vector<Placement>& placements, const BatchView& batch, bool pooled) {
    if (!pooled && batch.weighted()) throw BadInput{weights_of_a_sequence};
    for (const Placement& placement : placements) {
        for (const FeaturePlacement& feature : placement.features) {
            const std::string wrong =
                first_wrong_id(batch, feature, placement.tables[static_cast<std::size_t>(feature.table)]);
            if (!wrong.empty()) throw BadInput{wrong};
        }
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
