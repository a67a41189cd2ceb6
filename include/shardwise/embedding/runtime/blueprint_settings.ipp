// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "shardwise/core/at.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"

/// \file
/// What the tables of a layer have of their own, and whether their gradients can be clipped by norm.

namespace shardwise::inline SHARDWISE_ABI {

/// What each table's settings are. \throws BadInput for those that make no sense, or are of no table
SHARDWISE_INLINE void LayerBlueprint::settle_tables(const LayerOptions& options) {
    options.learning_rate.check();
    options.learning_rate.add_to(learning_rate_digest_);
    TableSettings others;
    if (const auto rest = options.by_table.find("*"); rest != options.by_table.end()) others = rest->second;
    for (const TableConfig& table : tables_) {
        const auto own = options.by_table.find(table.name);
        TableSettings settings = own == options.by_table.end() ? others : own->second;
        settings.check(table.name, *traits_.rule);
        settings.add_to(given_settings_.emplace_back());
        if (!settings.learning_rate) settings.learning_rate = options.learning_rate;
        try {
            settings.rule = settings.rule == nullptr ? traits_.rule : for_groups(settings.rule, groups_.count());
        } catch (const BadInput& error) {
            throw BadInput{concat({"settings of table '", table.name, "': ", error.what()})};
        }
        settings_.push_back(std::move(settings));
    }
    for (const auto& entry : options.by_table)
        if (entry.first != "*" && std::none_of(tables_.begin(), tables_.end(),
                                               [&](const TableConfig& table) { return table.name == entry.first; }))
            throw BadInput{concat({"LayerOptions::by_table has settings of a table '", entry.first,
                                   "', and the layer has no table of this name"})};
}

/// Of which results the look at gradients makes sums of squares: of those by whose gradients rows learn as they are
/// given, on one rank. Rows of fewer columns are squared as fast where they learn.
SHARDWISE_INLINE void LayerBlueprint::want_squares(const LayerOptions& options) {
    constexpr int least_columns = 32;
    if (!options.check_gradients || topology_.ranks() > 1 || has_modules() || traits_.coalesced || traits_.tiered ||
        !traits_.wires.backward.exact)
        return;
    const std::size_t of_each = parts_.size() / traits_.shardings.size();  // bags and sequences, or one of them
    for (std::size_t p = 0; p < parts_.size(); ++p) {
        const ShardingTraits& sharding = traits_.shardings[p / of_each];
        if (!sharding.in_world || sharding.splits == Splits::columns) continue;  // another step makes sums, or norms
        const Placement& placement = parts_[p].placement;
        for (const FeaturePlacement& feature : placement.features) {
            LayerFeatures::Result& result = at(features_.results, feature.feature);
            const TableSettings& settings = at(settings_, at(placement.tables, feature.table).table);
            result.squares = result.pooled && !result.mean && feature.alone && result.dim >= least_columns &&
                             settings.rule->needs_row_norm() && settings.clip_value == 0.0F && settings.l2 == 0.0F;
        }
    }
}

/// \throws BadInput for a norm that is no number, and layers whose gradients are not there before a row changes
SHARDWISE_INLINE void LayerBlueprint::check_clipping() const {
    const float norm = clip_norm_;
    if (norm == 0.0F) return;
    const auto refuse = [](const char* why) { throw BadInput{concat({"LayerOptions::clip_norm ", why})}; };
    if (!std::isfinite(norm) || norm < 0.0F) refuse("is no number above 0: give one, or 0 for no clipping");
    if (!traits_.rule->learns()) refuse("of a layer that learns nothing has no effect: leave it out");
    if (groups_.count() > 1)
        refuse("of a layer with replica groups, which each have gradients of their own: clip by value");
    if (has_modules())
        refuse("of a layer whose towers have modules, whose gradients are summed after the tables': clip by value");
    for (const Part& part : parts_)
        for (const TablePlacement& table : part.placement.tables) {
            const TableSettings& settings = at(settings_, table.table);
            if (part.placement.splits == Splits::columns && settings.rule->needs_row_norm() && settings.l2 != 0.0F)
                refuse(
                    "with l2 of a table whose columns are split, under an optimizer that needs norms of rows: these "
                    "are exchanged before the clipping is known; split rows, or decouple the decay");
        }
}

}  // namespace shardwise::inline SHARDWISE_ABI
