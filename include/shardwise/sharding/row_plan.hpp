// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/sharding/row_reduction.hpp"

/// \file
/// Which rows of which tables are in which tier.

namespace shardwise::inline SHARDWISE_ABI {

/// The rows of one table by tier.
struct TableRowPlan {
    std::string table;                     ///< its name
    std::int64_t rows = 0;                 ///< of the table
    std::vector<std::int64_t> tiers;       ///< (tier): how many rows it has
    std::vector<std::int64_t> replicated;  ///< the rows of all tiers but the last, tier by tier, the most used first;
                                           ///< empty: rows 0, 1, 2, ... in this order
    std::vector<bool> unseen;              ///< (row): no profile saw it, and it is in the last tier; empty: none such
    std::vector<RowTouches> touches = {};  ///< (tier): expected in a step; empty: not known
    std::optional<RowReduction> reduction = {};  ///< of the rows of all tiers but the last; not given: whichever is
                                                 ///< expected to move less, level by level; touched ones, if that is
                                                 ///< not known
    /// (tier): look-ups of its rows in the profile that the plan was made from, for reports alone; empty: not known
    std::vector<std::int64_t> lookups = {};

    friend bool operator==(const TableRowPlan&, const TableRowPlan&) = default;
};

/// The rows of a layer's tables by tier: LayerOptions::rows of a layer with Sharding<Tiered<...>>. Made by a planner or
/// by hand.
struct RowPlan {
    std::vector<std::string> tiers;    ///< names of the policies, in the layer's order: "dp", "flex", "row"
    std::vector<TableRowPlan> tables;  ///< in any order

    /// The plan of a table. \throws BadInput where there is none
    [[nodiscard]] const TableRowPlan& of(const std::string& table) const;
    /// Adds all of it to a digest, by which ranks compare what they were given.
    void add_to(Digest& digest) const;
    friend bool operator==(const RowPlan&, const RowPlan&) = default;
};

/// Which sums of the rows of a tier travel dense: what the plan says, or expects to be cheaper.
[[nodiscard]] DenseSums dense_sums(const TableRowPlan& plan, std::size_t tier, const SumBytes& bytes);

/// The plan that puts all rows of a table into the last tier.
[[nodiscard]] TableRowPlan all_in_last_tier(const std::string& table, std::int64_t rows, std::size_t tiers);

/// The share of all look-ups that each tier takes in the profile that a plan was made from, 0 to 1; empty where it is
/// not known of a table, or nothing was looked up.
[[nodiscard]] std::vector<double> expected_coverage(const RowPlan& plan);

/// Checks the plan of a table. \throws BadInput naming the table and the row: where tiers do not add up to the table, a
/// row is replicated twice or is none of the table or one that no profile saw, look-ups are negative or not one number
/// a tier, or more rows are expected to be touched than there are
void check(const TableRowPlan& plan);
/// The same of all tables. \throws BadInput for a table that stands twice or has another number of tiers, too
void check(const RowPlan& plan);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/sharding/row_plan.ipp"
#endif
