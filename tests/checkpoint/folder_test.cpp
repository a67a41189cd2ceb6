// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/support.hpp"
#include "shardwise/checkpoint/checkpoint_folder.hpp"
#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/frozen.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/table.hpp"

/// \file
/// Folders of checkpoints: which stay, what is written beside training, and files that are damaged.

namespace {

namespace sw = shardwise;
using checkpoint_test::TemporaryFolder;

const std::vector<sw::TableConfig> small_tables{{.name = "a", .rows = 7, .dim = 3}, {.name = "b", .rows = 2, .dim = 1}};
using SmallLayer = sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Optimizer<sw::Adam>>;

/// One step of training, other ids on every rank and at every step.
template <class Layer>
void learn(Layer& layer, int rank) {
    const auto step = layer.steps();
    const std::vector<std::int64_t> ids{(step + rank) % 7, (step * 3 + 1) % 7, step % 2, (step + rank) % 2};
    const sw::JaggedBatch<std::int64_t> batch{.samples = 2, .features = 2, .values = ids};
    const auto out = layer.forward(batch.view());
    std::vector<float> gradient(static_cast<std::size_t>(out.rows() * out.columns()));
    for (std::size_t i = 0; i < gradient.size(); ++i)
        gradient[i] = out.data()[i] + 0.25F * static_cast<float>(i % 3);
    layer.backward({gradient.data(), out.rows(), out.columns()});
}

/// All weights and moments that this rank holds.
template <class Layer>
std::vector<float> values_of(Layer& layer) {
    std::vector<float> all;
    for (const sw::TableShard& shard : sw::shards_of(layer).shards) {
        const sw::ShardView& view = shard.view;
        const auto weights = view.rows * view.dim;
        all.insert(all.end(), view.weights, view.weights + weights);
        all.insert(all.end(), view.element_state, view.element_state + weights * layer.element_slots());
        all.insert(all.end(), view.row_state, view.row_state + view.rows * layer.row_slots());
    }
    return all;
}

template <class Call>
std::string refusal(Call call) {
    try {
        call();
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return "";
}

void on_ranks(int ranks, const std::function<void(sw::ThreadCommunicator&)>& body) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = ranks}};
    world.run(body);
}

bool full() {
    const char* text = std::getenv("SHARDWISE_FULL");
    return text != nullptr && std::string{text} == "1";
}

TEST(CheckpointFolder, KeepsTheNewest) {
    const TemporaryFolder folder{"newest"};
    on_ranks(3, [&](sw::ThreadCommunicator& comm) {
        SmallLayer layer{comm, small_tables};
        sw::CheckpointFolder checkpoints{comm, folder.path() + "/", 2};
        std::vector<float> last;
        for (int step = 0; step < 4; ++step) {
            learn(layer, comm.rank());
            checkpoints.save({.layer = sw::shards_of(layer), .dense = {}, .numbers = {}});
        }
        last = values_of(layer);
        sw::barrier(comm);
        const auto there = sw::manifests_in(folder.path());
        EXPECT_EQ(there.size(), 2U);
        EXPECT_EQ(there.begin()->first, 3);
        EXPECT_EQ(there.rbegin()->first, 4);
        SmallLayer other{comm, small_tables};
        sw::load_layer(comm, folder.path(), other);
        EXPECT_EQ(other.steps(), 4);
        EXPECT_EQ(values_of(other), last);
        sw::load_layer(comm, there.begin()->second, other);  // one of them, by its manifest
        EXPECT_EQ(other.steps(), 3);
    });
    int folders = 0;
    for (const auto& entry : std::filesystem::directory_iterator{folder.path()})
        folders += entry.is_directory() ? 1 : 0;
    EXPECT_EQ(folders, 2);
}

/// What is written beside training is what was there at `start`.
TEST(CheckpointFolder, WritesBesideTraining) {
    const TemporaryFolder folder{"beside"};
    on_ranks(2, [&](sw::ThreadCommunicator& comm) {
        SmallLayer layer{comm, small_tables};
        std::vector<float> weight{1.0F, 2.0F};
        sw::CheckpointFolder checkpoints{comm, folder.path()};
        EXPECT_TRUE(checkpoints.written());
        learn(layer, comm.rank());
        const std::vector<float> then = values_of(layer);
        EXPECT_TRUE(checkpoints.start({.layer = sw::shards_of(layer),
                                       .dense = {{.name = "w", .shape = {2}, .values = weight}},
                                       .numbers = {{"n", 7}}}));
        EXPECT_TRUE(checkpoints.under_way());
        weight = {3.0F, 4.0F};
        for (int step = 0; step < 3; ++step)
            learn(layer, comm.rank());
        checkpoints.finish();
        checkpoints.finish();
        EXPECT_FALSE(checkpoints.under_way());
        SmallLayer other{comm, small_tables};
        sw::Checkpoint all{.layer = sw::shards_of(other),
                           .dense = {{.name = "w", .shape = {2}, .values = weight}},
                           .numbers = {{"n", 0}}};
        sw::load_checkpoint(comm, folder.path(), all);
        EXPECT_EQ(other.steps(), 1);
        EXPECT_EQ(values_of(other), then);
        EXPECT_EQ(weight, (std::vector{1.0F, 2.0F}));
        EXPECT_EQ(all.numbers.at("n"), 7);
    });
}

/// Two rounds to begin, three to complete: agree, and gather; agree, gather the parts' sums, and agree.
TEST(CheckpointFolder, RanksAgreeInFewRounds) {
    const TemporaryFolder folder{"rounds"};
    on_ranks(3, [&](sw::ThreadCommunicator& comm) {
        SmallLayer layer{comm, small_tables};
        sw::CountingCommunicator counted{comm};
        sw::CheckpointFolder checkpoints{counted, folder.path()};
        counted.reset();
        EXPECT_TRUE(checkpoints.start({.layer = sw::shards_of(layer), .dense = {}, .numbers = {}}));
        EXPECT_EQ(counted.sent().at(comm.rank(), (comm.rank() + 1) % 3).messages, 2);
        counted.reset();
        checkpoints.finish();
        for (int to = 0; to < 3; ++to)
            if (to != comm.rank()) {
                EXPECT_EQ(counted.sent().at(comm.rank(), to).messages, to == 0 ? 3 : 2);
            }
    });
}

/// A folder of one small checkpoint of two ranks, as files, and what is in it.
struct Small {
    explicit Small(const std::string& folder) {
        on_ranks(2, [&](sw::ThreadCommunicator& comm) {
            SmallLayer layer{comm, small_tables};
            learn(layer, comm.rank());
            sw::CheckpointFolder{comm, folder}.save(
                {.layer = sw::shards_of(layer), .dense = {}, .numbers = {{"n", 5}}});
            values[static_cast<std::size_t>(comm.rank())] = values_of(layer);
        });
    }
    std::vector<std::vector<float>> values{2};  // (rank)
};

/// Loads from a folder that may be damaged: what was saved comes out, or an error that names a file, and nothing has
/// changed. \returns the error, or nothing
std::string load_or_refuse(sw::ThreadCommunicator& comm, SmallLayer& layer, const std::string& folder,
                           const Small& saved) {
    const std::vector<float> before = values_of(layer);
    sw::Checkpoint all{.layer = sw::shards_of(layer), .dense = {}, .numbers = {{"n", 0}}};
    const std::string refused = refusal([&] { sw::load_checkpoint(comm, folder, all); });
    if (refused.empty()) {
        EXPECT_EQ(values_of(layer), saved.values.at(static_cast<std::size_t>(comm.rank())));
        EXPECT_EQ(all.numbers.at("n"), 5);
        EXPECT_EQ(layer.steps(), 1);
    } else {
        EXPECT_NE(refused.find(folder), std::string::npos) << refused;
        EXPECT_EQ(values_of(layer), before) << refused;
        EXPECT_EQ(layer.steps(), 0);
    }
    return refused;
}

/// Damages a file again and again, and loads. \param damage  \returns the bytes of a file instead of its own
void expect_refused(const TemporaryFolder& folder, const Small& saved, const std::string& name, int times,
                    const std::function<std::string(int)>& damage, int& loaded) {
    on_ranks(2, [&](sw::ThreadCommunicator& comm) {
        for (int i = 0; i < times; ++i) {
            if (comm.rank() == 0) folder.write(name, damage(i));
            sw::barrier(comm);
            SmallLayer layer{comm, small_tables};
            const std::string refused = load_or_refuse(comm, layer, folder.path(), saved);
            if (refused.empty() && comm.rank() == 0) ++loaded;
            sw::barrier(comm);
        }
    });
}

TEST(CheckpointFolder, EveryTruncationIsRefusedByName) {
    const TemporaryFolder folder{"truncated"};
    const Small saved{folder.path()};
    const auto files = folder.read();
    EXPECT_EQ(files.size(), 3U);
    for (const auto& file : files) {
        const std::string& name = file.first;
        const std::string& bytes = file.second;
        SCOPED_TRACE(name);
        int loaded = 0;
        const int every = full() ? 1 : 7;
        expect_refused(
            folder, saved, name, static_cast<int>(bytes.size() - 1) / every,
            [&](int i) { return bytes.substr(0, static_cast<std::size_t>(i * every)); }, loaded);
        EXPECT_EQ(loaded, 0);
        folder.write(name, bytes.substr(0, bytes.size() - 1));  // of the manifest the end of its last line
        on_ranks(2, [&](sw::ThreadCommunicator& comm) {
            SmallLayer layer{comm, small_tables};
            EXPECT_EQ(load_or_refuse(comm, layer, folder.path(), saved).empty(), name.ends_with(".json"));
        });
        folder.write(name, bytes);
    }
}

TEST(CheckpointFolder, AFlippedBitIsRefusedByName) {
    const TemporaryFolder folder{"flipped"};
    const Small saved{folder.path()};
    std::mt19937 dice{5};
    for (const auto& file : folder.read()) {
        const std::string& name = file.first;
        const std::string& bytes = file.second;
        SCOPED_TRACE(name);
        int loaded = 0;
        expect_refused(
            folder, saved, name, full() ? 4000 : 250,
            [&](int) {
                std::string other = bytes;
                char& one = other[dice() % other.size()];
                one = static_cast<char>(one ^ (1U << dice() % 8));
                return other;
            },
            loaded);
        if (!name.ends_with(".json")) {  // of the manifest some spaces do not matter
            EXPECT_EQ(loaded, 0);
        }
        folder.write(name, bytes);
    }
}

/// Whatever is damaged in a part, the file and the tensor are named.
TEST(CheckpointFolder, SaysWhichTensorIsDamaged) {
    const TemporaryFolder folder{"tensor"};
    const Small saved{folder.path()};
    for (const auto& file : folder.read()) {
        const std::string& name = file.first;
        const std::string& bytes = file.second;
        if (name.ends_with(".json")) continue;
        std::string other = bytes;
        other.back() = static_cast<char>(other.back() ^ 1);
        folder.write(name, other);
        on_ranks(3, [&](sw::ThreadCommunicator& comm) {
            SmallLayer layer{comm, small_tables};
            const std::string text = refusal([&] { sw::load_layer(comm, folder.path(), layer); });
            EXPECT_NE(text.find(name + ": tensor 'tables/b/1/element_state' has another checksum"), std::string::npos)
                << text;
        });
        folder.write(name, bytes);
        std::filesystem::remove(folder.path() + "/" + name);
        on_ranks(1, [&](sw::ThreadCommunicator& comm) {
            SmallLayer layer{comm, small_tables};
            const std::string text = refusal([&] { sw::load_layer(comm, folder.path(), layer); });
            EXPECT_NE(text.find(name + ": cannot be read"), std::string::npos) << text;
        });
        folder.write(name, bytes);
    }
}

TEST(CheckpointFolder, WhatDoesNotFitIsRefused) {
    const TemporaryFolder folder{"fit"};
    const Small saved{folder.path()};
    on_ranks(2, [&](sw::ThreadCommunicator& comm) {
        const auto load = [&](auto& layer) { return refusal([&] { sw::load_layer(comm, folder.path(), layer); }); };
        SmallLayer more{comm, {{.name = "a", .rows = 8, .dim = 3}}};
        EXPECT_NE(load(more).find("table 'a' has 7 rows of dimension 3, expected 8 of dimension 3"), std::string::npos);
        SmallLayer other{comm, {{.name = "c", .rows = 8, .dim = 3}}};
        EXPECT_NE(load(other).find("has no table 'c'"), std::string::npos);
        sw::EmbeddingLayer<> rule{comm, small_tables};
        EXPECT_NE(load(rule).find("holds the state of optimizer 'adam', and this layer has 'rowwise_adagrad'"),
                  std::string::npos);
        sw::EmbeddingLayer<sw::Optimizer<sw::Frozen>> frozen{comm, {{.name = "b", .rows = 2, .dim = 1}}};
        EXPECT_EQ(load(frozen), "");  // weights of one table
        EXPECT_EQ(frozen.steps(), 1);
        SmallLayer good{comm, small_tables};
        sw::Checkpoint all{.layer = sw::shards_of(good), .dense = {}, .numbers = {{"m", 0}}};
        EXPECT_NE(refusal([&] { sw::load_checkpoint(comm, folder.path(), all); }).find("has no tensor 'm'"),
                  std::string::npos);
        const TemporaryFolder empty{"empty" + std::to_string(comm.rank())};
        std::filesystem::create_directory(empty.path());
        sw::barrier(comm);
        EXPECT_NE(refusal([&] { sw::load_layer(comm, folder.path() + "/no.json", good); }).find("cannot be read"),
                  std::string::npos);
    });
    const TemporaryFolder empty{"empty"};
    std::filesystem::create_directory(empty.path());
    on_ranks(2, [&](sw::ThreadCommunicator& comm) {
        SmallLayer layer{comm, small_tables};
        EXPECT_EQ(refusal([&] { sw::load_layer(comm, empty.path(), layer); }), empty.path() + ": has no checkpoint");
    });
}

/// One run a folder; what a run that ended in the middle has left is no checkpoint, and goes away.
TEST(CheckpointFolder, IsOfOneRunAndForgetsWhatIsNotWhole) {
    const TemporaryFolder folder{"one"};
    const Small saved{folder.path()};
    std::filesystem::create_directory(folder.path() + "/step-000000000009.parts-0");
    folder.write("step-000000000009.parts-0/rank-0.safetensors", "half a fi");
    folder.write("step-000000000009.json.partial", "{");
    on_ranks(2, [&](sw::ThreadCommunicator& comm) {
        SmallLayer layer{comm, small_tables};
        sw::load_layer(comm, folder.path(), layer);
        EXPECT_EQ(layer.steps(), 1);
        sw::CheckpointFolder checkpoints{comm, folder.path()};
        EXPECT_NE(refusal([&] {
                      sw::CheckpointFolder{comm, folder.path()};
                  }).find("another run writes its checkpoints"),
                  std::string::npos);
        learn(layer, comm.rank());
        checkpoints.save({.layer = sw::shards_of(layer), .dense = {}, .numbers = {}});
        sw::barrier(comm);
        EXPECT_FALSE(std::filesystem::exists(folder.path() + "/step-000000000009.parts-0"));
        layer.set_steps(1);
        EXPECT_NE(refusal([&] {
                      checkpoints.save({.layer = sw::shards_of(layer), .dense = {}, .numbers = {}});
                  }).find("holds a checkpoint of step 2, behind which nobody would find one of step 1"),
                  std::string::npos);
        layer.set_steps(2);  // the same once more takes its place
        checkpoints.save({.layer = sw::shards_of(layer), .dense = {}, .numbers = {}});
        EXPECT_THROW((sw::CheckpointFolder{comm, folder.path(), 0}), sw::BadInput);
        EXPECT_NE(refusal([&] {
                      sw::CheckpointFolder{comm, "/proc/no/such/folder"};
                  }).find("/proc/no/such/folder: cannot be made"),
                  std::string::npos);
    });
    EXPECT_EQ(folder.read().size(), 6U);  // two checkpoints of three files
}

}  // namespace
