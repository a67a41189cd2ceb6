// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "shardwise/comm/collectives.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"

/// \file
/// Clipping by the norm of all gradients.

namespace shardwise::inline SHARDWISE_ABI {

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

}  // namespace shardwise::inline SHARDWISE_ABI
