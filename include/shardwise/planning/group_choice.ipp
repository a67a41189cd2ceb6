// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <numeric>

#include "shardwise/core/at.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/plan/cost.hpp"
#include "shardwise/plan/expect.hpp"
#include "shardwise/planning/group_choice.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE double table_bytes(const LayerBlueprint& layer) {
    double bytes = 0;
    for (int rank = 0; rank < layer.world().ranks(); ++rank)
        bytes += static_cast<double>(layer.static_bytes(rank, MemoryPart::tables) +
                                     layer.static_bytes(rank, MemoryPart::moments));
    return bytes;
}

SHARDWISE_INLINE std::vector<int> numbers_of_groups(const Topology& topology, GroupPlacement placement) {
    std::vector<int> numbers;
    for (int count = 1; count <= topology.ranks(); ++count)
        if (has_groups(topology, count, placement)) numbers.push_back(count);
    return numbers;
}

SHARDWISE_INLINE GroupChoice weigh_groups(const DrawGroups& draw, const GroupOptions& groups, const Workload& workload,
                                          const GroupSetting& setting, double one_group_bytes) {
    GroupChoice choice;
    choice.groups = groups;
    std::optional<LayerBlueprint> drawn;
    try {
        drawn.emplace(draw(groups));
    } catch (const BadInput& error) {
        choice.refused = error.what();
        return choice;
    }
    const LayerBlueprint& layer = *drawn;
    std::vector<MemoryTally> flights;
    std::vector<MemoryTally> syncs;
    const ExpectedLayerCost cost = layer.expect_cost(workload, flights, syncs);
    double sum = 0;
    for (int index = 0; index < layer.topology().ranks(); ++index) {
        const int rank = layer.groups().ranks.rank_of(0, index);
        const auto fixed = [&](MemoryPart part) { return static_cast<double>(layer.static_bytes(rank, part)); };
        const RankMemory memory{.tables = fixed(MemoryPart::tables),
                                .moments = fixed(MemoryPart::moments),
                                .flights = setting.flights * static_cast<double>(at(flights, index).bytes()),
                                .syncs = fixed(MemoryPart::marks) + static_cast<double>(at(syncs, index).bytes()),
                                .other = setting.other_bytes};
        sum += memory.total();
        if (index == 0 || memory.total() > choice.peak.total()) choice.peak = memory;
    }
    choice.mean_bytes = sum / layer.topology().ranks();
    choice.overhead = (table_bytes(layer) - one_group_bytes) / layer.world().ranks();
    choice.fits = !setting.room || choice.peak.total() <= *setting.room;
    const double all = std::accumulate(cost.looked_up.begin(), cost.looked_up.end(), 0.0);
    const double mean = all / layer.world().ranks();
    choice.step = {
        .compute = setting.compute,
        .lookup = mean / setting.lookup_rate,
        .imbalance = mean > 0 ? *std::max_element(cost.looked_up.begin(), cost.looked_up.end()) / mean : 1,
        .exchange = seconds(rounded(cost.segments), setting.cluster),
        .sync = seconds(rounded(cost.sync_segments), setting.cluster) / static_cast<double>(layer.groups().sync_every)};
    return choice;
}

SHARDWISE_INLINE std::vector<GroupChoice> weigh_groups(const DrawGroups& draw, std::span<const GroupOptions> ways,
                                                       const Workload& workload, const GroupSetting& setting) {
    const double one_group_bytes = table_bytes(draw({}));
    std::vector<GroupChoice> choices;
    for (const GroupOptions& way : ways)
        choices.push_back(weigh_groups(draw, way, workload, setting, one_group_bytes));
    return choices;
}

SHARDWISE_INLINE std::optional<std::size_t> best_groups(std::span<const GroupChoice> choices) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < choices.size(); ++i)
        if (choices[i].possible() && (!best || choices[i].step.total() < choices[*best].step.total())) best = i;
    return best;
}

}  // namespace shardwise::inline SHARDWISE_ABI
