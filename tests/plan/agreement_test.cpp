// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/plan/itinerary.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Errors are agreed on exactly when every rank has heard every other, however groups follow each other.

namespace shardwise_test {
namespace {

namespace sw = shardwise;

struct Nothing {
    struct Lanes {};
    struct Cost {};
};

/// An exchange of nothing inside G; `Tag` tells two of them apart.
template <class G, int Tag = 0>
struct Pass {
    template <class Form>
    using Out = Form;
    using Adjoint = sw::Plan<>;
    using Uses = boost::mp11::mp_list<Pass>;
    using Crosses = G;
    static std::string name() { return "Pass"; }
    struct Tape final : sw::Exchange {
        sw::PartSize size(int) override { return {}; }
        void pack(int, sw::ByteWriter&) override {}
        void unpack(int, sw::ByteReader&) override {}
        void end() override {}
    };
    template <class V>
    static sw::Exchange& begin(sw::StepEnv&, V& view) {
        return view.template tape<Pass>();
    }
    static void shape(const sw::CostEnv&, Nothing::Cost&, sw::TrafficMatrix&) {}
};

/// "o" where a round opens, "a" where it agrees, "oa" where it does both, "-" for neither; segments without posts are
/// left out.
template <class... Steps>
std::string rounds(const sw::Topology& topology) {
    const sw::Program program = sw::make_program<Nothing, sw::Plan<Steps...>>();
    const std::vector<sw::Agreement> all = sw::agreements(program, topology);
    std::string text;
    for (std::size_t s = 0; s < all.size(); ++s) {
        if (program.segments[s].posts.empty()) continue;
        if (!text.empty()) text += ' ';
        text += std::string{all[s].opens ? "o" : ""} + (all[s].agrees ? "a" : "");
        if (!all[s].opens && !all[s].agrees) text += '-';
    }
    return text;
}

using sw::Hosts;
using sw::OneHost;
using sw::Peers;
using sw::PeersOf;
using sw::World;

TEST(Agreement, FollowsFromTheGroupsThatAreCrossed) {
    const sw::Topology t{.hosts = 4, .ranks_per_host = 2};
    EXPECT_EQ((rounds<Pass<World>>(t)), "oa");
    EXPECT_EQ((rounds<Pass<OneHost>, Pass<Peers>>(t)), "o a");
    EXPECT_EQ((rounds<Pass<Peers>, Pass<OneHost>>(t)), "o a");
    EXPECT_EQ((rounds<Pass<Hosts<2>>, Pass<PeersOf<Hosts<2>>>>(t)), "o a");
    EXPECT_EQ((rounds<Pass<OneHost>, Pass<PeersOf<Hosts<2>>>>(t)), "o -");  // two hosts of a tower never meet
    EXPECT_EQ((rounds<Pass<OneHost>, Pass<sw::Within<Peers, Hosts<2>>>, Pass<PeersOf<Hosts<2>>>>(t)), "o - a");
    EXPECT_EQ((rounds<Pass<World>, Pass<OneHost>, Pass<OneHost, 1>, Pass<Peers>>(t)), "oa o - a");
}

/// An exchange inside the host, and across hosts on the way back.
struct ThereAndAcross : Pass<OneHost> {
    using Adjoint = sw::Plan<Pass<Peers>>;
};

TEST(Agreement, BackwardBeginsAnew) {
    const sw::Topology t{.hosts = 2, .ranks_per_host = 2};
    EXPECT_EQ(rounds<ThereAndAcross>(t), "o o");  // what was noted forward has been thrown, or lost its flight
}

TEST(Agreement, WhereATierIsMissingItsExchangeIsNotNeeded) {
    EXPECT_EQ((rounds<Pass<OneHost>, Pass<Peers>>({.hosts = 1, .ranks_per_host = 4})), "oa o");
    EXPECT_EQ((rounds<Pass<OneHost>, Pass<Peers>>({.hosts = 4, .ranks_per_host = 1})), "o a");
    EXPECT_EQ((rounds<Pass<OneHost>, Pass<Peers>>({.hosts = 1, .ranks_per_host = 1})), "oa oa");
}

}  // namespace
}  // namespace shardwise_test
