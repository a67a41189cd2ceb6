// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// Files of weights alone, as other programs write them: of random shapes and types, with tensors of all sorts beside.

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

#include "checkpoint/support.hpp"
#include "shardwise/checkpoint/checkpoint_folder.hpp"
#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/core/half.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/adagrad.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/frozen.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/table.hpp"

namespace {

namespace sw = shardwise;
using checkpoint_test::TemporaryFile;
using checkpoint_test::TemporaryFolder;

/// A file, tensor by tensor.
class AnyFile {
  public:
    void add(const std::string& name, const std::string& type, const std::vector<std::int64_t>& shape,
             const std::string& data) {
        header_[name] = {
            {"dtype", type}, {"shape", shape}, {"data_offsets", {data_.size(), data_.size() + data.size()}}};
        data_ += data;
    }
    template <class T>
    void add(const std::string& name, const std::string& type, const std::vector<std::int64_t>& shape,
             const std::vector<T>& values) {
        std::string data(values.size() * sizeof(T), '\0');
        if (!values.empty()) std::memcpy(data.data(), values.data(), data.size());
        add(name, type, shape, data);
    }
    void metadata(const std::string& key, const std::string& value) { header_["__metadata__"][key] = value; }
    void write(const TemporaryFile& file) const {
        const std::string header = header_.dump();
        const std::uint64_t length = header.size();
        std::string bytes(8, '\0');
        std::memcpy(bytes.data(), &length, 8);
        file.write(bytes + header + data_);
    }

  private:
    nlohmann::ordered_json header_ = nlohmann::ordered_json::object();
    std::string data_;
};

/// What the bits of half precision mean, by the definition: sign, exponent, fraction.
double by_definition(std::uint16_t half) {
    const double sign = (half & 0x8000U) != 0 ? -1 : 1;
    const int exponent = (half >> 10U) & 31U;
    const double fraction = (half & 0x3ffU) / 1024.0;
    if (exponent == 31) return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
    return sign * (exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15));
}

TEST(WeightsAlone, EveryHalfIsWidenedToWhatItIs) {
    static_assert(sw::float_of_half(0x3c00) == 1.0F && sw::float_of_half(0x0001) == 0x1p-24F);
    for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const double expected = by_definition(half);
        const float actual = sw::float_of_half(half);
        if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(actual)) << bits;
        } else {
            ASSERT_EQ(static_cast<double>(actual), expected) << bits;
        }
        ASSERT_EQ(std::signbit(actual), (bits & 0x8000U) != 0) << bits;
    }
}

std::vector<float> widened(const std::string& type, const std::vector<std::uint16_t>& bits) {
    std::vector<float> all;
    for (const std::uint16_t one : bits)
        all.push_back(type == "F16" ? static_cast<float>(by_definition(one))
                                    : std::bit_cast<float>(std::uint32_t{one} << 16U));
    return all;
}
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

template <class Call>
std::string refusal_of(Call call) {
    try {
        call();
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return "";
}

void ranks_do(int ranks, const std::function<void(sw::ThreadCommunicator&)>& body) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = ranks}};
    world.run(body);
}

/// Random finite values of a type, as a file has them, and what they are.
struct RandomWeights {
    std::string type;
    std::string data;
    std::vector<float> floats;
};
RandomWeights random_values(std::size_t count) {
    RandomWeights made{.type = *rc::gen::element<std::string>("F32", "F16", "BF16"), .data = {}, .floats = {}};
    std::mt19937 dice{*rc::gen::arbitrary<std::uint32_t>()};
    if (made.type == "F32") {
        while (made.floats.size() < count) {
            const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(dice()));
            if (std::isfinite(value)) made.floats.push_back(value);
        }
        made.data.resize(count * 4);
        if (count != 0) std::memcpy(made.data.data(), made.floats.data(), made.data.size());
        return made;
    }
    std::vector<std::uint16_t> bits;
    while (bits.size() < count) {
        std::uint32_t drawn = static_cast<std::uint32_t>(dice()) & 0xffffU;
        if (dice() % 4 == 0) drawn &= made.type == "F16" ? 0x83ffU : 0x807fU;  // subnormal
        const auto one = static_cast<std::uint16_t>(drawn);
        if (std::isfinite(widened(made.type, {one})[0])) bits.push_back(one);
    }
    made.floats = widened(made.type, bits);
    made.data.resize(count * 2);
    if (count != 0) std::memcpy(made.data.data(), bits.data(), made.data.size());
    return made;
}

/// Tensors that nobody asks for, of every type there is and one that there is not.
void add_strangers(AnyFile& file) {
    int number = 0;
    for (const auto& [type, bits] : std::vector<std::pair<std::string, int>>{{"BOOL", 8},
                                                                             {"U8", 8},
                                                                             {"I8", 8},
                                                                             {"F8_E5M2", 8},
                                                                             {"F8_E4M3", 8},
                                                                             {"I16", 16},
                                                                             {"U16", 16},
                                                                             {"F16", 16},
                                                                             {"BF16", 16},
                                                                             {"I32", 32},
                                                                             {"U32", 32},
                                                                             {"F32", 32},
                                                                             {"F64", 64},
                                                                             {"I64", 64},
                                                                             {"U64", 64},
                                                                             {"F4", 4},
                                                                             {"OF_LATER", 24}})
        file.add("stranger " + std::to_string(number++), type, {2, 3},
                 std::string(static_cast<std::size_t>(6 * bits / 8), '\xff'));
}

/// The weights of this rank's shards as the whole tables have them.
bool holds(const sw::LayerShards& layer, const std::vector<std::vector<float>>& whole) {
    for (const sw::TableShard& shard : layer.shards) {
        const sw::ShardView& view = shard.view;
        const int dim = layer.tables[static_cast<std::size_t>(view.table)].dim;
        for (std::int64_t local = 0; local < view.rows; ++local)
            if (view.dim != 0 && std::memcmp(view.weights + local * view.dim,
                                             whole[static_cast<std::size_t>(view.table)].data() +
                                                 shard.row(local) * dim + view.first_column,
                                             static_cast<std::size_t>(view.dim) * sizeof(float)) != 0)
                return false;
    }
    return true;
}
void set_weights(const sw::LayerShards& layer, const std::vector<std::vector<float>>& whole) {
    for (const sw::TableShard& shard : layer.shards) {
        const sw::ShardView& view = shard.view;
        const int dim = layer.tables[static_cast<std::size_t>(view.table)].dim;
        for (std::int64_t local = 0; local < view.rows; ++local)
            std::copy_n(whole[static_cast<std::size_t>(view.table)].data() + shard.row(local) * dim + view.first_column,
                        view.dim, view.weights + local * view.dim);
    }
}

RC_GTEST_PROP(WeightsAlone, OfAnyShapeAndTypeAreLoadedAsTheyAre, ()) {
    std::vector<sw::TableConfig> configs;
    const auto count = *rc::gen::inRange(1, 4);
    AnyFile file;
    std::vector<std::vector<float>> weights;
    if (*rc::gen::arbitrary<bool>()) add_strangers(file);
    for (int t = 0; t < count; ++t) {
        configs.push_back({.name = "table " + std::to_string(t),
                           .rows = *rc::gen::inRange<std::int64_t>(1, 40),
                           .dim = *rc::gen::inRange(1, 9)});
        const RandomWeights values = random_values(static_cast<std::size_t>(configs.back().rows * configs.back().dim));
        file.add("tables/" + configs.back().name + "/weight", values.type, {configs.back().rows, configs.back().dim},
                 values.data);
        weights.push_back(values.floats);
    }
    const auto width = *rc::gen::inRange<std::int64_t>(1, 9);
    const RandomWeights bias = random_values(static_cast<std::size_t>(width));
    const RandomWeights cube = random_values(static_cast<std::size_t>(2 * 3 * width));
    file.add("bias", bias.type, *rc::gen::arbitrary<bool>() ? std::vector{width} : std::vector<std::int64_t>{1, width},
             bias.data);
    file.add("cube", cube.type, {2, 3, width}, cube.data);
    if (*rc::gen::arbitrary<bool>()) file.metadata("format", "pt");
    const auto chunk = *rc::gen::inRange<std::int64_t>(1, 200);
    const TemporaryFile path{"alone"};
    file.write(path);

    std::atomic<int> good{0};
    const int ranks = *rc::gen::inRange(1, 5);
    ranks_do(ranks, [&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Optimizer<sw::Adam>> layer{comm, configs};
        std::vector<float> a(bias.floats.size());
        std::vector<float> b(cube.floats.size());
        std::vector<float> moment(a.size(), 7.0F);
        sw::Checkpoint all{.layer = sw::shards_of(layer),
                           .dense = {{.name = "bias", .shape = {1, width}, .values = a},
                                     {.name = "cube", .shape = {2, 3, width}, .values = b},
                                     {.name = "moment of bias", .shape = {1, width}, .values = moment, .moment = true}},
                           .numbers = {{"samples", 5}},
                           .chunk_bytes = chunk};
        const sw::Loaded what = sw::load_checkpoint(comm, path.path(), all);
        if (what == sw::Loaded::weights && layer.steps() == 0 && all.numbers.at("samples") == 5 &&
            moment == std::vector<float>(a.size(), 7.0F) && same_bits(a, bias.floats) && same_bits(b, cube.floats) &&
            holds(all.layer, weights))
            ++good;
    });
    RC_ASSERT(good == ranks);
}

const std::vector<sw::TableConfig> two_tables{{.name = "a", .rows = 23, .dim = 6}, {.name = "b", .rows = 5, .dim = 2}};

std::vector<std::vector<float>> some_weights() {
    std::vector<std::vector<float>> all;
    std::mt19937 dice{3};
    for (const sw::TableConfig& table : two_tables) {
        auto& one = all.emplace_back();
        for (std::int64_t i = 0; i < table.rows * table.dim; ++i)
            one.push_back(static_cast<float>(static_cast<int>(dice() % 2001) - 1000) / 1024.0F);
    }
    return all;
}
AnyFile file_of_weights(const std::vector<std::vector<float>>& weights) {
    AnyFile file;
    for (std::size_t t = 0; t < two_tables.size(); ++t)
        file.add("tables/" + two_tables[t].name + "/weight", "F32", {two_tables[t].rows, two_tables[t].dim},
                 weights[t]);
    return file;
}

template <class Layer>
void train(Layer& layer, int rank, int steps) {
    for (int i = 0; i < steps; ++i) {
        std::vector<std::int64_t> ids;
        for (const sw::TableConfig& table : two_tables)
            for (int sample = 0; sample < 3; ++sample)
                ids.push_back((layer.steps() * 5 + sample * 3 + rank) % table.rows);
        const sw::JaggedBatch<std::int64_t> batch{
            .samples = 3, .features = 2, .values = ids, .lengths = {}, .weights = {}};
        const auto out = layer.forward(batch.view());
        std::vector<float> gradient(static_cast<std::size_t>(out.rows() * out.columns()));
        for (std::size_t g = 0; g < gradient.size(); ++g)
            gradient[g] = out.data()[g] - 0.01F * static_cast<float>(g % 5);
        layer.backward({gradient.data(), out.rows(), out.columns()});
    }
}

/// What is loaded trains on as a layer whose weights were set so, and whose moments are fresh.
template <class Sharding, class Rule>
void trains_on(int ranks, const TemporaryFile& alone, const std::vector<std::vector<float>>& weights) {
    const TemporaryFile loaded{"loaded"};
    const TemporaryFile set{"set"};
    const TemporaryFile own{"own"};
    using Layer = sw::EmbeddingLayer<sw::Sharding<Sharding>, sw::Optimizer<Rule>>;
    ranks_do(ranks, [&](sw::ThreadCommunicator& comm) {
        Layer from_file{comm, two_tables};
        EXPECT_EQ(sw::load_layer(comm, alone.path(), from_file), sw::Loaded::weights);
        Layer by_hand{comm, two_tables};
        set_weights(sw::shards_of(by_hand), weights);
        sw::barrier(comm);
        train(from_file, comm.rank(), 4);
        train(by_hand, comm.rank(), 4);
        EXPECT_EQ(from_file.steps(), 4);
        sw::save_layer(comm, loaded.path(), from_file);
        sw::save_layer(comm, set.path(), by_hand);
        Layer fresh{comm, two_tables};  // and its own file is everything, as before
        EXPECT_EQ(sw::load_layer(comm, loaded.path(), fresh), sw::Loaded::everything);
        EXPECT_EQ(fresh.steps(), 4);
        sw::save_layer(comm, own.path(), fresh);
        const std::string late = refusal_of([&] { sw::load_layer(comm, alone.path(), from_file); });
        EXPECT_NE(late.find("has weights alone, and this layer's moments are of other weights, after 4 steps"),
                  std::string::npos)
            << late;
    });
    EXPECT_EQ(loaded.read(), set.read());
    EXPECT_EQ(own.read(), set.read());
}
template <class Rule>
void trains_on_everywhere() {
    const auto weights = some_weights();
    const TemporaryFile alone{"trains_on"};
    file_of_weights(weights).write(alone);
    for (const int ranks : {1, 2, 3}) {
        trains_on<sw::Row, Rule>(ranks, alone, weights);
        trains_on<sw::Col<2>, Rule>(ranks, alone, weights);
        trains_on<sw::Table, Rule>(ranks, alone, weights);
        trains_on<sw::DP, Rule>(ranks, alone, weights);
    }
}
TEST(WeightsAlone, TrainOnWithFreshMomentsAnElement) {
    trains_on_everywhere<sw::Adam>();
}
TEST(WeightsAlone, TrainOnWithFreshMomentsARow) {
    trains_on_everywhere<sw::RowwiseAdagrad<>>();
}
TEST(WeightsAlone, TrainOnWithoutMoments) {
    trains_on_everywhere<sw::Sgd>();
}

/// What the layer asks of a file says on every rank, before anything has changed.
std::string refused_by_all(const std::string& path, std::vector<sw::DenseTensor> dense = {}) {
    std::string text;
    ranks_do(3, [&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<sw::Optimizer<sw::Adagrad>> layer{comm, two_tables};
        sw::EmbeddingLayer<sw::Optimizer<sw::Adagrad>> untouched{comm, two_tables};
        std::vector<float> mine(dense.empty() ? 0 : dense[0].values.size(), 1.0F);
        sw::Checkpoint all{.layer = sw::shards_of(layer), .dense = {}, .numbers = {}, .chunk_bytes = 60};
        if (!dense.empty()) all.dense = {{.name = dense[0].name, .shape = dense[0].shape, .values = mine}};
        const std::string mine_is = refusal_of([&] { sw::load_checkpoint(comm, path, all); });
        const sw::LayerShards before = sw::shards_of(untouched);
        for (std::size_t i = 0; i < before.shards.size(); ++i) {
            const sw::ShardView& was = before.shards[i].view;
            EXPECT_EQ(std::memcmp(all.layer.shards[i].view.weights, was.weights,
                                  static_cast<std::size_t>(was.rows * was.dim) * sizeof(float)),
                      0);
        }
        EXPECT_EQ(mine, std::vector<float>(mine.size(), 1.0F));
        const auto texts = sw::all_gather_v<char>(comm, mine_is);
        for (const auto& one : texts)
            EXPECT_EQ(std::string(one.begin(), one.end()), mine_is);
        if (comm.rank() == 0) text = mine_is;
    });
    return text;
}

TEST(WeightsAlone, AMomentOfACheckpointIsNeverMissedInSilence) {
    const auto weights = some_weights();
    const TemporaryFile path{"signs"};
    const auto expect = [&](const std::string& expected, const std::function<void(AnyFile&)>& change) {
        AnyFile file = file_of_weights(weights);
        change(file);
        file.write(path);
        const std::string text = refused_by_all(path.path());
        EXPECT_NE(text.find(path.path() + ": " + expected), std::string::npos) << text;
    };
    const std::string missing = "has no tensor 'tables/a/element_state.0', a moment, and is no file of weights alone, ";
    expect("has no tensor 'steps'", [](AnyFile& file) { file.metadata("optimizer", "adagrad"); });
    expect(missing + "since it has an optimizer in its metadata", [](AnyFile& file) {
        file.metadata("optimizer", "adagrad");
        file.add("steps", "I64", {}, std::vector<std::int64_t>{3});
    });
    expect(missing + "since it has a tensor 'steps'",
           [](AnyFile& file) { file.add("steps", "I64", {}, std::vector<std::int64_t>{3}); });
    expect("has no tensor 'steps'", [](AnyFile& file) { file.add("dense_state/w/0", "F32", {0}, std::string{}); });
    expect("has no tensor 'steps'", [](AnyFile& file) { file.add("tables/b/row_state.0", "F32", {0}, std::string{}); });
    expect("has no tensor 'steps'",
           [](AnyFile& file) { file.add("tables/c/element_state.1", "I8", {0}, std::string{}); });
    expect("holds the state of optimizer 'adam'", [](AnyFile& file) { file.metadata("optimizer", "adam"); });
}

TEST(WeightsAlone, WhatIsMissingOrOfAnotherTypeOrShapeIsRefused) {
    const auto weights = some_weights();
    const TemporaryFile path{"misfits"};
    const auto expect = [&](const std::string& expected, const std::function<void(AnyFile&)>& make) {
        AnyFile file;
        make(file);
        file.write(path);
        const std::string text = refused_by_all(path.path());
        EXPECT_NE(text.find(path.path() + ": " + expected), std::string::npos) << text;
    };
    const auto b = [&](AnyFile& file) { file.add("tables/b/weight", "F32", {5, 2}, weights[1]); };
    expect("has no tensor 'tables/a/weight'", b);
    expect("tensor 'tables/a/weight' is F32 of shape (6, 23), expected F32 of shape (23, 6)", [&](AnyFile& file) {
        b(file);
        file.add("tables/a/weight", "F32", {6, 23}, weights[0]);
    });
    for (const char* type : {"F64", "I64"})
        expect(std::string{"tensor 'tables/a/weight' is "} + type +
                   " of shape (23, 6), expected F32, F16 or BF16 of shape (23, 6)",
               [&](AnyFile& file) {
                   b(file);
                   file.add("tables/a/weight", type, {23, 6}, std::vector<double>(23 * 6));
               });
    std::vector<float> bias(6);
    for (const auto& [shape, fits] : std::vector<std::pair<std::vector<std::int64_t>, bool>>{
             {{6}, true}, {{1, 6}, true}, {{6, 1}, false}, {{5}, false}, {{1, 1, 6}, false}, {{2, 3}, false}}) {
        AnyFile file = file_of_weights(weights);
        file.add("bias", "F32", shape, std::vector<float>(shape == std::vector<std::int64_t>{5} ? 5 : 6));
        file.write(path);
        std::string text;
        ranks_do(2, [&](sw::ThreadCommunicator& comm) {
            std::vector<float> mine(6);
            sw::Checkpoint all{
                .layer = {}, .dense = {{.name = "bias", .shape = {1, 6}, .values = mine}}, .numbers = {}};
            const std::string wrong = refusal_of([&] { sw::load_checkpoint(comm, path.path(), all); });
            if (comm.rank() == 0) text = wrong;
        });
        EXPECT_EQ(text.empty(), fits) << sw::shape_text(shape) << ": " << text;
    }
}

/// A file of each type with one value that is none, and a folder of checkpoints with such a weight.
TEST(WeightsAlone, NanAndInfinityAreRefusedByName) {
    const auto weights = some_weights();
    const TemporaryFile path{"not_finite"};
    const auto place = [](std::int64_t index, std::int64_t columns) {
        return "row " + std::to_string(index / columns) + ", column " + std::to_string(index % columns) + " (from 0): ";
    };
    std::mt19937 dice{11};
    for (int time = 0; time < 30; ++time) {
        for (const auto& [type, bits, value] :
             std::vector<std::tuple<std::string, std::uint32_t, std::string>>{{"F32", 0x7fc00000U, "nan"},
                                                                              {"F32", 0x7f800001U, "nan"},
                                                                              {"F32", 0x7f800000U, "inf"},
                                                                              {"F32", 0xff800000U, "-inf"},
                                                                              {"F16", 0x7c00U, "inf"},
                                                                              {"F16", 0xfc00U, "-inf"},
                                                                              {"F16", 0x7c01U, "nan"},
                                                                              {"BF16", 0x7f80U, "inf"},
                                                                              {"BF16", 0xff80U, "-inf"},
                                                                              {"BF16", 0x7fc0U, "nan"}}) {
            const auto index = static_cast<std::int64_t>(dice() % (23 * 6));
            AnyFile file;
            file.add("tables/b/weight", "F32", {5, 2}, weights[1]);
            if (type == "F32") {
                auto bad = weights[0];
                bad[static_cast<std::size_t>(index)] = std::bit_cast<float>(bits);
                file.add("tables/a/weight", type, {23, 6}, bad);
            } else {
                std::vector<std::uint16_t> bad(23 * 6, 0x3c00);
                bad[static_cast<std::size_t>(index)] = static_cast<std::uint16_t>(bits);
                file.add("tables/a/weight", type, {23, 6}, bad);
            }
            file.write(path);
            const std::string text = refused_by_all(path.path());
            EXPECT_NE(text.find(path.path() + ": tensor 'tables/a/weight', " + place(index, 6) + value + ","),
                      std::string::npos)
                << text;
        }
    }
    std::vector<float> bias(3);
    AnyFile file = file_of_weights(weights);
    file.add("bias", "F32", {3}, std::vector<float>{0, 0, std::numeric_limits<float>::infinity()});
    file.write(path);
    const std::string text = refused_by_all(path.path(), {{.name = "bias", .shape = {1, 3}, .values = bias}});
    EXPECT_NE(text.find("tensor 'bias', column 2 (from 0): inf, and weights are finite numbers"), std::string::npos)
        << text;
}

TEST(WeightsAlone, AFolderWithSuchAWeightIsRefusedWhereItIsAskedFor) {
    const TemporaryFolder folder{"not_finite"};
    ranks_do(2, [&](sw::ThreadCommunicator& comm) {
        using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Optimizer<sw::Adagrad>>;
        Layer layer{comm, two_tables};
        for (const sw::TableShard& shard : sw::shards_of(layer).shards) {
            if (shard.view.table != 0) continue;
            shard.view.element_state[0] = std::numeric_limits<float>::infinity();  // a sum of squares may be
            if (comm.rank() == 1) shard.view.weights[2 * 6 + 5] = std::nanf("");
        }
        sw::CheckpointFolder{comm, folder.path()}.save({.layer = sw::shards_of(layer), .dense = {}, .numbers = {}});
        Layer other{comm, two_tables};
        const std::string text = refusal_of([&] { sw::load_layer(comm, folder.path(), other); });
        EXPECT_NE(text.find("rank-1.safetensors: tensor 'tables/a/0/weight', row 2, column 5 (from 0): nan"),
                  std::string::npos)
            << text;
        sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Optimizer<sw::Adagrad>> without{comm, {two_tables[1]}};
        EXPECT_EQ(refusal_of([&] { sw::load_layer(comm, folder.path(), without); }), "");
    });
}

/// Without a layer no optimizer of tables is asked about, and no table.
TEST(WeightsAlone, DenseTensorsAreReadWithoutTheirLayer) {
    const TemporaryFile path{"dense_of_all"};
    ranks_do(2, [&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<sw::Optimizer<sw::Adagrad>> layer{comm, two_tables};
        std::vector<float> weight{1.0F, 2.0F};
        sw::save_checkpoint(
            comm, path.path(),
            {.layer = sw::shards_of(layer), .dense = {{.name = "w", .shape = {2}, .values = weight}}, .numbers = {}});
        std::vector<float> other(2);
        sw::Checkpoint dense{.layer = {}, .dense = {{.name = "w", .shape = {2}, .values = other}}, .numbers = {}};
        EXPECT_EQ(sw::load_checkpoint(comm, path.path(), dense), sw::Loaded::everything);
        EXPECT_EQ(other, weight);
    });
}

/// Weights alone are all that a frozen layer needs, however many steps it has made.
TEST(WeightsAlone, AFrozenLayerTakesThemAtAnyStep) {
    const auto weights = some_weights();
    const TemporaryFile path{"frozen_alone"};
    file_of_weights(weights).write(path);
    ranks_do(2, [&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<sw::Optimizer<sw::Frozen>> layer{comm, two_tables};
        layer.set_steps(9);
        EXPECT_EQ(sw::load_layer(comm, path.path(), layer), sw::Loaded::weights);
        EXPECT_EQ(layer.steps(), 9);
        EXPECT_TRUE(holds(sw::shards_of(layer), weights));
    });
}

}  // namespace
