// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/workloads.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// The rows of a table that are in use, as runs of equal counts, the most first.
struct CountedRows {
    std::vector<RowUse> runs;       ///< those that are not listed are the last, where they are in use
    std::vector<RowAccess> listed;  ///< in the order of the runs
    bool others = false;            ///< the last run is of rows that are not listed
};

SHARDWISE_INLINE CountedRows counted_rows(const TableAccess& table, std::int64_t samples) {
    CountedRows counted;
    if (table.lookups == 0) return counted;
    if (samples < 1)
        throw BadInput{concat({"table '", table.name, "': ", table.lookups, " look-ups of ", samples, " samples"})};
    std::int64_t rest = table.lookups;
    for (const RowAccess& row : table.seen)
        rest -= row.lookups;
    const double more = rest == 0 ? 0.0 : static_cast<double>(rest) / static_cast<double>(table.rows);
    const auto a_sample = [&](std::int64_t count) {
        return (static_cast<double>(count) + more) / static_cast<double>(samples);
    };
    counted.listed = table.seen;
    const auto counts = [](const RowAccess& row) { return std::tuple{-row.lookups, -row.samples, row.row}; };
    std::sort(counted.listed.begin(), counted.listed.end(),
              [&](const auto& a, const auto& b) { return counts(a) < counts(b); });
    const RowAccess* last = nullptr;
    for (const RowAccess& row : counted.listed) {
        if (last == nullptr || row.lookups != last->lookups || row.samples != last->samples)
            counted.runs.push_back({.p = a_sample(row.lookups), .q = std::min(1.0, a_sample(row.samples)), .rows = 0});
        ++counted.runs.back().rows;
        last = &row;
    }
    counted.others = rest != 0 && unseen_rows(table) != 0;
    if (counted.others)
        counted.runs.push_back({.p = a_sample(0), .q = std::min(1.0, a_sample(0)), .rows = unseen_rows(table)});
    return counted;
}

}  // namespace detail

SHARDWISE_INLINE RowDistribution distribution_of(const TableAccess& table, std::int64_t samples) {
    if (table.rows < 1) throw BadInput{concat({"table '", table.name, "' of the profile has no rows: leave it out"})};
    const detail::CountedRows counted = detail::counted_rows(table, samples);
    std::vector<RowRun> runs;
    for (const RowUse& run : counted.runs)
        runs.push_back({.p = run.p, .rows = run.rows});
    if (!counted.others && unseen_rows(table) != 0) runs.push_back({.p = 0.0, .rows = unseen_rows(table)});
    return RowDistribution{std::move(runs)};
}

SHARDWISE_INLINE TableUse use_of(const TableAccess& table, std::int64_t samples) {
    detail::CountedRows counted = detail::counted_rows(table, samples);
    TableUse use{.table = table.name, .runs = std::move(counted.runs), .rows = {}};
    use.rows.reserve(counted.listed.size());
    for (const RowAccess& row : counted.listed)
        use.rows.push_back(row.row);
    return use;
}

SHARDWISE_INLINE std::vector<TableUse> use_of(const AccessProfile& profile) {
    std::vector<TableUse> tables;
    for (const TableAccess& table : profile.tables)
        tables.push_back(use_of(table, profile.samples));
    return tables;
}

SHARDWISE_INLINE TableUse use_of(const std::string& table, const RowDistribution& distribution,
                                 std::span<const BagLengths> features) {
    TableUse use{.table = table, .runs = {}, .rows = {}};
    for (const RowRun& run : distribution.runs()) {
        if (run.p == 0.0) break;
        double held = 0.0;  // 1 less the product of shares without it would lose what a rare row has
        for (const BagLengths& lengths : features) {
            const double with = lengths.with(run.p / distribution.lookups());
            held += with - held * with;
        }
        use.runs.push_back({.p = run.p, .q = std::min(held, run.p), .rows = run.rows});
    }
    return use;
}

namespace detail {

/// Bags of the features of each table, which share its look-ups. \param lookups  (table): a sample
SHARDWISE_INLINE Workload with_equal_bags(const std::vector<TableConfig>& tables, const std::vector<double>& lookups,
                                          std::int64_t samples) {
    Workload workload{.samples = samples, .weighted = false, .tables = {}, .lengths = {}};
    for (std::size_t t = 0; t < tables.size(); ++t) {
        const std::size_t features = features_of(tables[t]).size();
        workload.lengths.insert(workload.lengths.end(), features,
                                BagLengths::near(lookups[t] / static_cast<double>(features)));
    }
    return workload;
}

}  // namespace detail

SHARDWISE_INLINE Workload workload_of(const AccessProfile& profile, const std::vector<TableConfig>& tables,
                                      std::int64_t samples) {
    require_tables(profile, tables);
    std::vector<double> lookups;
    for (const TableAccess& table : profile.tables)
        lookups.push_back(profile.samples == 0 ? 0.0 : lookups_per_sample(table, profile.samples));
    Workload workload = detail::with_equal_bags(tables, lookups, samples);
    workload.tables = use_of(profile);
    return workload;
}

SHARDWISE_INLINE Workload workload_of(std::span<const RowDistribution> distributions,
                                      const std::vector<TableConfig>& tables, std::int64_t samples) {
    if (distributions.size() != tables.size())
        throw BadInput{concat({"distributions of ", distributions.size(), " tables for a layer of ", tables.size(),
                               ": give one a table"})};
    std::vector<double> lookups;
    for (std::size_t t = 0; t < tables.size(); ++t) {
        if (distributions[t].rows() != tables[t].rows)
            throw BadInput{concat({"the distribution of table '", tables[t].name, "' is one of ",
                                   distributions[t].rows(), " rows, and the table has ", tables[t].rows})};
        lookups.push_back(distributions[t].lookups());
    }
    Workload workload = detail::with_equal_bags(tables, lookups, samples);
    std::size_t feature = 0;
    for (std::size_t t = 0; t < tables.size(); ++t) {
        const std::size_t features = features_of(tables[t]).size();
        workload.tables.push_back(
            use_of(tables[t].name, distributions[t], std::span{workload.lengths}.subspan(feature, features)));
        feature += features;
    }
    return workload;
}

}  // namespace shardwise::inline SHARDWISE_ABI
