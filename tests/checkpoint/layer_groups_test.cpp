// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/support.hpp"
#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/flex.hpp"
#include "shardwise/sharding/table.hpp"

namespace {

namespace sw = shardwise;
using checkpoint_test::TemporaryFile;

const std::vector<sw::TableConfig> copied_tables = {
    {.name = "a", .rows = 37, .dim = 6}, {.name = "b", .rows = 3, .dim = 3}, {.name = "c", .rows = 50, .dim = 1}};

/// The ids of a step on a rank: other rows on every rank, and some of them on several.
std::vector<std::int64_t> ids_of(int rank, std::int64_t step) {
    std::vector<std::int64_t> ids;
    for (const sw::TableConfig& table : copied_tables)
        for (int i = 0; i < 4; ++i)
            ids.push_back((step * 7 + i * (rank + 2)) % table.rows);
    return ids;
}
sw::JaggedView<std::int64_t> view_of(const std::vector<std::int64_t>& ids) {
    return {.samples = 4,
            .features = std::ssize(copied_tables),
            .values = ids,
            .lengths = {},
            .offsets = {},
            .weights = {},
            .keys = {}};
}

/// Steps first + 1 to last.
template <class Layer>
void train(Layer& layer, int rank, int first, int last) {
    for (int step = first; step < last; ++step) {
        const std::vector<std::int64_t> ids = ids_of(rank, step);
        const auto out = layer.forward(view_of(ids));
        std::vector<float> gradient(static_cast<std::size_t>(out.rows() * out.columns()));
        for (std::size_t i = 0; i < gradient.size(); ++i)
            gradient[i] = out.data()[i] - 0.01F * static_cast<float>((i + static_cast<std::size_t>(rank)) % 5);
        layer.backward(sw::MatrixView<const float>{gradient.data(), out.rows(), out.columns()});
    }
}

/// (table, row, column or -1 for the row's moment): the value on this rank.
using Values = std::map<std::tuple<int, std::int64_t, int>, float>;
Values values_of(sw::LayerBase& layer) {
    Values values;
    layer.for_each_shard([&](const sw::ShardView& shard, const sw::ShardRowNumbers& row) {
        for (std::int64_t local = 0; local < shard.rows; ++local) {
            for (int d = 0; d < shard.dim; ++d)
                values[{shard.table, row(local), shard.first_column + d}] = shard.weights[local * shard.dim + d];
            if (layer.row_slots() != 0) values[{shard.table, row(local), -1}] = shard.row_state[local];
        }
    });
    return values;
}

template <class... Policies>
using Layer = sw::EmbeddingLayer<Policies..., sw::Optimizer<sw::RowwiseAdagrad<>>>;

/// What one composition does with one file on one topology.
struct Composition {
    std::string name;
    std::function<void(sw::Topology, sw::GroupOptions, const std::string& load, const std::string& save)> resave;
};
template <class... Policies>
Composition composition(const std::string& name) {
    return {name, [](sw::Topology topology, sw::GroupOptions groups, const std::string& load, const std::string& save) {
                sw::ThreadWorld world{topology};
                world.run([&](sw::ThreadCommunicator& comm) {
                    Layer<Policies...> layer{comm, copied_tables, {.seed = 5, .groups = groups}};
                    sw::load_layer(comm, load, layer);
                    sw::save_layer(comm, save, layer);
                });
            }};
}

/// Trains `steps` steps in groups and saves. \returns each rank's values behind that
template <class... Policies>
std::vector<Values> saved_in_groups(sw::Topology topology, sw::GroupOptions groups, int steps,
                                    const std::string& path) {
    std::vector<Values> values(static_cast<std::size_t>(topology.ranks()));
    sw::ThreadWorld world{topology};
    world.run([&](sw::ThreadCommunicator& comm) {
        Layer<Policies...> layer{comm, copied_tables, {.groups = groups}};
        train(layer, comm.rank(), 0, steps);
        sw::save_layer(comm, path, layer);
        EXPECT_FALSE(layer.sync());  // the save did
        values[static_cast<std::size_t>(comm.rank())] = values_of(layer);
    });
    return values;
}

const sw::Topology two_by_two{.hosts = 2, .ranks_per_host = 2};

TEST(GroupsCheckpoint, OfTwoGroupsLoadsBitForBitIntoAnyOtherNumberOfThem) {
    using Placement = sw::GroupPlacement;
    const std::vector<Composition> others{
        composition<sw::Sharding<sw::Row>>("row"), composition<sw::Sharding<sw::Col<2>>>("col2"),
        composition<sw::Sharding<sw::Table>>("table"), composition<sw::Sharding<sw::DP>>("dp"),
        composition<sw::Sharding<sw::Flex>>("flex")};
    const TemporaryFile file{"two_groups"};
    const TemporaryFile again{"other_groups"};
    for (const Placement placement : {Placement::across_hosts, Placement::inside_hosts})
        for (const int steps : {3, 4}) {  // behind a sync, and between two
            const auto values = saved_in_groups<sw::Sharding<sw::Row>>(
                two_by_two, {.count = 2, .placement = placement, .sync_every = 3}, steps, file.path());
            const std::string expected = file.read();
            ASSERT_FALSE(expected.empty());
            const sw::ReplicaGroups groups = sw::replica_groups(two_by_two, 2, placement);
            for (int rank = 0; rank < 4; ++rank)  // the same on all copies
                EXPECT_EQ(values[static_cast<std::size_t>(rank)],
                          values[static_cast<std::size_t>(groups.rank_of(0, groups.index_of(rank)))]);
            for (const Composition& other : others)
                for (const auto& [topology, count] :
                     {std::pair{two_by_two, 1}, std::pair{two_by_two, 2}, std::pair{two_by_two, 4},
                      std::pair{sw::Topology{.hosts = 4, .ranks_per_host = 2}, 4},
                      std::pair{sw::Topology{.hosts = 1, .ranks_per_host = 3}, 1},
                      std::pair{sw::Topology{.hosts = 1, .ranks_per_host = 3}, 3}}) {
                    SCOPED_TRACE(other.name + ", " + std::to_string(count) + " groups of " +
                                 std::to_string(topology.ranks()) + " ranks");
                    other.resave(topology, {.count = count}, file.path(), again.path());
                    EXPECT_EQ(again.read(), expected);
                }
        }
}

TEST(GroupsCheckpoint, OneGroupLoadsIntoEveryCopy) {
    const TemporaryFile file{"one_group"};
    saved_in_groups<sw::Sharding<sw::Col<>>>(two_by_two, {}, 3, file.path());
    sw::ThreadWorld world{two_by_two};
    std::vector<Values> values(4);
    world.run([&](sw::ThreadCommunicator& comm) {
        Layer<sw::Sharding<sw::Table>> layer{comm, copied_tables, {.seed = 9, .groups = {.count = 4}}};
        sw::load_layer(comm, file.path(), layer);
        values[static_cast<std::size_t>(comm.rank())] = values_of(layer);
    });
    EXPECT_EQ(values[0].size(), 37U * 7 + 3 * 4 + 50 * 2);
    for (const Values& theirs : values)
        EXPECT_EQ(theirs, values[0]);
}

TEST(GroupsCheckpoint, ARunCutAtASyncEndsWithTheFileOfARunInOne) {
    for (const sw::SyncRows rows : {sw::SyncRows::touched, sw::SyncRows::all}) {
        const sw::GroupOptions groups{.count = 2, .placement = {}, .sync_every = 3, .rows = rows};
        const TemporaryFile whole{"whole"};
        const TemporaryFile cut{"cut"};
        saved_in_groups<sw::Sharding<sw::Row>>(two_by_two, groups, 8, whole.path());
        saved_in_groups<sw::Sharding<sw::Row>>(two_by_two, groups, 6, cut.path());
        sw::ThreadWorld world{two_by_two};
        world.run([&](sw::ThreadCommunicator& comm) {
            Layer<sw::Sharding<sw::Row>> layer{comm, copied_tables, {.seed = 9, .groups = groups}};
            sw::load_layer(comm, cut.path(), layer);
            EXPECT_EQ(layer.steps(), 6);
            train(layer, comm.rank(), 6, 8);
            sw::save_layer(comm, cut.path(), layer);
        });
        EXPECT_EQ(cut.read(), whole.read());
    }
}

// What a layer did before it loaded is nothing that a later sync would move.
TEST(GroupsCheckpoint, LoadingForgetsWhatWasTouched) {
    const TemporaryFile file{"touched"};
    const sw::GroupOptions groups{.count = 2, .placement = {}, .sync_every = 3, .rows = {}};
    saved_in_groups<sw::Sharding<sw::Row>>(two_by_two, groups, 3, file.path());
    sw::ThreadWorld world{two_by_two};
    world.run([&](sw::ThreadCommunicator& below) {
        sw::CountingCommunicator comm{below};
        Layer<sw::Sharding<sw::Row>> layer{comm, copied_tables, {.groups = groups}};
        train(layer, comm.rank(), 100, 102);
        sw::load_layer(comm, file.path(), layer);
        EXPECT_FALSE(layer.sync());
        sw::SyncTally syncs{3};
        sw::Traffic predicted;
        comm.reset();
        for (int step = 3; step < 6; ++step) {
            std::vector<std::vector<std::int64_t>> ids;
            for (int rank = 0; rank < 4; ++rank)
                ids.push_back(ids_of(rank, step));
            std::vector<sw::JaggedView<std::int64_t>> views;
            for (const auto& theirs : ids)
                views.push_back(view_of(theirs));
            const sw::LayerCost cost = layer.predict_cost(views, nullptr, sw::BatchKind::any, &syncs);
            for (const sw::TrafficMatrix& moved : {cost.forward, cost.backward, cost.sync})
                predicted += moved.sent_by(comm.rank());
            EXPECT_EQ(cost.sync_segments.empty(), step != 5);
            train(layer, comm.rank(), step, step + 1);
        }
        EXPECT_FALSE(layer.sync());
        EXPECT_EQ(comm.sent().sent_by(comm.rank()), predicted);
    });
}

// A save right behind a step, while its sync is under way; and tables are not read meanwhile.
TEST(GroupsCheckpoint, ASaveEndsTheSyncThatIsUnderWay) {
    const TemporaryFile file{"under_way"};
    const TemporaryFile later{"later"};
    sw::ThreadWorld world{two_by_two};
    world.run([&](sw::ThreadCommunicator& comm) {
        Layer<sw::Sharding<sw::Row>> layer{comm, copied_tables, {.groups = {.count = 2}}};
        train(layer, comm.rank(), 0, 1);
        EXPECT_THROW(layer.for_each_shard([](const sw::ShardView&, const sw::ShardRowNumbers&) {}), sw::BadInput);
        const sw::Checkpoint all{.layer = sw::shards_of(layer), .dense = {}, .numbers = {}};
        sw::save_checkpoint(comm, file.path(), all);
        EXPECT_FALSE(layer.sync());
        sw::save_checkpoint(comm, later.path(), all);
    });
    EXPECT_EQ(file.read(), later.read());
}

}  // namespace
