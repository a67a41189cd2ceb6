// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/text.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"

/// \file
/// What the digest of a layer is one of, by name.

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE std::vector<Fact> LayerBlueprint::facts() const {
    std::vector<Fact> all;
    const auto add = [&](const std::string& of, const char* what, std::string value, const Digest& digest = {}) {
        all.push_back({.of = of, .what = what, .value = std::move(value), .digest = digest.bits()});
    };
    const auto list = [](const auto& names) {
        std::string text;
        for (const std::string& name : names)
            text += (text.empty() ? "" : ", ") + name;
        return text;
    };
    std::vector<std::string> names;
    for (const TableConfig& table : tables_)
        names.push_back(table.name);
    add("tables", "", list(names));
    for (const TableConfig& table : tables_) {
        const std::string of = concat({"table '", table.name, "'"});
        add(of, "rows", std::to_string(table.rows));
        add(of, "columns", std::to_string(table.dim));
        add(of, "features", list(features_of(table)));
        add(of, "sharding", table.sharding);
        add(of, "pooling", table.pooling);
        add(of, "load", {}, Digest{}.add(table.load));
        add(of, "settings", {}, given_settings_[static_cast<std::size_t>(&table - tables_.data())]);
    }
    names.clear();
    for (const ShardingTraits& sharding : traits_.shardings)
        if (std::find(names.begin(), names.end(), sharding.name) == names.end()) names.emplace_back(sharding.name);
    add("sharding", "", list(names));
    add("pooling", "", name_of(traits_.pools));
    add("optimizer", "", traits_.rule->name());
    add("optimizer", "constants", {}, Digest{}.add(static_cast<std::int64_t>(traits_.rule->digest())));
    add("learning rate", "", {}, learning_rate_digest_);
    add("clipping by norm", "", concat({clip_norm_}));
    add("order", "", traits_.order->name);
    add("wire", "", concat({traits_.wires.forward.name, " forward, ", traits_.wires.backward.name, " backward"}));
    add("plan of exchanges", "", {}, traits_.program.digest);
    all.back().follows = true;
    add("towers", "", std::to_string(topology_.towers()), towers_digest_);
    add("module of towers", "", has_modules() ? traits_.module->name() : "",
        Digest{}.add(has_modules() ? static_cast<std::int64_t>(traits_.module->digest()) : 0));
    Digest groups;
    groups_.add_to(groups);
    add("replica groups", "", std::to_string(groups_.count()), groups);
    Digest bound;
    bound_.add_to(bound);
    add("bounds of batches", "", {}, bound);
    add("room of a rank in bytes", "", std::to_string(room_));
    add("row plan", "", {}, rows_digest_);
    add("where shards are", "", {}, placed_digest_);
    all.back().follows = true;
    return all;
}

}  // namespace shardwise::inline SHARDWISE_ABI
