// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// Tables cut into equally wide blocks of columns before they are placed: so tables of several dimensions enter the
/// tower partitioner, and there can be more towers than tables (Disaggregated Multi-Tower, section 5.2).

namespace shardwise::inline SHARDWISE_ABI {

/// Tables of one width, and where they come from. The blocks of a table follow each other: with one feature a table, a
/// row of a layer's result is what it would be without cuts.
struct ColumnChunks {
    int width = 0;
    std::vector<TableConfig> tables;  ///< "C1[16]" is what begins with column 16 of "C1"
    std::vector<int> feature_of;      ///< (feature of `tables`): the feature of the tables that were cut
};

/// Cuts tables into blocks of `width` columns; 0: as wide as fits all of them, the greatest common divisor.
/// \throws BadInput when the width is negative, or does not divide a table's dimension
[[nodiscard]] inline ColumnChunks cut_columns(const std::vector<TableConfig>& tables, int width = 0) {
    ColumnChunks chunks{.width = width, .tables = {}, .feature_of = {}};
    if (width == 0)
        for (const TableConfig& table : tables)
            chunks.width = std::gcd(chunks.width, table.dim);
    int first_feature = 0;
    for (const TableConfig& table : tables) {
        if (table.dim < 1 || chunks.width < 1 || table.dim % chunks.width != 0)
            throw BadInput{concat({"table '", table.name, "' of dimension ", table.dim, " does not cut into blocks of ",
                                   chunks.width, " columns: give a width that divides all dimensions, or 0"})};
        const std::vector<std::string> features = features_of(table);
        for (int column = 0; column < table.dim; column += chunks.width) {
            const std::string mark = "[" + std::to_string(column) + "]";
            TableConfig chunk = table;
            chunk.name += mark;
            chunk.dim = chunks.width;
            chunk.features.clear();
            for (std::size_t f = 0; f < features.size(); ++f) {
                chunk.features.push_back(features[f] + mark);
                chunks.feature_of.push_back(first_feature + static_cast<int>(f));
            }
            chunks.tables.push_back(std::move(chunk));
        }
        first_feature += static_cast<int>(features.size());
    }
    return chunks;
}

/// The batch for the tables that `chunks` has: the ids of each feature once a block.
/// \param batch  for the tables that were cut, its features in their order
/// \throws BadInput when it makes no sense, has keys, or another number of features
template <class Id>
[[nodiscard]] JaggedBatch<Id> repeat_ids(const JaggedView<Id>& batch, const ColumnChunks& chunks) {
    const std::int64_t known = chunks.feature_of.empty() ? 0 : chunks.feature_of.back() + std::int64_t{1};
    if (batch.features != known)
        throw BadInput{concat({"a batch of ", batch.features, " features for tables of ", known,
                               ": give the batch of the tables that were cut"})};
    if (!batch.keys.empty())
        throw BadInput{"a batch with keys: put its features into the order of the tables, and leave the keys out"};
    batch.validate();
    std::vector<std::size_t> begin{0};  // (feature): of its ids
    for (std::int64_t f = 0; f < batch.features; ++f) {
        std::size_t ids = 0;
        for (std::int64_t s = 0; s < batch.samples; ++s)
            ids += static_cast<std::size_t>(batch.length(f * batch.samples + s));
        begin.push_back(begin.back() + ids);
    }
    JaggedBatch<Id> repeated;
    repeated.samples = batch.samples;
    repeated.features = static_cast<std::int64_t>(chunks.feature_of.size());
    for (const int f : chunks.feature_of) {
        const std::size_t first = begin[static_cast<std::size_t>(f)];
        const std::size_t count = begin[static_cast<std::size_t>(f) + 1] - first;
        const auto values = batch.values.subspan(first, count);
        repeated.values.insert(repeated.values.end(), values.begin(), values.end());
        if (!batch.single())
            for (std::int64_t s = 0; s < batch.samples; ++s)
                repeated.lengths.push_back(static_cast<std::int32_t>(batch.length(f * batch.samples + s)));
        if (batch.weights.empty()) continue;
        const auto weights = batch.weights.subspan(first, count);
        repeated.weights.insert(repeated.weights.end(), weights.begin(), weights.end());
    }
    return repeated;
}

}  // namespace shardwise::inline SHARDWISE_ABI
