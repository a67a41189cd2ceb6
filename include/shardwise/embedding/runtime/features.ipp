// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <limits>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/runtime/features.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// How the features of one table are pooled. \throws BadInput for a word that is no pooling, or where none is asked for
SHARDWISE_INLINE Pools pools_of(const TableConfig& table, Pools layer) {
    if (layer != Pools::by_table) {
        if (!table.pooling.empty())
            throw BadInput{concat({"table '", table.name, "' asks for pooling '", table.pooling, "'; this layer has ",
                                   name_of(layer), " alone: leave it empty, or use Pooling<ByTable>"})};
        return layer;
    }
    for (const Pools pools : {Pools::sum, Pools::mean, Pools::none})
        if (table.pooling == name_of(pools)) return pools;
    throw BadInput{concat({"table '", table.name, "' asks for pooling '", table.pooling, "': give sum, mean or none"})};
}

}  // namespace detail

SHARDWISE_INLINE LayerFeatures::LayerFeatures(const std::vector<TableConfig>& tables, Pools pools) {
    for (std::size_t t = 0; t < tables.size(); ++t) {
        const TableConfig& table = tables[t];
        if (table.name.empty()) throw BadInput{concat({"table ", t, " has no name: give every table one"})};
        for (std::size_t other = 0; other < t; ++other)
            if (tables[other].name == table.name)
                throw BadInput{concat({"table '", table.name, "' stands twice: give every table one name"})};
        const Pools own = detail::pools_of(table, pools);
        for (const std::string& feature : features_of(table)) {
            if (std::find(names.begin(), names.end(), feature) != names.end())
                throw BadInput{
                    concat({"feature '", feature, "' stands twice in the tables: give every feature one name"})};
            names.push_back(feature);
            const bool pooled = own != Pools::none;
            results.push_back(
                {.dim = table.dim, .pooled = pooled, .mean = own == Pools::mean, .column = pooled ? width : sequences});
            dims.push_back(table.dim);
            if (!pooled) {
                ++sequences;
                continue;
            }
            const std::int64_t columns = std::int64_t{width} + table.dim;
            if (columns > std::numeric_limits<int>::max())
                throw BadInput{concat({"the features up to '", feature, "' have ", columns,
                                       " columns together, and a layer's results have at most ",
                                       std::numeric_limits<int>::max(), ": give smaller dimensions"})};
            width = static_cast<int>(columns);
        }
    }
}

SHARDWISE_INLINE void LayerFeatures::become_towers(const std::vector<int>& outputs) {
    of_towers = true;
    results.clear();
    width = 0;
    for (const int columns : outputs) {
        results.push_back({.dim = columns, .pooled = true, .mean = false, .column = width});
        width += columns;
    }
    dims = outputs;
}

}  // namespace shardwise::inline SHARDWISE_ABI
