// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/check_ids.hpp"
#include "shardwise/planning/cached_samples.hpp"
#include "shardwise/planning/coverage.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE CachedSamples::CachedSamples(const AccessProfile& profile, std::vector<TableConfig> tables,
                                              std::int64_t rows, int parts)
    : tables_{std::move(tables)}, part_of_(tables_.size()) {
    require_tables(profile, tables_);
    if (rows < 1) throw BadInput{concat({"a cache of ", rows, " rows: give at least 1"})};
    if (parts < 1 || parts > rows)
        throw BadInput{concat({parts, " parts of a cache of ", rows, " rows: give 1 to as many as there are rows"})};
    const std::vector<TableRow> hottest = hottest_rows(profile, rows);
    if (std::ssize(hottest) < rows)
        throw BadInput{
            concat({"a cache of ", rows, " rows: the profile saw ", hottest.size(), "; give at most so many"})};
    for (std::size_t i = 0; i < hottest.size(); ++i)
        at(part_of_, hottest[i].table)[hottest[i].row] =
            static_cast<int>(i * static_cast<std::size_t>(parts) / hottest.size());
    touching_.resize(static_cast<std::size_t>(parts));
    for (std::size_t t = 0; t < tables_.size(); ++t)
        for (std::string& feature : features_of(tables_[t])) {
            features_.push_back(std::move(feature));
            table_of_.push_back(t);
        }
}

SHARDWISE_INLINE void CachedSamples::count(std::int64_t first, std::int64_t last) {
    if (first < 0 || first > last || last > batch_.samples())
        throw BadInput{concat({"samples [", first, ", ", last, ") of a batch of ", batch_.samples()})};
    positions_.clear();
    for (std::size_t f = 0; f < features_.size(); ++f) {
        const int number = static_cast<int>(f);
        const TableConfig& table = tables_[table_of_[f]];
        const std::string wrong = steps::first_wrong_id(batch_, number, features_[f], table.name, table.rows);
        if (!wrong.empty()) throw BadInput{wrong};
        positions_.push_back(batch_.first_value(number));
        for (std::int64_t s = 0; s != first; ++s)
            positions_.back() += batch_.length(number, s);
    }
    std::vector<bool> touched(touching_.size());
    for (std::int64_t s = first; s != last; ++s) {
        bool hot = true;
        touched.assign(touching_.size(), false);
        for (std::size_t f = 0; f < features_.size(); ++f) {
            const auto& parts = part_of_[table_of_[f]];
            for (std::int64_t left = batch_.length(static_cast<int>(f), s); left != 0; --left) {
                const auto found = parts.find(batch_.id(positions_[f]++));
                if (found == parts.end())
                    hot = false;
                else
                    touched[static_cast<std::size_t>(found->second)] = true;
            }
        }
        hot_ += hot ? 1 : 0;
        for (std::size_t part = 0; part < touched.size(); ++part)
            touching_[part] += touched[part] ? 1 : 0;
    }
    samples_ += last - first;
}

}  // namespace shardwise::inline SHARDWISE_ABI
