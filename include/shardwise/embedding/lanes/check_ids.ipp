// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstdint>

#include "shardwise/core/at.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/check_ids.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

/// "feature 'f', sample 3: " of the feature's i-th id.
SHARDWISE_INLINE std::string where_is(const BatchView& batch, int number, const std::string& feature, std::int64_t i) {
    std::int64_t sample = 0;
    for (std::int64_t end = batch.length(number, 0); end <= i;)
        end += batch.length(number, ++sample);
    return concat({"feature '", feature, "', sample ", sample, ": "});
}

}  // namespace detail

SHARDWISE_INLINE std::string first_wrong_id(const BatchView& batch, int number, const std::string& feature,
                                            const std::string& table, std::int64_t rows) {
    const std::int64_t first = batch.first_value(number);
    const std::int64_t ids = batch.values(number);
    bool good = false;
    batch.with_ids(number, [&](auto values) { good = are_rows(values, rows); });
    for (std::int64_t i = 0; batch.weighted() && i < ids; ++i)
        good &= std::isfinite(batch.weight(first + i));
    if (good) return {};
    const auto bad_id = [&](std::int64_t i) { return batch.id(first + i) < 0 || batch.id(first + i) >= rows; };
    std::int64_t i = 0;
    while (i < ids && !bad_id(i) && std::isfinite(batch.weight(first + i)))
        ++i;
    const std::string where = detail::where_is(batch, number, feature, i);
    const std::string id = std::to_string(batch.id(first + i));
    if (bad_id(i))
        return concat({where, "id ", id, " is not a row of table '", table, "'; its rows are 0 to ", rows - 1});
    return concat({where, "the weight of id ", id, " is ", batch.weight(first + i), ", not a finite number"});
}

SHARDWISE_INLINE std::string first_weighed_id(const BatchView& batch, int number, const std::string& feature) {
    const std::int64_t first = batch.first_value(number);
    for (std::int64_t i = 0; i < batch.values(number); ++i)
        if (batch.weight(first + i) != 1.0F)
            return concat({detail::where_is(batch, number, feature, i), "the weight of id ", batch.id(first + i),
                           " is ", batch.weight(first + i),
                           ": a sequence has nothing to weigh; give its ids the weight 1"});
    return {};
}

SHARDWISE_INLINE std::string first_wrong_request(const BatchView& batch, const CoalescedTables& tables) {
    if (batch.weighted() && !tables.some_pooled) return weights_of_a_sequence;
    for (const CoalescedTables::Table& table : tables.tables)
        for (int f = table.first; f < table.end; ++f) {
            const CoalescedTables::Feature& feature = at(tables.features, f);
            std::string wrong;
            if (batch.weighted() && !feature.pooled) wrong = first_weighed_id(batch, f, feature.name);
            if (wrong.empty()) wrong = first_wrong_id(batch, f, feature.name, table.name, table.rows);
            if (!wrong.empty()) return wrong;
        }
    return {};
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
