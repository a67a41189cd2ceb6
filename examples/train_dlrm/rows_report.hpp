// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "shardwise/core/jagged.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"
#include "shardwise/sharding/row_map.hpp"
#include "shardwise/sharding/row_plan.hpp"

/// \file
/// What a report says of rows: those of each tier, and how evenly ranks look them up.

namespace train_dlrm {

namespace sw = shardwise;

/// The rows of one tier, of all tables together.
struct RowTier {
    std::string name;
    std::int64_t rows = 0;
    std::int64_t lookups = 0;                       ///< of all ranks
    std::optional<double> expected = std::nullopt;  ///< share of the look-ups in the plan's profile, in percent
    std::int64_t payload = 0;                       ///< bytes that all ranks packed for it, in the measured steps
    std::int64_t predicted_payload = 0;             ///< the same, predicted
    /// (rank): rows that its tables looked up for all ranks
    std::vector<std::int64_t> looked_up = {};
};

/// What there is to say of rows, for all ranks.
struct RowsReport {
    std::vector<RowTier> tiers;            ///< none: rows have no tiers
    std::int64_t unseen = 0;               ///< look-ups of rows that no profile saw
    std::int64_t asked = 0;                ///< look-ups of all ranks' batches
    std::optional<std::int64_t> distinct;  ///< of these, in their batch and table; of raw requests nobody knows
    std::int64_t map_bytes = 0;            ///< of what finds the tier of a row, on each rank
    std::vector<std::int64_t> looked_up;   ///< (rank): rows, or parts of rows, that its tables looked up for all ranks
    std::int64_t payload = 0;              ///< of the layer's messages, as the communicator counted it

    /// The share of all look-ups that a tier of rows took, in percent.
    [[nodiscard]] double coverage(const RowTier& tier) const;
    /// Every byte was packed for a tier, and predicted.
    [[nodiscard]] bool as_predicted() const;
};

/// What a layer has looked up on one rank.
struct LookUps {
    std::vector<std::int64_t> by_tier;    ///< ids of this rank's batches
    std::int64_t unseen = 0;              ///< of these, of rows that no profile saw
    std::int64_t distinct = 0;            ///< of them, in their batch and table, where requests are coalesced
    std::vector<std::int64_t> looked_up;  ///< (part of the layer): rows of this rank's tables, for all ranks

    LookUps& operator+=(const LookUps& more);
    LookUps& operator-=(const LookUps& less);
};
/// So far.
[[nodiscard]] LookUps look_ups_of(const sw::LayerBase& layer);

/// The most rows that a rank looked up, over the mean of all ranks.
[[nodiscard]] double max_over_mean(const std::vector<std::int64_t>& looked_up);

/// What a plan alone says: names, rows and expected look-ups of its tiers.
[[nodiscard]] RowsReport rows_of(const sw::RowPlan& plan);
/// What a layer is to do with one batch a rank, without doing it. \param plan  null: its rows have no tiers
[[nodiscard]] RowsReport rows_of_batches(const sw::LayerBase& layer, const sw::RowPlan* plan,
                                         const std::vector<sw::JaggedView<std::int64_t>>& batches,
                                         const sw::LayerCost& cost);

/// Numbers by tier.
using ByTier = std::array<std::int64_t, sw::RowMap::most_tiers>;
/// Adds numbers by part of a layer with so many tiers; parts of one tier follow each other.
void add_by_part(const std::vector<std::int64_t>& by_part, std::size_t tiers, ByTier& to);

/// "rows": the tiers by name, and unseen look-ups; null where rows have no tiers.
[[nodiscard]] nlohmann::json tiers_json(const RowsReport& report);
/// A number as JSON has them; null where it is none.
[[nodiscard]] nlohmann::json number_json(double value);
/// "requests": look-ups, distinct ones (null where nobody counts them), and rows that owners read.
[[nodiscard]] nlohmann::json requests_json(const RowsReport& report);
/// "looked_up_rows".
[[nodiscard]] nlohmann::json looked_up_json(const std::vector<std::int64_t>& by_rank);
/// What --explain says: a line a tier, and the rows that ranks look up.
[[nodiscard]] std::string explain_rows(const RowsReport& of_first_batch);
/// Lines of the terminal's table.
[[nodiscard]] std::string rows_text(const RowsReport& report);

}  // namespace train_dlrm
