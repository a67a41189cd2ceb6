// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// Where ranks live: hosts of equally many ranks, numbered host by host.

namespace shardwise::inline SHARDWISE_ABI {

/// The link that bytes take from one rank to another.
enum class Tier : std::uint8_t { self, host, cross_host };

/// `hosts` hosts with `ranks_per_host` ranks each; rank r is rank r % ranks_per_host of host r / ranks_per_host.
struct Topology {
    int hosts = 1;
    int ranks_per_host = 1;
    int hosts_per_tower = 1;  ///< neighbouring hosts that hold tables together (see OneTower); divides the hosts

    [[nodiscard]] constexpr int towers() const noexcept { return hosts / hosts_per_tower; }
    [[nodiscard]] constexpr int ranks_per_tower() const noexcept { return hosts_per_tower * ranks_per_host; }
    [[nodiscard]] constexpr int tower_of(int rank) const noexcept { return rank / ranks_per_tower(); }
    [[nodiscard]] constexpr int ranks() const noexcept { return hosts * ranks_per_host; }
    [[nodiscard]] constexpr int host_of(int rank) const noexcept { return rank / ranks_per_host; }
    [[nodiscard]] constexpr int local_of(int rank) const noexcept { return rank % ranks_per_host; }
    [[nodiscard]] constexpr int rank_of(int host, int local) const noexcept { return host * ranks_per_host + local; }
    [[nodiscard]] constexpr Tier tier(int from, int to) const noexcept {
        if (from == to) return Tier::self;
        return host_of(from) == host_of(to) ? Tier::host : Tier::cross_host;
    }
    friend constexpr bool operator==(const Topology&, const Topology&) = default;

    /// `ranks` ranks on `hosts` hosts. \throws BadInput when either is not positive or hosts do not divide ranks
    [[nodiscard]] static Topology of(int ranks, int hosts) {
        if (ranks < 1) throw BadInput{concat({ranks, " ranks: at least one is needed"})};
        if (hosts < 1) throw BadInput{concat({hosts, " hosts: at least one is needed"})};
        if (hosts > ranks)
            throw BadInput{concat({hosts, " hosts for ", ranks, " ranks: give at most as many hosts as ranks"})};
        if (ranks % hosts != 0)
            throw BadInput{
                concat({hosts, " hosts do not divide ", ranks, " ranks: every host has equally many ranks"})};
        return {.hosts = hosts, .ranks_per_host = ranks / hosts};
    }
    /// The topology itself. \throws BadInput when a number of it is not positive, or towers do not divide the hosts
    [[nodiscard]] static Topology checked(const Topology& topology) {
        if (topology.hosts < 1 || topology.ranks_per_host < 1)
            throw BadInput{concat(
                {topology.hosts, " hosts of ", topology.ranks_per_host, " ranks: at least one of each is needed"})};
        if (topology.hosts > std::numeric_limits<int>::max() / topology.ranks_per_host)
            throw BadInput{
                concat({topology.hosts, " hosts of ", topology.ranks_per_host, " ranks: 2147483647 ranks at most"})};
        if (topology.hosts_per_tower < 1 || topology.hosts % topology.hosts_per_tower != 0)
            throw BadInput{concat({"towers of ", topology.hosts_per_tower, " hosts, of ", topology.hosts,
                                   ": give a number that divides the hosts"})};
        return topology;
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
