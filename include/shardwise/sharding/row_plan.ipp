// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/sharding/row_plan.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE const TableRowPlan& RowPlan::of(const std::string& table) const {
    const auto found =
        std::find_if(tables.begin(), tables.end(), [&](const auto& plan) { return plan.table == table; });
    if (found == tables.end())
        throw BadInput{concat({"the row plan has no table '", table, "': add it, with all its rows in the last tier"})};
    return *found;
}

SHARDWISE_INLINE void RowPlan::add_to(Digest& digest) const {
    for (const std::string& tier : tiers)
        digest.add(tier);
    for (const TableRowPlan& plan : tables) {
        digest.add(plan.table).add(plan.rows);
        for (const std::int64_t rows : plan.tiers)
            digest.add(rows);
        for (const std::int64_t row : plan.replicated)
            digest.add(row);
    }
}

SHARDWISE_INLINE DenseSums dense_sums(const TableRowPlan& plan, std::size_t tier, const SumBytes& bytes) {
    if (plan.reduction.has_value()) {
        const bool dense = *plan.reduction == RowReduction::dense;
        return {.rank = dense, .host = dense, .world = dense};
    }
    return plan.touches.empty() ? DenseSums{} : cheaper_sums(plan.tiers[tier], plan.touches[tier], bytes);
}

SHARDWISE_INLINE TableRowPlan all_in_last_tier(const std::string& table, std::int64_t rows, std::size_t tiers) {
    TableRowPlan plan{.table = table, .rows = rows, .tiers = {}, .replicated = {}, .unseen = {}};
    plan.tiers.assign(tiers, 0);
    plan.tiers.back() = rows;
    return plan;
}

SHARDWISE_INLINE std::vector<double> expected_coverage(const RowPlan& plan) {
    std::vector<double> shares(plan.tiers.size());
    double all = 0.0;
    for (const TableRowPlan& table : plan.tables) {
        if (table.lookups.size() != shares.size()) return {};
        for (std::size_t tier = 0; tier < shares.size(); ++tier) {
            shares[tier] += static_cast<double>(table.lookups[tier]);
            all += static_cast<double>(table.lookups[tier]);
        }
    }
    if (!(all > 0.0)) return {};
    for (double& share : shares)
        share /= all;
    return shares;
}

SHARDWISE_INLINE void check(const TableRowPlan& plan) {
    const auto wrong = [&](const std::string& what) {
        return BadInput{concat({"the row plan of table '", plan.table, "': ", what})};
    };
    if (plan.tiers.empty() || *std::min_element(plan.tiers.begin(), plan.tiers.end()) < 0)
        throw wrong("every tier has a number of rows, 0 or more");
    std::int64_t all = 0;
    for (const std::int64_t rows : plan.tiers)
        if (__builtin_add_overflow(all, rows, &all)) throw wrong("its tiers have more than 2^63 - 1 rows together");
    if (all != plan.rows)
        throw wrong(concat({"its tiers have ", all, " rows together, and the table has ", plan.rows}));
    if (!plan.unseen.empty() && std::ssize(plan.unseen) != plan.rows)
        throw wrong(
            concat({"it says of ", plan.unseen.size(), " rows whether they were seen, and the table has ", plan.rows}));
    if (!plan.touches.empty() && plan.touches.size() != plan.tiers.size())
        throw wrong(concat(
            {"it says how many rows are touched of ", plan.touches.size(), " tiers, and it has ", plan.tiers.size()}));
    for (std::size_t tier = 0; tier < plan.touches.size(); ++tier)
        for (const std::int64_t rows : {plan.touches[tier].rank, plan.touches[tier].host, plan.touches[tier].world})
            if (rows < 0 || rows > plan.tiers[tier])
                throw wrong(concat({"a step is expected to touch ", rows, " of the ", plan.tiers[tier],
                                    " rows of tier ", tier, ": give a number from 0 to ", plan.tiers[tier]}));
    if (!plan.lookups.empty() && plan.lookups.size() != plan.tiers.size())
        throw wrong(concat({"it has look-ups of ", plan.lookups.size(), " tiers, and rows of ", plan.tiers.size()}));
    for (const std::int64_t lookups : plan.lookups)
        if (lookups < 0) throw wrong(concat({"a tier has ", lookups, " look-ups: give each 0 or more"}));
    const std::int64_t replicated = all - plan.tiers.back();
    const auto seen = [&](std::int64_t row) {
        if (!plan.unseen.empty() && plan.unseen[static_cast<std::size_t>(row)])
            throw wrong(concat({"row ", row, " is replicated, and said to have been seen by no profile: such rows are ",
                                "in the last tier"}));
    };
    if (plan.replicated.empty()) {
        for (std::int64_t row = 0; row < (plan.unseen.empty() ? 0 : replicated); ++row)
            seen(row);
        return;
    }
    if (std::ssize(plan.replicated) != replicated)
        throw wrong(concat(
            {"it names ", plan.replicated.size(), " replicated rows, and its tiers but the last have ", replicated}));
    for (const std::int64_t row : plan.replicated)
        if (row < 0 || row >= plan.rows)
            throw wrong(concat({"row ", row, " is none of the table; its rows are 0 to ", plan.rows - 1}));
    std::for_each(plan.replicated.begin(), plan.replicated.end(), seen);
    std::vector<std::int64_t> sorted = plan.replicated;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) throw wrong(concat({"row ", *twice, " stands twice"}));
}

SHARDWISE_INLINE void check(const RowPlan& plan) {
    for (auto table = plan.tables.begin(); table != plan.tables.end(); ++table) {
        if (table->tiers.size() != plan.tiers.size())
            throw BadInput{concat({"the row plan of table '", table->table, "' has rows of ", table->tiers.size(),
                                   " tiers, and the plan has ", plan.tiers.size()})};
        if (std::any_of(plan.tables.begin(), table, [&](const auto& other) { return other.table == table->table; }))
            throw BadInput{concat({"the row plan has table '", table->table, "' twice: give each one once"})};
        check(*table);
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
