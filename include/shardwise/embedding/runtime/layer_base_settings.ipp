// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "shardwise/comm/collectives.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"

/// \file
/// What the tables of a layer have of their own, and clipping by the norm of all gradients.

namespace shardwise::inline SHARDWISE_ABI {

/// What each table's settings are. \throws BadInput for those that make no sense, or are of no table
SHARDWISE_INLINE void LayerBase::settle_tables() {
    const LayerTraits& traits = blueprint_.traits();
    TableSettings others;
    if (const auto rest = options_.by_table.find("*"); rest != options_.by_table.end()) others = rest->second;
    for (const TableConfig& table : tables()) {
        const auto own = options_.by_table.find(table.name);
        TableSettings settings = own == options_.by_table.end() ? others : own->second;
        settings.check(table.name, *traits.rule);
        if (!settings.learning_rate) settings.learning_rate = options_.learning_rate;
        try {
            settings.rule = settings.rule == nullptr ? traits.rule : for_groups(settings.rule, groups().count());
        } catch (const BadInput& error) {
            throw BadInput{concat({"settings of table '", table.name, "': ", error.what()})};
        }
        settings.add_to(digest_);
        rules_.tables.push_back(
            {.rule = settings.rule.get(), .change = {.clip_value = settings.clip_value, .l2 = settings.l2}});
        settings_.push_back(std::move(settings));
    }
    digest_.add(options_.clip_norm);
    rules_.by_norm = options_.clip_norm != 0.0F;
    check_clipping();
    for (const auto& entry : options_.by_table)
        if (entry.first != "*" && std::none_of(tables().begin(), tables().end(),
                                               [&](const TableConfig& table) { return table.name == entry.first; }))
            throw BadInput{concat({"LayerOptions::by_table has settings of a table '", entry.first,
                                   "', and the layer has no table of this name"})};
}

/// The rows' gradients are summed, and no row has changed: their norm is found, and then they learn.
SHARDWISE_INLINE void LayerBase::clip_by_norm(detail::LayerState& state, const ExactSum& others,
                                              const SourceLocation& where) {
    ExactSum squares;
    try {
        rules_.squares = &squares;
        state.flight.run_held();
    } catch (...) {
        rules_.squares = nullptr;
        throw;
    }
    rules_.squares = nullptr;
    const detail::ClippingWords mine{squares.words(), others.words()};
    ExactSum all = others;
    const auto from_ranks = all_gather_v<detail::ClippingWords>(comm_, {&mine, 1}, where);
    for (std::size_t rank = 0; rank < from_ranks.size(); ++rank) {
        if (from_ranks[rank].size() != 1)
            throw Mismatch{concat({"clipping by norm: rank ", rank, " sent ", from_ranks[rank].size(),
                                   " sums, and 1 is expected: give all ranks the same layer"})};
        const detail::ClippingWords& theirs = from_ranks[rank][0];
        if (theirs.others != mine.others)
            throw Mismatch{concat({"clipping by norm: clip_with was told other squares on rank ", rank,
                                   " than here: sum the gradients of dense parameters over ranks before"})};
        all += ExactSum::from(theirs.tables);
    }
    gradient_norm_ = std::sqrt(all.value());
    if (!std::isfinite(gradient_norm_))
        throw BadInput{
            "the sums of gradients over all samples, or what clip_with was told, are not finite, so they have no norm "
            "to clip by: scale the loss down; no row has changed"};
    const double most = static_cast<double>(options_.clip_norm);
    gradient_scale_ = static_cast<float>(std::min(1.0, most / (gradient_norm_ + 1e-6)));
    for (TableRules::Table& table : rules_.tables)
        table.change.scale = gradient_scale_;
    state.flight.run_held();
}

SHARDWISE_INLINE void LayerBase::clip_with(const ExactSum& squares) {
    if (!rules_.by_norm)
        throw BadInput{"clip_with of a layer that does not clip by norm: give LayerOptions::clip_norm"};
    other_squares_ += squares;
}

/// \throws BadInput for a norm that is no number, and layers whose gradients are not there before a row changes
SHARDWISE_INLINE void LayerBase::check_clipping() const {
    const float norm = options_.clip_norm;
    if (norm == 0.0F) return;
    const auto refuse = [](const char* why) { throw BadInput{concat({"LayerOptions::clip_norm ", why})}; };
    if (!std::isfinite(norm) || norm < 0.0F) refuse("is no number above 0: give one, or 0 for no clipping");
    if (!learns()) refuse("of a layer that learns nothing has no effect: leave it out");
    if (groups().count() > 1)
        refuse("of a layer with replica groups, which each have gradients of their own: clip by value");
    if (blueprint_.has_modules())
        refuse("of a layer whose towers have modules, whose gradients are summed after the tables': clip by value");
    for (const LayerBlueprint::Part& part : blueprint_.parts())
        for (const TablePlacement& table : part.placement.tables) {
            const TableSettings& settings = at(settings_, table.table);
            if (part.placement.splits == Splits::columns && settings.rule->needs_row_norm() && settings.l2 != 0.0F)
                refuse(
                    "with l2 of a table whose columns are split, under an optimizer that needs norms of rows: these "
                    "are exchanged before the clipping is known; split rows, or decouple the decay");
        }
}

}  // namespace shardwise::inline SHARDWISE_ABI
