// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/copies/steps.hpp"
#include "shardwise/embedding/runtime/layer_groups.hpp"
#include "shardwise/plan/check.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

template <class Rows>
Program sync_program() {
    using Sync = typename copies::SyncPlan<Rows>::type;
    static_assert(std::is_same_v<FormAfter<copies::Apart, Sync>, copies::Equal>,
                  "the plan of a sync leads from copies that differ to equal ones");
    return make_program<copies::Domain, Sync>();
}

}  // namespace detail

SHARDWISE_INLINE GroupOptions merged(const GroupOptions& policy, const GroupOptions& options) {
    GroupOptions all = policy;
    if (policy.count == 0) all.count = options.count;
    const auto differ = [](const std::string& what, const std::string& one, const std::string& other) {
        throw BadInput{concat(
            {"the layer's policy says ", what, " ", one, ", and its options say ", other, ": leave one of them out"})};
    };
    if (all.count != options.count && options.count != 1)
        differ("groups", std::to_string(all.count), std::to_string(options.count));
    const auto merge = [&](const char* what, auto& mine, const auto& theirs, auto name) {
        if (!theirs) return;
        if (mine && *mine != *theirs) differ(what, name(*mine), name(*theirs));
        mine = theirs;
    };
    merge("placement", all.placement, options.placement, [](GroupPlacement p) { return name_of(p); });
    merge("steps between syncs", all.sync_every, options.sync_every, [](std::int64_t n) { return std::to_string(n); });
    merge("synced rows", all.rows, options.rows, [](SyncRows r) { return name_of(r); });
    return all;
}

SHARDWISE_INLINE LayerGroups::LayerGroups(const Topology& world, const GroupOptions& options, bool learns)
    : ranks{ReplicaGroups::one(world)} {
    placement = options.placement.value_or(GroupPlacement::across_hosts);
    sync_every = options.sync_every.value_or(1);
    rows = options.rows.value_or(SyncRows::touched);
    if (sync_every < 1)
        throw BadInput{
            concat({"sync_every ", sync_every, ": copies are synced every so many steps; give a positive number"})};
    const std::string said = options.placement    ? concat({"placement ", name_of(placement)})
                             : options.sync_every ? concat({"sync_every ", sync_every})
                             : options.rows       ? concat({"rows ", name_of(rows)})
                                                  : std::string{};
    if (options.count == 1 && !said.empty())
        throw BadInput{concat({said,
                               " where there is one group, which has no copies: leave it out, or give more "
                               "groups"})};
    const std::string never = options.sync_every ? concat({"sync_every ", sync_every})
                              : options.rows     ? concat({"rows ", name_of(rows)})
                                                 : std::string{};
    if (!learns && !never.empty())
        throw BadInput{concat({never, " where rows are frozen, and copies never differ: leave it out"})};
    ranks = replica_groups(world, options.count, placement);
    if (count() == 1 || !learns) return;
    sync = rows == SyncRows::touched ? detail::sync_program<TouchedRows>() : detail::sync_program<AllRows>();
}

SHARDWISE_INLINE void LayerGroups::add_to(Digest& digest) const {
    if (count() == 1) return;
    digest.add(std::int64_t{count()}).add(name_of(placement)).add(sync_every).add(name_of(rows));
}

}  // namespace shardwise::inline SHARDWISE_ABI
