// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/tables/initial_values.hpp"
#include "shardwise/embedding/tables/row_rule.hpp"
#include "shardwise/optimizer/learning_rate.hpp"
#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// How one table of a layer begins and learns.

namespace shardwise::inline SHARDWISE_ABI {

/// What a table may have of its own. Rows that no sample touched do not change, whatever the decay.
///
/// A touched row with gradient g and weights w is updated in this order: g is clipped by value; g is multiplied by what
/// clipping by norm says (LayerOptions::clip_norm); g <- g + l2 w; w <- (1 - rate * weight_decay) w; then the rule.
struct TableSettings {
    std::optional<LearningRate> learning_rate = {};  ///< none: the layer's
    /// The layer's optimizer with other constants: make_row_rule(Adam{.beta1 = 0.8}). null: with the layer's.
    std::shared_ptr<const RowRule> rule = nullptr;
    InitialValues initial = {};  ///< of its weights
    float l2 = 0.0F;             ///< added to the gradient, times the weight (FBGEMM's L2, PyTorch's weight_decay)
    float weight_decay = 0.0F;   ///< decoupled from the gradient, times the learning rate (AdamW, FBGEMM's DECOUPLE)
    float clip_value = 0.0F;     ///< gradients of rows, summed over all samples, are cut to [-c, c]; 0: they are not

    /// Checks the settings of a table. \param layers  the rule of the layer's optimizer
    /// \throws BadInput naming the table, the field and its value
    void check(const std::string& table, const RowRule& layers) const {
        const auto require = [&](const char* field, float value, bool fits, const char* allowed) {
            if (!fits)
                throw BadInput{concat({"settings of table '", table, "': ", field, " is ",
                                       detail::constant_text(static_cast<double>(value)), ": give ", allowed})};
        };
        const auto finite = [](float value) { return std::isfinite(value) && value >= 0.0F; };
        require("l2", l2, finite(l2), "a number from 0 on");
        require("weight_decay", weight_decay, finite(weight_decay), "a number from 0 on");
        require("clip_value", clip_value, finite(clip_value), "a number above 0, or 0 for no clipping");
        require("the mean of the initial values", initial.mean(), std::isfinite(initial.mean()), "a finite number");
        require("the spread of the initial values", initial.spread(1), initial.fits(), "a number from 0 on");
        try {
            if (learning_rate) learning_rate->check();
        } catch (const BadInput& error) {
            throw BadInput{concat({"settings of table '", table, "': ", error.what()})};
        }
        if (!layers.learns() &&
            (learning_rate || rule != nullptr || l2 != 0.0F || weight_decay != 0.0F || clip_value != 0.0F))
            throw BadInput{concat({"settings of table '", table, "': the layer's optimizer '", layers.name(),
                                   "' learns nothing, so that initial values alone have an effect"})};
        const auto same = [&] {
            return rule->name() == layers.name() && rule->element_slots() == layers.element_slots() &&
                   rule->row_slots() == layers.row_slots() && rule->needs_row_norm() == layers.needs_row_norm();
        };
        if (rule != nullptr && !same())
            throw BadInput{
                concat({"settings of table '", table, "': constants of optimizer '", rule->name(),
                        "', and the layer's is '", layers.name(), "': a layer has one optimizer; give its constants"})};
    }
    void add_to(Digest& digest) const {
        if (learning_rate) learning_rate->add_to(digest);
        if (rule != nullptr) digest.add(rule->digest());
        initial.add_to(digest);
        digest.add(l2).add(weight_decay).add(clip_value);
    }
};

/// Settings by the name of the table.
using SettingsByTable = std::map<std::string, TableSettings, std::less<>>;

}  // namespace shardwise::inline SHARDWISE_ABI
