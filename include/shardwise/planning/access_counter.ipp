// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <utility>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/check_ids.hpp"
#include "shardwise/planning/access_counter.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE AccessCounter::AccessCounter(std::vector<TableConfig> tables, CountingOptions options)
    : tables_{std::move(tables)} {
    for (std::size_t t = 0; t != tables_.size(); ++t) {
        const TableConfig& table = tables_[t];
        if (table.name.empty()) throw BadInput{concat({"table ", t, " has no name: give every table one"})};
        if (table.rows < 1)
            throw BadInput{concat({"table '", table.name, "' has ", table.rows, " rows: give it at least one"})};
        for (std::size_t other = 0; other != t; ++other)
            if (tables_[other].name == table.name)
                throw BadInput{concat({"table '", table.name, "' stands twice: give every table one name"})};
        for (std::string& feature : features_of(table)) {
            if (std::find(features_.begin(), features_.end(), feature) != features_.end())
                throw BadInput{
                    concat({"feature '", feature, "' stands twice in the tables: give every feature one name"})};
            features_.push_back(std::move(feature));
        }
        counters_.emplace_back(options.counters);
    }
}

SHARDWISE_INLINE void AccessCounter::check(std::int64_t first, std::int64_t last) const {
    if (first < 0 || first > last || last > batch_.samples())
        throw BadInput{concat({"samples [", first, ", ", last, ") of a batch of ", batch_.samples()})};
    int number = 0;
    for (const TableConfig& table : tables_)
        for (const std::string& name : features_of(table)) {
            const std::string wrong = steps::first_wrong_id(batch_, number++, name, table.name, table.rows);
            if (!wrong.empty()) throw BadInput{wrong};
        }
}

SHARDWISE_INLINE void AccessCounter::count(std::int64_t first, std::int64_t last) {
    check(first, last);
    int begin = 0;  // the table's first feature
    for (std::size_t t = 0; t != tables_.size(); ++t) {
        RowCounter& counter = counters_[t];
        const int end = begin + static_cast<int>(features_of(tables_[t]).size());
        positions_.clear();
        for (int f = begin; f != end; ++f) {
            positions_.push_back(batch_.first_value(f));
            for (std::int64_t s = 0; s != first; ++s)
                positions_.back() += batch_.length(f, s);
        }
        for (std::int64_t s = first; s != last; ++s)
            for (int f = begin; f != end; ++f) {
                std::int64_t& position = positions_[static_cast<std::size_t>(f - begin)];
                for (std::int64_t left = batch_.length(f, s); left != 0; --left)
                    counter.count(batch_.id(position++), samples_ + s - first);
            }
        begin = end;
    }
    samples_ += last - first;
}

SHARDWISE_INLINE AccessProfile AccessCounter::profile() const {
    AccessProfile profile{.samples = samples_};
    for (std::size_t t = 0; t != tables_.size(); ++t)
        profile.tables.push_back({.name = tables_[t].name,
                                  .rows = tables_[t].rows,
                                  .lookups = counters_[t].lookups(),
                                  .error = counters_[t].error(),
                                  .seen = counters_[t].seen()});
    return profile;
}

}  // namespace shardwise::inline SHARDWISE_ABI
