// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdint>
#include <limits>
#include <map>
#include <ratio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/rms_prop.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/plan/trace.hpp"

namespace {

namespace sw = shardwise;

const std::vector<sw::TableConfig> grouped_tables{{.name = "a", .rows = 40, .dim = 4},
                                                  {.name = "b", .rows = 9, .dim = 4}};
const sw::Topology four_ranks{.hosts = 2, .ranks_per_host = 2};

template <class Make>
std::string message_of(Make make) {
    try {
        static_cast<void>(make());
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return "nothing was wrong";
}
/// What a layer on paper with these policies and options says is wrong.
template <class... Policies>
std::string refused(const sw::GroupOptions& options) {
    return message_of(
        [&] { return sw::EmbeddingLayer<Policies...>::blueprint(four_ranks, grouped_tables, {.groups = options}); });
}

template <class... Policies>
sw::LayerGroups groups_of(const sw::GroupOptions& options = {}) {
    return sw::EmbeddingLayer<Policies...>::blueprint(four_ranks, grouped_tables, {.groups = options}).groups();
}

TEST(Groups, ATypeAndOptionsSayTheSameOrOneOfThemSays) {
    using All = sw::Groups<2, sw::InsideHosts, sw::SyncEvery<3>, sw::AllRows>;
    const sw::LayerGroups typed = groups_of<All>();
    EXPECT_EQ(typed.ranks, sw::replica_groups(four_ranks, 2, sw::GroupPlacement::inside_hosts));
    EXPECT_EQ(typed.sync_every, 3);
    EXPECT_EQ(typed.rows, sw::SyncRows::all);
    const sw::GroupOptions same{
        .count = 2, .placement = sw::GroupPlacement::inside_hosts, .sync_every = 3, .rows = sw::SyncRows::all};
    for (const sw::LayerGroups& other :
         {groups_of<All>(same), groups_of<sw::Groups<>>(same), groups_of<>(same),
          groups_of<sw::Groups<2, sw::AllRows>>(
              {.count = 1, .placement = sw::GroupPlacement::inside_hosts, .sync_every = 3, .rows = {}})}) {
        EXPECT_EQ(other.ranks, typed.ranks);
        EXPECT_EQ(other.sync_every, 3);
        EXPECT_EQ(other.rows, sw::SyncRows::all);
    }
    const sw::LayerGroups defaults = groups_of<sw::Groups<2>>();
    EXPECT_EQ(defaults.placement, sw::GroupPlacement::across_hosts);
    EXPECT_EQ(defaults.sync_every, 1);
    EXPECT_EQ(defaults.rows, sw::SyncRows::touched);
    EXPECT_EQ(groups_of<>().count(), 1);
}

TEST(Groups, WhatPolicyAndOptionsSayDifferentlyIsRefused) {
    using All = sw::Groups<2, sw::InsideHosts, sw::SyncEvery<3>, sw::AllRows>;
    EXPECT_EQ(refused<All>({.count = 4}),
              "the layer's policy says groups 2, and its options say 4: leave one of them out");
    EXPECT_EQ(refused<All>({.count = 2, .placement = sw::GroupPlacement::across_hosts}),
              "the layer's policy says placement inside, and its options say across: leave one of them out");
    EXPECT_EQ(refused<All>({.count = 2, .placement = {}, .sync_every = 1}),
              "the layer's policy says steps between syncs 3, and its options say 1: leave one of them out");
    EXPECT_EQ(refused<All>({.count = 2, .placement = {}, .sync_every = {}, .rows = sw::SyncRows::touched}),
              "the layer's policy says synced rows all, and its options say touched: leave one of them out");
}

TEST(Groups, WhatThePlacementDoesNotHaveIsRefusedWithWhatItHas) {
    EXPECT_EQ(refused<>({.count = 3}),
              "3 groups across hosts, of 2 hosts of 2 ranks: a group is whole hosts, or an "
              "equal part of one; give one of 1, 2, 4");
    EXPECT_EQ(refused<>({.count = 4, .placement = sw::GroupPlacement::inside_hosts}),
              "4 groups inside hosts, of 2 hosts of 2 ranks: the copies of a shard are ranks of one host; give one of "
              "1, 2");
    EXPECT_EQ(refused<>({.count = 2, .placement = {}, .sync_every = 0}),
              "sync_every 0: copies are synced every so many steps; give a positive number");
    for (const sw::GroupOptions& useless :
         {sw::GroupOptions{.count = 1, .placement = sw::GroupPlacement::across_hosts},
          sw::GroupOptions{.count = 1, .placement = {}, .sync_every = 2},
          sw::GroupOptions{.count = 1, .placement = {}, .sync_every = {}, .rows = sw::SyncRows::all}})
        EXPECT_NE(refused<>(useless).find("where there is one group, which has no copies: leave it out, or give more "
                                          "groups"),
                  std::string::npos);
    const auto towers = [&](const sw::Towers& asked) {
        return message_of([&] {
            return sw::EmbeddingLayer<sw::Collective<sw::Hierarchical>>::blueprint(
                four_ranks, grouped_tables, {.towers = asked, .groups = {.count = 2}});
        });
    };
    EXPECT_EQ(
        towers({{"a"}, {"b"}}),
        "2 towers do not divide the 1 host of each of 2 groups: a group has towers of its own; give a number that "
        "divides its hosts");
}

/// c as the rule of a layer has it.
template <class... Policies>
float scale_of(const sw::GroupOptions& options = {}) {
    return sw::EmbeddingLayer<Policies...>::blueprint(four_ranks, grouped_tables, {.groups = options})
        .traits()
        .rule->moment_scale()
        .value();
}

TEST(Groups, MomentsAreScaledByTheirNumberUnlessTheRuleSaysElse) {
    using Rowwise = sw::RowwiseAdagrad<>;
    EXPECT_EQ((scale_of<sw::Optimizer<Rowwise>>()), 1.0F);
    EXPECT_EQ((scale_of<sw::Optimizer<Rowwise>>({.count = 4})), 4.0F);
    EXPECT_EQ((scale_of<sw::Groups<2>, sw::Optimizer<sw::Adam>>()), 2.0F);
    EXPECT_EQ((scale_of<sw::Groups<2>, sw::Optimizer<sw::RmsProp>>()), 2.0F);
    EXPECT_EQ((scale_of<sw::Optimizer<sw::RowwiseAdagrad<sw::MomentScale<std::ratio<3, 2>{}>>>>({.count = 2})), 1.5F);
    EXPECT_EQ((scale_of<sw::Optimizer<sw::RowwiseAdagrad<sw::MomentScale<>>>>({.count = 2})), 2.0F);
    EXPECT_EQ((scale_of<sw::Groups<4>, sw::Optimizer<sw::Adam, sw::MomentScale<1>>>()), 1.0F);
    EXPECT_NE((refused<sw::Optimizer<sw::Adam, sw::MomentScale<3>>>({.count = 2})).find("moment"), std::string::npos);
    EXPECT_NE((refused<sw::Optimizer<sw::Adam, sw::MomentScale<2>>>({})).find("moment"), std::string::npos);

    const auto named = [&](const char* optimizer, float scale, int groups) {
        return message_of([&] {
            return sw::draw_layer(four_ranks, grouped_tables, {.optimizer = optimizer, .moment_scale = scale},
                                  {.groups = {.count = groups}});
        });
    };
    EXPECT_EQ(named("rms_prop", 2.5F, 4), "nothing was wrong");
    EXPECT_EQ(named("sgd", 2.0F, 4), "optimizer 'sgd' has no moment to scale: leave the moment scale out");
    for (const float wrong : {4.5F, 0.0F, -1.0F, std::numeric_limits<float>::quiet_NaN()})
        EXPECT_NE(named("adam", wrong, 4).find("moment"), std::string::npos) << wrong;
}

/// A step on batches that make all four ranks exchange.
void step_of(sw::LayerBase& layer, int rank, int number) {
    std::vector<std::int64_t> ids;
    for (const sw::TableConfig& table : grouped_tables)
        for (int i = 0; i < 6; ++i)
            ids.push_back((number * 5 + i * 3 + rank) % table.rows);
    const sw::JaggedBatch<std::int64_t> batch{.samples = 6, .features = 2, .values = ids, .lengths = {}, .weights = {}};
    auto flight = layer.start(batch.view());
    const sw::LayerVectors out = layer.forward(flight);
    layer.backward(std::move(flight), out);
}

// Time of look-ups and of syncs is told apart from that of other steps.
TEST(Groups, ATracerTellsLookUpsAndSyncs) {
    sw::ThreadWorld world{four_ranks};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::Tracer tracer;
        tracer.record(true);
        sw::EmbeddingLayer<sw::Groups<2>> layer{comm, grouped_tables, {.tracer = &tracer}};
        for (int step = 0; step < 2; ++step)
            step_of(layer, comm.rank(), step);
        layer.sync();
        std::map<std::string, int> looked_up;
        std::map<std::uint32_t, int> synced;
        for (const sw::Span& span : tracer.spans()) {
            if (span.of == sw::SpanOf::lookup) {
                ++looked_up[span.name];
                EXPECT_NE(span.kind, sw::SpanKind::wait) << span.name;
            }
            if (span.of == sw::SpanOf::sync) ++synced[span.flight];
        }
        // messages are packed with rows, results are put together; the update reads rows, too, but looks none up
        EXPECT_EQ(looked_up, (std::map<std::string, int>{
                                 {"Exchange<World, Vectors, fp32>", 2}, {"Join<row, sum>", 2}, {"Lookup<sum>", 2}}));
        ASSERT_EQ(synced.size(), 2U);  // by step
        EXPECT_EQ(synced.at(1), synced.at(2));
        double sum = 0;
        for (const sw::SpanKind kind : {sw::SpanKind::compute, sw::SpanKind::pack, sw::SpanKind::wait})
            sum += tracer.seconds(kind);
        EXPECT_NEAR(sum, tracer.seconds(sw::SpanOf::lookup) + tracer.seconds(sw::SpanOf::other), 1e-9);
        EXPECT_GT(tracer.seconds(sw::SpanOf::lookup), 0);
        EXPECT_GT(tracer.seconds(sw::SpanOf::sync), 0);
    });
}

// By part as predicted; marks are there where they are needed.
TEST(Groups, MemoryIsAsPredictedByPart) {
    using Part = sw::MemoryPart;
    for (const sw::GroupOptions& groups :
         {sw::GroupOptions{}, sw::GroupOptions{.count = 2},
          sw::GroupOptions{.count = 4, .placement = {}, .sync_every = 2, .rows = sw::SyncRows::all}}) {
        sw::ThreadWorld world{four_ranks};
        world.run([&](sw::ThreadCommunicator& comm) {
            sw::EmbeddingLayer<sw::Optimizer<sw::Adam>> layer{comm, grouped_tables, {.groups = groups}};
            for (int step = 0; step < 4; ++step)
                step_of(layer, comm.rank(), step);
            layer.sync();
            const sw::MemoryAccount& memory = layer.memory();
            for (const Part part : {Part::tables, Part::moments, Part::marks})
                EXPECT_EQ(memory.bytes(part), layer.predict_static_bytes(comm.rank(), part));
            EXPECT_EQ(memory.static_bytes(), layer.predict_static_bytes(comm.rank()));
            EXPECT_GT(memory.bytes(Part::moments), memory.bytes(Part::tables));
            EXPECT_EQ(memory.bytes(Part::marks) != 0, groups.count == 2);
            EXPECT_EQ(memory.bytes(Part::syncs) != 0, groups.count != 1);
            EXPECT_EQ(layer.synced_payload() != 0, groups.count != 1);
        });
    }
}

}  // namespace
