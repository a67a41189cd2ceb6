// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/workload.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"
#include "shardwise/embedding/runtime/layer_groups.hpp"
#include "shardwise/planning/group_formulas.hpp"
#include "shardwise/topology/cluster.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Into how many replica groups to cut a cluster: what each number would hold and take, in expectation.
/// (Two-dimensional sparse parallelism, sections 4.2 and 5)

namespace shardwise::inline SHARDWISE_ABI {

/// What a layer's blueprint does not say.
struct GroupSetting {
    Cluster cluster = {};
    double compute = 0;               ///< seconds of a step beside the embedding layer
    double lookup_rate = 100e9;       ///< bytes of rows that a rank looks up, and updates, in a second
    int flights = 1;                  ///< batches under way at a time: 2 where the next one's ids are sent ahead
    double other_bytes = 0;           ///< that a rank needs beside the layer
    std::optional<double> room = {};  ///< bytes that a rank has; not given: enough
};

/// Bytes of a rank.
struct RankMemory {
    double tables = 0;
    double moments = 0;
    double flights = 0;
    double syncs = 0;  ///< marks of rows to sync, and buffers
    double other = 0;

    [[nodiscard]] double total() const noexcept { return tables + moments + flights + syncs + other; }
};

/// One way to cut the cluster.
struct GroupChoice {
    GroupOptions groups;
    std::string refused;    ///< why the layer does not take it; empty: it does, and the rest is known
    RankMemory peak;        ///< of the rank that needs most
    double mean_bytes = 0;  ///< of all ranks
    double overhead = 0;    ///< bytes of tables and moments on a rank beyond those with one group, in the mean
    bool fits = false;      ///< `peak` into the room
    StepSeconds step;       ///< the sync of a step: one of every n

    [[nodiscard]] bool possible() const noexcept { return refused.empty() && fits; }
};

/// The layer with these groups. \throws BadInput for groups that do not go with it
using DrawGroups = std::function<LayerBlueprint(const GroupOptions& groups)>;

/// All numbers of groups that a placement has on a topology, ascending, from 1 on.
[[nodiscard]] std::vector<int> numbers_of_groups(const Topology& topology, GroupPlacement placement);

/// Bytes of tables and moments of all ranks.
[[nodiscard]] double table_bytes(const LayerBlueprint& layer);

/// What the layer would need with these groups. Expected are bytes of exchanges and syncs, flights' buffers and
/// look-ups; exchanges take what their slowest rank does (see seconds() of plan/cost.hpp), and nothing overlaps. Not
/// collective.
/// \param one_group_bytes  table_bytes() with one group, which `overhead` is counted from
/// Cost: as LayerBlueprint::expect_cost()
[[nodiscard]] GroupChoice weigh_groups(const DrawGroups& draw, const GroupOptions& groups, const Workload& workload,
                                       const GroupSetting& setting, double one_group_bytes);

/// The same of several ways. \returns one each, in their order
/// \throws BadInput where the layer does not go with one group
[[nodiscard]] std::vector<GroupChoice> weigh_groups(const DrawGroups& draw, std::span<const GroupOptions> ways,
                                                    const Workload& workload, const GroupSetting& setting);

/// The number of the way with the shortest step of those that are possible; of equal ones the first. Nothing where none
/// is.
[[nodiscard]] std::optional<std::size_t> best_groups(std::span<const GroupChoice> choices);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/group_choice.ipp"
#endif
