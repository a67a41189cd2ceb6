// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Which features live together: towers of neighbouring hosts (Disaggregated Multi-Tower, section 3).

namespace shardwise::inline SHARDWISE_ABI {

/// The names of the features of each tower; a tower may have none. All features of a table are in one tower.
using Towers = std::vector<std::vector<std::string>>;

/// The t-th table, with its features, in tower t % count: the assignment that knows nothing of the features.
/// \param mixed  the tables of each sharding policy are dealt by themselves, as in a Mixed layer
/// \throws BadInput when count is not positive
[[nodiscard]] inline Towers deal_tables(const std::vector<TableConfig>& tables, int count, bool mixed = true) {
    if (count < 1) throw BadInput{concat({count, " towers: give at least one"})};
    Towers towers(static_cast<std::size_t>(count));
    std::map<std::string, std::size_t> dealt;  // (policy)
    for (const TableConfig& table : tables) {
        auto& tower = towers[dealt[mixed ? table.sharding : std::string{}]++ % towers.size()];
        for (const std::string& feature : features_of(table))
            tower.push_back(feature);
    }
    return towers;
}

/// The topology with `count` towers. \throws BadInput when count is not positive, or does not divide the hosts
[[nodiscard]] inline Topology with_towers(Topology topology, int count) {
    if (count < 1) throw BadInput{concat({count, " towers: give at least one"})};
    if (topology.hosts % count != 0)
        throw BadInput{
            concat({count, " towers do not divide ", topology.hosts, " hosts: each tower has equally many hosts"})};
    topology.hosts_per_tower = topology.hosts / count;
    return topology;
}

/// (table): the number of its tower.
/// \throws BadInput when a tower names an unknown feature, a feature is in no tower or in two, or the features of a
/// table are not together
[[nodiscard]] inline std::vector<int> tower_of_tables(const std::vector<TableConfig>& tables, const Towers& towers) {
    std::vector<std::string> known;
    for (const TableConfig& table : tables)
        for (const std::string& feature : features_of(table))
            known.push_back(feature);
    const auto tower_of = [&](const std::string& feature) {
        int found = -1;
        for (std::size_t t = 0; t < towers.size(); ++t)
            for (const std::string& name : towers[t]) {
                if (name != feature) continue;
                if (found >= 0)
                    throw BadInput{concat(
                        {"feature '", feature, "' is in tower ", found, " and again in tower ", t, ": name it once"})};
                found = static_cast<int>(t);
            }
        if (found < 0) throw BadInput{concat({"feature '", feature, "' is in no tower: name every feature once"})};
        return found;
    };
    for (std::size_t t = 0; t < towers.size(); ++t)
        for (const std::string& name : towers[t])
            if (std::find(known.begin(), known.end(), name) == known.end())
                throw BadInput{concat({"tower ", t, " names feature '", name, "', which no table has"})};
    std::vector<int> numbers;
    for (const TableConfig& table : tables) {
        const std::vector<std::string> features = features_of(table);
        const int tower = tower_of(features.front());
        for (const std::string& feature : features)
            if (tower_of(feature) != tower)
                throw BadInput{concat({"features '", features.front(), "' and '", feature, "' look up in table '",
                                       table.name, "' and are in towers ", tower, " and ", tower_of(feature),
                                       ": put the features of a table into one tower"})};
        numbers.push_back(tower);
    }
    return numbers;
}

}  // namespace shardwise::inline SHARDWISE_ABI
