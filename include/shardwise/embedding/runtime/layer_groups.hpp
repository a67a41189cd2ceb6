// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/replica_groups.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Groups of ranks that each hold every table of a layer, and when their copies are made equal.

namespace shardwise::inline SHARDWISE_ABI {

/// Which rows a sync of copies moves.
enum class SyncRows : std::uint8_t {
    touched,  ///< those that some group touched since the last one
    all
};
/// "touched" or "all".
[[nodiscard]] inline std::string name_of(SyncRows rows) {
    return rows == SyncRows::touched ? "touched" : "all";
}

/// How ranks form groups; what is not said has its default.
struct GroupOptions {
    int count = 1;                                 ///< M; 0 in a policy: as LayerOptions say
    std::optional<GroupPlacement> placement = {};  ///< across hosts
    std::optional<std::int64_t> sync_every = {};   ///< steps: 1
    std::optional<SyncRows> rows = {};             ///< touched

    friend bool operator==(const GroupOptions&, const GroupOptions&) = default;
};

/// What a policy says, and where it says nothing, what the options do.
/// \throws BadInput where they say different things
[[nodiscard]] GroupOptions merged(const GroupOptions& policy, const GroupOptions& options);

/// The groups of a layer on a topology.
struct LayerGroups {
    /// \param learns  whether rows do, so that copies have to be made equal
    /// \throws BadInput for a number of groups that the placement does not have, steps between syncs that are not
    /// positive, a placement, steps or rows where there is one group, and steps or rows where nothing is learnt
    LayerGroups(const Topology& world, const GroupOptions& options, bool learns = true);

    ReplicaGroups ranks;
    GroupPlacement placement = GroupPlacement::across_hosts;
    std::int64_t sync_every = 1;
    SyncRows rows = SyncRows::touched;
    Program sync;  ///< of a sync, among copies; without segments where there are no syncs

    [[nodiscard]] int count() const noexcept { return ranks.count(); }
    /// Whether there are copies that differ between syncs.
    [[nodiscard]] bool syncs() const noexcept { return !sync.segments.empty(); }
    /// Whether copies are synced behind that step.
    [[nodiscard]] bool syncs_at(std::int64_t step) const noexcept { return syncs() && step % sync_every == 0; }
    /// Whether it is known which rows were touched.
    [[nodiscard]] bool keeps_marks() const noexcept { return syncs() && rows == SyncRows::touched; }
    void add_to(Digest& digest) const;
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/runtime/layer_groups.ipp"
#endif
