// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/topology/topology.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/topology/groups.hpp"

namespace shardwise_test {
namespace {

using shardwise::BadInput;
using shardwise::Hosts;
using shardwise::OneHost;
using shardwise::OneTower;
using shardwise::Peers;
using shardwise::PeersOf;
using shardwise::Tier;
using shardwise::Topology;
using shardwise::Within;
using shardwise::World;

std::string complaint(int ranks, int hosts) {
    try {
        static_cast<void>(Topology::of(ranks, hosts));
    } catch (const BadInput& error) {
        return error.what();
    }
    return "";
}

TEST(TopologyTest, OfDealsRanksOverHosts) {
    EXPECT_EQ(Topology::of(6, 2), (Topology{.hosts = 2, .ranks_per_host = 3}));
    EXPECT_EQ(Topology::of(1, 1), (Topology{.hosts = 1, .ranks_per_host = 1}));
    EXPECT_EQ(Topology::of(4, 4), (Topology{.hosts = 4, .ranks_per_host = 1}));
}

TEST(TopologyTest, OfNamesWhatDoesNotFit) {
    EXPECT_EQ(complaint(0, 1), "0 ranks: at least one is needed");
    EXPECT_EQ(complaint(-3, 1), "-3 ranks: at least one is needed");
    EXPECT_EQ(complaint(4, 0), "0 hosts: at least one is needed");
    EXPECT_EQ(complaint(2, 3), "3 hosts for 2 ranks: give at most as many hosts as ranks");
    EXPECT_EQ(complaint(6, 4), "4 hosts do not divide 6 ranks: every host has equally many ranks");
}

TEST(TopologyTest, RanksAreNumberedHostByHost) {
    const Topology t{.hosts = 3, .ranks_per_host = 4};
    for (int rank = 0; rank < t.ranks(); ++rank) {
        EXPECT_EQ(t.rank_of(t.host_of(rank), t.local_of(rank)), rank);
        EXPECT_EQ(t.tier(rank, rank), Tier::self);
    }
    EXPECT_EQ(t.host_of(7), 1);
    EXPECT_EQ(t.local_of(7), 3);
    EXPECT_EQ(t.tier(4, 7), Tier::host);
    EXPECT_EQ(t.tier(3, 4), Tier::cross_host);
}

/// A topology on which Hosts<1>, Hosts<2> and Hosts<3> all make sense.
Topology any_topology() {
    return {.hosts = 6 * *rc::gen::inRange(1, 4), .ranks_per_host = *rc::gen::inRange(1, 6)};
}

/// A group of every rank: members ascending, the rank itself among them, the same for all members; together they cover
/// every rank once.
template <class G>
void check_partition(const Topology& t) {
    static_assert(shardwise::Group<G>);
    std::set<std::vector<int>> groups;
    for (int me = 0; me < t.ranks(); ++me) {
        std::vector<int> members;
        for (int index = 0; index < G::of(t).size; ++index) {
            members.push_back(G::of(t).member(me, index));
            RC_ASSERT(G::of(t).index(members.back()) == index);
        }
        RC_ASSERT(std::is_sorted(members.begin(), members.end()));
        RC_ASSERT(std::adjacent_find(members.begin(), members.end()) == members.end());
        RC_ASSERT(G::of(t).member(me, G::of(t).index(me)) == me);
        for (const int member : members)
            RC_ASSERT(G::of(t).member(member, 0) == members.front());
        groups.insert(members);
        for (int source = 0; source < t.ranks(); ++source)  // one hop stays in the group
            RC_ASSERT(std::count(members.begin(), members.end(), G::of(t).toward(me, source)) == 1);
    }
    std::vector<int> all;
    for (const auto& group : groups)
        all.insert(all.end(), group.begin(), group.end());
    std::sort(all.begin(), all.end());
    RC_ASSERT(static_cast<int>(all.size()) == t.ranks());
    for (int rank = 0; rank < t.ranks(); ++rank)
        RC_ASSERT(all[static_cast<std::size_t>(rank)] == rank);
}

RC_GTEST_PROP(Groups, PartitionTheRanks, ()) {
    const Topology t = any_topology();
    check_partition<World>(t);
    check_partition<Hosts<1>>(t);
    check_partition<Hosts<2>>(t);
    check_partition<Hosts<3>>(t);
    check_partition<PeersOf<Hosts<1>>>(t);
    check_partition<PeersOf<Hosts<2>>>(t);
    check_partition<PeersOf<Hosts<3>>>(t);
    check_partition<PeersOf<World>>(t);
    check_partition<Within<OneHost, Hosts<2>>>(t);
    check_partition<Within<Peers, Hosts<2>>>(t);
    check_partition<Within<Peers, Hosts<3>>>(t);
    check_partition<Within<OneHost, Peers>>(t);
    check_partition<Within<Hosts<2>, Peers>>(t);
}

/// The topology inside a group tells neighbours on a host from those across.
template <class G>
void check_inside(const Topology& t) {
    const Topology inside = shardwise::inside(t, G::of(t));
    RC_ASSERT(inside.ranks() == G::of(t).size);
    for (int me = 0; me < t.ranks(); ++me)
        for (int a = 0; a < G::of(t).size; ++a)
            for (int b = 0; b < G::of(t).size; ++b)
                RC_ASSERT(inside.tier(a, b) == t.tier(G::of(t).member(me, a), G::of(t).member(me, b)));
}

RC_GTEST_PROP(Groups, TheTopologyInside, ()) {
    const Topology t = any_topology();
    check_inside<World>(t);
    check_inside<Hosts<2>>(t);
    check_inside<Peers>(t);
    check_inside<PeersOf<Hosts<3>>>(t);
    check_inside<Within<Peers, Hosts<2>>>(t);
    check_inside<Within<OneHost, Hosts<3>>>(t);
}

/// From any rank to any source: first inside the tower, then across the towers.
template <class Inside>
void check_way_home(const Topology& t) {
    for (int me = 0; me < t.ranks(); ++me) {
        for (int source = 0; source < t.ranks(); ++source) {
            const int relay = Inside::of(t).toward(me, source);
            RC_ASSERT(PeersOf<Inside>::of(t).toward(relay, source) == source);
            const int peer = PeersOf<Inside>::of(t).toward(me, source);  // the other way round
            RC_ASSERT(Inside::of(t).toward(peer, source) == source);
            RC_ASSERT(World::of(t).toward(me, source) == source);
        }
    }
}

RC_GTEST_PROP(Groups, TwoHopsLeadHome, ()) {
    const Topology t = any_topology();
    check_way_home<Hosts<1>>(t);
    check_way_home<Hosts<2>>(t);
    check_way_home<Hosts<3>>(t);
}

/// Inside the host, across the hosts of the tower, across the towers.
RC_GTEST_PROP(Groups, ThreeHopsLeadHome, ()) {
    const Topology t = any_topology();
    for (int me = 0; me < t.ranks(); ++me) {
        for (int source = 0; source < t.ranks(); ++source) {
            const int on_host = Within<OneHost, Hosts<3>>::of(t).toward(me, source);
            const int in_tower = Within<Peers, Hosts<3>>::of(t).toward(on_host, source);
            RC_ASSERT(t.host_of(on_host) == t.host_of(me));
            RC_ASSERT(in_tower == Hosts<3>::of(t).toward(me, source));
            RC_ASSERT(PeersOf<Hosts<3>>::of(t).toward(in_tower, source) == source);
        }
    }
}

RC_GTEST_PROP(Groups, TowersOfTheTopology, ()) {
    Topology t = any_topology();
    t.hosts_per_tower = *rc::gen::inRange(1, 4);
    t.hosts *= t.hosts_per_tower;
    RC_ASSERT(t.towers() * t.ranks_per_tower() == t.ranks());
    check_way_home<OneTower>(t);
    check_partition<OneTower>(t);
    check_partition<PeersOf<OneTower>>(t);
    check_inside<OneTower>(t);
    check_inside<PeersOf<OneTower>>(t);
    for (int me = 0; me < t.ranks(); ++me) {
        RC_ASSERT(OneTower::of(t).size == t.ranks_per_tower());
        RC_ASSERT(OneTower::of(t).member(me, 0) / t.ranks_per_host % t.hosts_per_tower == 0);
    }
}

/// Peers are the ranks equal modulo K * L; in peer order those of one index stand together.
TEST(Groups, PeerOrder) {
    const auto order = [](const Topology& t) {
        std::vector<int> all;
        for (int index = 0; index < OneTower::of(t).size; ++index)
            for (int tower = 0; tower < t.towers(); ++tower)
                all.push_back(PeersOf<OneTower>::of(t).member(index, tower));
        return all;
    };
    EXPECT_EQ(order({.hosts = 2, .ranks_per_host = 2}), (std::vector<int>{0, 2, 1, 3}));
    EXPECT_EQ(order({.hosts = 4, .ranks_per_host = 2, .hosts_per_tower = 2}),
              (std::vector<int>{0, 4, 1, 5, 2, 6, 3, 7}));
    EXPECT_EQ(order({.hosts = 4, .ranks_per_host = 1, .hosts_per_tower = 4}), (std::vector<int>{0, 1, 2, 3}));
}

TEST(Groups, TowersInsideAGroupAreThoseAround) {
    const Topology t{.hosts = 8, .ranks_per_host = 2, .hosts_per_tower = 2};
    EXPECT_EQ((Within<OneTower, Hosts<4>>::of(t)), OneTower::of(t));
    EXPECT_EQ((Within<OneTower, Hosts<2>>::of(t)), OneTower::of(t));
    EXPECT_EQ((Within<OneTower, Hosts<1>>::of(t)), OneHost::of(t));
}

TEST(TopologyTest, HasNoMoreRanksThanAnIntCounts) {
    EXPECT_THROW(static_cast<void>(Topology::checked({.hosts = 70000, .ranks_per_host = 70000})), BadInput);
    EXPECT_EQ(Topology::checked({.hosts = 65536, .ranks_per_host = 32767}).ranks(), 65536 * 32767);
}

TEST(Groups, AHostIsInsideAndPeersAreAcross) {
    const Topology t{.hosts = 4, .ranks_per_host = 3};
    for (int me = 0; me < t.ranks(); ++me) {
        for (int index = 0; index < OneHost::of(t).size; ++index)
            EXPECT_EQ(t.host_of(OneHost::of(t).member(me, index)), t.host_of(me));
        EXPECT_EQ(Peers::of(t).size, 4);
        for (int index = 0; index < Peers::of(t).size; ++index)
            EXPECT_EQ(t.local_of(Peers::of(t).member(me, index)), t.local_of(me));
    }
    EXPECT_EQ(Hosts<2>::of(t).member(7, 0), 6);  // hosts 2 and 3
    EXPECT_EQ(Hosts<2>::of(t).size, 6);
    EXPECT_EQ(PeersOf<Hosts<2>>::of(t).member(7, 0), 1);
}

}  // namespace
}  // namespace shardwise_test
