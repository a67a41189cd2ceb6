// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/exact_sum.hpp"
#include "shardwise/embedding/tables/row_rule.hpp"
#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// How the tables of a layer learn at the step that is under way: what their settings come to.

namespace shardwise::inline SHARDWISE_ABI {

/// What happens to the gradient of a touched row, and to the row itself, before the rule.
struct RowChange {
    float clip_value = 0.0F;
    float l2 = 0.0F;
    float keep = 1.0F;   ///< of the weights: 1 - rate * weight_decay
    float scale = 1.0F;  ///< of the gradient, as clipping by norm says

    /// Whether the gradient changes. Without, it may be read where it lies.
    [[nodiscard]] bool of_gradient() const noexcept { return clip_value != 0.0F || l2 != 0.0F || scale != 1.0F; }
    void clip(float* gradient, int dim) const noexcept {
        if (clip_value == 0.0F) return;
        for (int d = 0; d < dim; ++d) {
            const float low = gradient[d] < -clip_value ? -clip_value : gradient[d];
            gradient[d] = low > clip_value ? clip_value : low;
        }
    }
    void rescale(float* gradient, int dim) const noexcept {
        if (scale != 1.0F)
            for (int d = 0; d < dim; ++d)
                gradient[d] *= scale;
    }
    void apply(float* gradient, const float* weights, int dim) const noexcept {
        clip(gradient, dim);
        rescale(gradient, dim);
        if (l2 != 0.0F)
            for (int d = 0; d < dim; ++d)
                gradient[d] = std::fma(l2, weights[d], gradient[d]);
    }
    void decay(float* weights, int dim) const noexcept {
        if (keep != 1.0F)
            for (int d = 0; d < dim; ++d)
                weights[d] *= keep;
    }
};

namespace detail {

/// What a rank tells the others of the norm of gradients: of its rows, and of what it was told, which is the same on
/// all ranks.
struct ClippingWords {
    ExactSum::Words tables{};
    ExactSum::Words others{};
};

}  // namespace detail

/// How the tables of a layer learn at the step that is under way.
struct TableRules {
    static constexpr const char* state_name = "TableRules";
    /// A table: its rule, the step's numbers, and what else changes its rows.
    struct Table {
        const RowRule* rule = nullptr;
        UpdateStep step = {};
        RowChange change = {};
    };
    std::vector<Table> tables;    ///< (number in the layer)
    bool by_norm = false;         ///< gradients are clipped by their norm: `scale` is known once all are summed
    ExactSum* squares = nullptr;  ///< not null: the update adds the squares of gradients to it, and changes nothing
};

}  // namespace shardwise::inline SHARDWISE_ABI
