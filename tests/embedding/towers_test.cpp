// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Relays: what crosses hosts under each collective, by the cost reader, which the laws hold against what is moved; and
// what becomes of a wrong peer order.

#include "shardwise/sharding/towers.hpp"

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"

namespace shardwise_test {
namespace {

namespace sw = shardwise;

struct World {
    sw::Topology topology;
    std::vector<sw::TableConfig> tables;
    std::vector<sw::JaggedBatch<std::int64_t>> batches;  // (rank)

    [[nodiscard]] std::vector<sw::JaggedView<std::int64_t>> views() const {
        std::vector<sw::JaggedView<std::int64_t>> all;
        for (const auto& batch : batches)
            all.push_back(batch.view());
        return all;
    }
};

/// \param shortest  bag: without empty ones no vector stays at home for want of ids
World random_world(const sw::Topology& topology, std::uint64_t seed, std::uint64_t shortest = 0) {
    std::mt19937_64 random{seed};
    World world{.topology = topology, .tables = {}, .batches = {}};
    for (int t = 0; t < 5; ++t)
        world.tables.push_back(
            {.name = "t" + std::to_string(t), .rows = 100, .dim = static_cast<int>(topology.ranks() + random() % 30)});
    for (int rank = 0; rank < topology.ranks(); ++rank) {
        sw::JaggedBatch<std::int64_t> batch;
        batch.samples = static_cast<std::int64_t>(1 + random() % 9);
        batch.features = 5;
        for (std::int64_t bag = 0; bag < 5 * batch.samples; ++bag) {
            batch.lengths.push_back(static_cast<std::int32_t>(shortest + random() % (6 - shortest)));
            for (std::int32_t k = 0; k < batch.lengths.back(); ++k)
                batch.values.push_back(static_cast<std::int64_t>(random() % 100));
        }
        world.batches.push_back(std::move(batch));
    }
    return world;
}

/// Payload that crosses hosts in exchanges whose name contains `what`, in bytes.
std::int64_t crossing(const sw::Program& program, const sw::LayerCost& cost, const std::string& what) {
    std::int64_t bytes = 0;
    for (const sw::SegmentCost& segment : cost.segments) {
        const auto& posts = program.segments[segment.segment].posts;
        for (std::size_t i = 0; i < posts.size(); ++i)
            if (posts[i].name.find(what) != std::string::npos) bytes += segment.steps[i].total().cross_host.payload;
    }
    return bytes;
}

struct Crossing {
    std::int64_t ids;
    std::int64_t vectors;
    std::int64_t gradients;
    friend bool operator==(const Crossing&, const Crossing&) = default;
};
template <class S, class C, class P = sw::Sum>
Crossing crossing(const World& world, const sw::Towers& towers) {
    using Layer = sw::EmbeddingLayer<sw::Sharding<S>, sw::Collective<C>, sw::Pooling<P>, sw::Optimizer<sw::Sgd>>;
    Crossing found{};
    sw::ThreadWorld threads{world.topology};
    threads.run([&](sw::ThreadCommunicator& comm) {
        Layer layer{comm, world.tables, {.towers = towers}};
        if (comm.rank() != 0) return;
        const sw::LayerCost cost = layer.predict_cost(world.views());
        found = {.ids = crossing(layer.program(), cost, "Ids"),
                 .vectors = crossing(layer.program(), cost, "Vectors"),
                 .gradients = crossing(layer.program(), cost, "Gradients")};
    });
    return found;
}

class Relays : public testing::TestWithParam<std::pair<sw::Topology, int>> {};

TEST_P(Relays, MoveAsManyBytesAcrossHostsAsFlatOnTheSamePlacement) {
    const auto& [topology, count] = GetParam();
    const World world = random_world(topology, 7, 1);
    const sw::Towers towers = sw::deal_tables(world.tables, count);
    if (count != topology.hosts) {  // inside a tower of several hosts, vectors cross hosts on their way to a relay
        const Crossing relayed = crossing<sw::Table, sw::Hierarchical>(world, towers);
        const Crossing flat = crossing<sw::Table, sw::Flat>(world, towers);
        EXPECT_EQ(relayed.ids, flat.ids);
        EXPECT_GE(relayed.vectors, flat.vectors);
        return;
    }
    EXPECT_EQ((crossing<sw::Table, sw::Hierarchical>(world, towers)), (crossing<sw::Table, sw::Flat>(world, towers)));
    EXPECT_EQ((crossing<sw::Col<>, sw::Hierarchical>(world, towers)), (crossing<sw::Col<>, sw::Flat>(world, towers)));
    EXPECT_EQ((crossing<sw::Col<3>, sw::Hierarchical>(world, towers)), (crossing<sw::Col<3>, sw::Flat>(world, towers)));
    // blocks of a table in several towers
    EXPECT_EQ((crossing<sw::Col<3>, sw::Hierarchical>(world, {})), (crossing<sw::Col<3>, sw::Flat>(world, {})));
    EXPECT_EQ((crossing<sw::Row, sw::Hierarchical, sw::None>(world, towers)),
              (crossing<sw::Row, sw::Flat, sw::None>(world, towers)));
    if (topology.hosts > 1) {
        EXPECT_GT((crossing<sw::Table, sw::Flat>(world, towers).vectors), 0);
    }
}

/// Every bag has an id in every shard of rows.
World world_of_full_bags(const sw::Topology& topology) {
    World world = random_world(topology, 8);
    for (auto& batch : world.batches) {
        batch.values.clear();
        for (std::int32_t& length : batch.lengths) {
            length = topology.ranks();
            for (int row = 0; row < length; ++row)
                batch.values.push_back(row);
        }
    }
    return world;
}

TEST_P(Relays, SendOneSumWhereFlatSendsOneFromEachRank) {
    const auto& [topology, count] = GetParam();
    const World world = world_of_full_bags(topology);
    const Crossing flat = crossing<sw::Row, sw::Flat>(world, {});
    const Crossing two_stage = crossing<sw::Row, sw::TwoStage>(world, {});
    EXPECT_EQ(two_stage.ids, flat.ids);
    EXPECT_EQ(two_stage.vectors * topology.ranks_per_host, flat.vectors);
    EXPECT_EQ(two_stage.gradients * topology.ranks_per_host, flat.gradients);
    if (count != topology.hosts) return;  // inside a tower of several hosts, parts cross hosts too
    const sw::Towers towers = sw::deal_tables(world.tables, count);
    const Crossing placed = crossing<sw::Row, sw::Flat>(world, towers);
    const Crossing towered = crossing<sw::Row, sw::Hierarchical>(world, towers);
    EXPECT_EQ(towered.ids, placed.ids);
    EXPECT_EQ(towered.vectors * topology.ranks_per_host, placed.vectors);
    EXPECT_EQ(towered.gradients * topology.ranks_per_host, placed.gradients);
}

INSTANTIATE_TEST_SUITE_P(Topologies, Relays,
                         testing::Values(std::pair{sw::Topology{1, 4}, 1}, std::pair{sw::Topology{2, 2}, 2},
                                         std::pair{sw::Topology{4, 1}, 4}, std::pair{sw::Topology{4, 1}, 2},
                                         std::pair{sw::Topology{3, 2}, 3}, std::pair{sw::Topology{2, 3}, 1},
                                         std::pair{sw::Topology{4, 2}, 2}));

/// The neighbours of a relay in place of its peers.
struct WrongPeers {
    using across = sw::OneTower;
    static std::string name() { return "WrongPeers"; }
    static constexpr sw::Members of(const sw::Topology& t) noexcept { return {.size = t.ranks_per_host, .stride = 1}; }
};

/// A layer whose plan is another one.
template <class Line>
class LayerWithPlan final : public sw::LayerBase {
  public:
    using policies = sw::LayerPolicies<sw::Sharding<sw::Table>, sw::Collective<sw::Hierarchical>>;
    LayerWithPlan(sw::CommunicatorRef comm, const World& world)
        : LayerBase{comm, world.tables, traits(), {.towers = sw::deal_tables(world.tables, world.topology.hosts)}} {}

  private:
    static sw::LayerTraits traits() {
        sw::LayerTraits traits = sw::layer_traits<policies>({}, {});
        traits.program = sw::make_program<sw::steps::EmbeddingDomain, Line>();
        return traits;
    }
};
template <class P>
using LineOver =
    sw::Plan<sw::steps::Split<sw::Table>, sw::steps::ExchangeIds<sw::World, sw::steps::RelaysIn<sw::OneTower, false>>,
             sw::steps::Parameters<sw::RowwiseAdagrad<>, sw::Tree>, sw::steps::Lookup<true>,
             sw::steps::ExchangeVectors<sw::OneTower, sw::Fp32, sw::Fp32, true>,
             sw::steps::ExchangeVectors<P, sw::Fp32, sw::Fp32>, sw::steps::Join<sw::Table, sw::Sum>>;

/// The result of every rank's lookup. \throws what a rank throws
template <class Line>
std::vector<std::vector<float>> looked_up(const World& world) {
    std::vector<std::vector<float>> results(world.batches.size());
    sw::ThreadWorld threads{world.topology};
    threads.run([&](sw::ThreadCommunicator& comm) {
        LayerWithPlan<Line> layer{comm, world};
        auto flight = layer.start(world.batches[static_cast<std::size_t>(comm.rank())].view());
        const auto pooled = layer.forward(flight).pooled;
        results[static_cast<std::size_t>(comm.rank())].assign(pooled.data(),
                                                              pooled.data() + pooled.rows() * pooled.columns());
        flight.end();
    });
    return results;
}

TEST(PeerOrder, AWrongOneIsFound) {
    static_assert(std::is_same_v<LineOver<sw::PeersOf<sw::OneTower>>, sw::PlanOf<LayerWithPlan<sw::Plan<>>::policies>>);
    World world = random_world({.hosts = 2, .ranks_per_host = 2}, 9);
    static_cast<void>(looked_up<LineOver<sw::PeersOf<sw::OneTower>>>(world));
    // batches differ in size, so that a message is not what its receiver expects
    EXPECT_THROW(static_cast<void>(looked_up<LineOver<WrongPeers>>(world)), sw::Mismatch);
    // and where they do not, each expects vectors that nobody sends
    for (auto& batch : world.batches) {
        batch.samples = 1;
        batch.features = 4;
        batch.lengths.assign(4, 1);
        batch.values.assign(4, &batch - world.batches.data());
    }
    world.tables.pop_back();  // two tables a tower
    for (sw::TableConfig& table : world.tables)
        table.dim = 4;
    EXPECT_THROW(static_cast<void>(looked_up<LineOver<WrongPeers>>(world)), sw::Mismatch);
}

}  // namespace
}  // namespace shardwise_test
