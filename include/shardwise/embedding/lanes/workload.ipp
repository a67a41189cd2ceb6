// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/workload.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE BagLengths BagLengths::fixed(std::int64_t length) {
    if (length < 0) throw BadInput{concat({"bags of ", length, " ids: give a number that is not negative"})};
    return {{{.length = length, .share = 1.0}}};
}

SHARDWISE_INLINE BagLengths BagLengths::near(double mean) {
    if (!(mean >= 0.0) || mean > 0x1p53)
        throw BadInput{concat({"bags of ", mean, " ids in the mean: give a finite number that is not negative"})};
    const double below = std::floor(mean);
    const auto length = static_cast<std::int64_t>(below);
    if (mean == below) return fixed(length);
    return {{{.length = length, .share = below + 1.0 - mean}, {.length = length + 1, .share = mean - below}}};
}

SHARDWISE_INLINE double BagLengths::mean() const noexcept {
    double mean = 0.0;
    for (const Share& of : shares)
        mean += of.share * static_cast<double>(of.length);
    return mean;
}

SHARDWISE_INLINE bool BagLengths::all_are(std::int64_t length) const noexcept {
    return std::all_of(shares.begin(), shares.end(),
                       [&](const Share& of) { return of.length == length || of.share == 0.0; });
}

SHARDWISE_INLINE double BagLengths::with(double share) const noexcept {
    double bags = 0.0;
    for (const Share& of : shares)
        bags += of.share * chance_of(share, static_cast<double>(of.length));
    return bags;
}

SHARDWISE_INLINE double BagLengths::without(double share) const noexcept {
    double bags = 0.0;
    for (const Share& of : shares)
        bags += of.share * std::pow(1.0 - share, static_cast<double>(of.length));
    return bags;
}

SHARDWISE_INLINE double BagLengths::with_one(double share) const noexcept {
    double bags = 0.0;
    for (const Share& of : shares) {
        const auto length = static_cast<double>(of.length);
        if (of.length > 0) bags += of.share * length * share * std::pow(1.0 - share, length - 1.0);
    }
    return bags;
}

SHARDWISE_INLINE bool Workload::single() const noexcept {
    return std::all_of(lengths.begin(), lengths.end(), [](const BagLengths& of) { return of.all_are(1); });
}

SHARDWISE_INLINE std::int64_t TableUse::rows_in_use() const noexcept {
    std::int64_t sum = 0;
    for (const RowUse& run : runs)
        sum += run.rows;
    return sum;
}
SHARDWISE_INLINE double TableUse::distinct_rows(std::int64_t samples) const noexcept {
    double sum = 0.0;
    for (const RowUse& run : runs)
        sum += static_cast<double>(run.rows) * chance_of(run.q, static_cast<double>(samples));
    return sum;
}
SHARDWISE_INLINE bool TableUse::last_are_others() const noexcept {
    return !rows.empty() && !runs.empty() && std::ssize(rows) == rows_in_use() - runs.back().rows;
}

SHARDWISE_INLINE UsedRows::UsedRows(const TableUse& use) : use_{use}, in_order_{use.rows.empty()} {
    if (!use.last_are_others()) return;
    listed_ = use.rows;
    std::sort(listed_.begin(), listed_.end());
}

namespace detail {

/// \returns look-ups a sample
SHARDWISE_INLINE double check_use(const TableUse& use, const TableConfig& table) {
    const auto wrong = [&](const std::string& what) {
        return BadInput{concat({"the workload of table '", table.name, "': ", what})};
    };
    if (use.table != table.name)
        throw wrong(concat({"it is called '", use.table, "' there: give the layer's tables in their order"}));
    double lookups = 0.0;
    std::int64_t rows = 0;
    for (const RowUse& run : use.runs) {
        if (!(run.p >= 0.0) || !std::isfinite(run.p))
            throw wrong(concat({"rows with ", run.p, " look-ups a sample: give finite numbers that are not negative"}));
        if (!(run.q >= 0.0 && run.q <= 1.0) || run.q > run.p * (1.0 + 1e-9))
            throw wrong(concat({"rows in a share of ", run.q, " of the samples, with ", run.p,
                                " look-ups a sample: give shares from 0 to 1, and no more than look-ups"}));
        if (run.rows < 1 || run.rows > table.rows - rows)
            throw wrong(concat({"a run of ", run.rows, " rows after ", rows,
                                " others: give at least 1, and no more than the table's ", table.rows, " together"}));
        rows += run.rows;
        lookups += run.p * static_cast<double>(run.rows);
    }
    if (use.rows.empty()) return lookups;
    if (std::ssize(use.rows) != rows && !(use.last_are_others() && rows == table.rows))
        throw wrong(concat({"it lists ", std::ssize(use.rows), " rows, and its runs have ", rows,
                            ": list all, or all but the last run's where these are all others of the table"}));
    std::vector<bool> listed(static_cast<std::size_t>(table.rows));
    for (const std::int64_t row : use.rows) {
        if (row < 0 || row >= table.rows)
            throw wrong(concat({"row ", row, " is not one of its rows, 0 to ", table.rows - 1}));
        if (listed[static_cast<std::size_t>(row)]) throw wrong(concat({"row ", row, " stands twice"}));
        listed[static_cast<std::size_t>(row)] = true;
    }
    return lookups;
}

/// \returns ids a bag
SHARDWISE_INLINE double check_lengths(const BagLengths& lengths, const std::string& feature) {
    double sum = 0.0;
    for (const BagLengths::Share& of : lengths.shares) {
        if (of.length < 0 || !(of.share >= 0.0))
            throw BadInput{concat({"the workload of feature '", feature, "': a share of ", of.share, " of bags of ",
                                   of.length, " ids: neither number is negative"})};
        sum += of.share;
    }
    if (!(std::abs(sum - 1.0) <= 1e-6))
        throw BadInput{concat({"the workload of feature '", feature, "': the shares of its bags' lengths add up to ",
                               sum, ": give shares that add up to 1"})};
    return lengths.mean();
}

}  // namespace detail

SHARDWISE_INLINE void check(const Workload& workload, const std::vector<TableConfig>& tables) {
    if (workload.samples < 0)
        throw BadInput{concat({"a workload of ", workload.samples, " samples a rank: give a number from 0 on"})};
    if (workload.tables.size() != tables.size())
        throw BadInput{concat({"a workload of ", workload.tables.size(), " tables for a layer of ", tables.size()})};
    std::size_t features = 0;
    for (const TableConfig& table : tables)
        features += features_of(table).size();
    if (workload.lengths.size() != features)
        throw BadInput{concat(
            {"a workload with bag lengths of ", workload.lengths.size(), " features for a layer of ", features})};
    features = 0;
    for (std::size_t t = 0; t < tables.size(); ++t) {
        const double lookups = detail::check_use(workload.tables[t], tables[t]);
        double ids = 0.0;
        for (const std::string& feature : features_of(tables[t]))
            ids += detail::check_lengths(workload.lengths[features++], feature);
        if (!(std::abs(ids - lookups) <= 0.01 * lookups))
            throw BadInput{concat({"the workload of table '", tables[t].name, "': its features look up ", ids,
                                   " ids a sample, and its rows are looked up ", lookups,
                                   " times: give lengths of bags that fit"})};
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
