// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "golden/golden.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/rms_prop.hpp"

/// \file
/// Settings by table, decay and clipping against PyTorch: eight steps, every sharding, several ranks.

namespace laws {
namespace {

namespace sw = shardwise;
using nlohmann::json;

constexpr double settings_tolerance = 1e-5;

void expect_near(double actual, double expected, const std::string& what) {
    EXPECT_LE(std::abs(actual - expected), settings_tolerance * std::max(1.0, std::abs(expected))) << what;
}

sw::TableSettings settings_of(const std::string& optimizer, const json& own) {
    sw::TableSettings settings{.learning_rate = sw::LearningRate{.base = own.at("learning_rate")},
                               .l2 = own.value("l2", 0.0F),
                               .weight_decay = own.value("weight_decay", 0.0F),
                               .clip_value = own.value("clip_value", 0.0F)};
    if (optimizer == "adam" && own.contains("beta1"))
        settings.rule = sw::make_row_rule(sw::Adam{.beta1 = own.at("beta1"), .beta2 = own.at("beta2")});
    if (optimizer == "rms_prop" && own.contains("decay"))
        settings.rule = sw::make_row_rule(sw::RmsProp{.alpha = own.at("decay")});
    return settings;
}

void check_run(sw::ThreadCommunicator& comm, const std::string& sharding, const json& all, const std::string& name) {
    const json& run = all.at("runs").at(name);
    const std::string optimizer = run.at("optimizer");
    const int dim = all.at("dim");
    const std::int64_t samples = all.at("samples");
    sw::LayerOptions options{.learning_rate = {.base = 77.0F}};
    options.clip_norm = run.at("clip_norm");
    options.by_table["a"] = settings_of(optimizer, run.at("a"));
    options.by_table["b"] = settings_of(optimizer, run.at("b"));
    const auto layer = sw::make_layer(
        comm,
        {{.name = "a", .rows = all.at("rows")[0], .dim = dim}, {.name = "b", .rows = all.at("rows")[1], .dim = dim}},
        {.shardings = {sharding}, .optimizer = optimizer}, options);
    const auto each_weight = [&](const auto& use) {
        layer->for_each_shard([&](const sw::ShardView& shard, const auto& row_of) {
            for (std::int64_t local = 0; local < shard.rows; ++local)
                for (int d = 0; d < shard.dim; ++d)
                    use(shard.weights[local * shard.dim + d], static_cast<std::size_t>(shard.table),
                        static_cast<std::size_t>(row_of(local) * dim + shard.first_column + d));
        });
    };
    each_weight([&](float& w, std::size_t table, std::size_t at) { w = all.at("initial")[table][at]; });
    std::vector<float> dense = all.at("dense");
    std::size_t number = 0;
    for (const json& step : all.at("steps")) {
        const std::int64_t first = samples * comm.rank() / comm.size();
        const std::int64_t mine = samples * (comm.rank() + 1) / comm.size() - first;
        sw::JaggedBatch<std::int64_t> batch{.samples = mine, .features = 2};
        std::vector<float> gradient(static_cast<std::size_t>(mine * 2 * dim));
        for (std::size_t table = 0; table < 2; ++table)
            for (std::int64_t i = 0; i < mine; ++i) {
                batch.values.push_back(step.at("ids")[table][static_cast<std::size_t>(first + i)]);
                for (int d = 0; d < dim; ++d)
                    gradient[static_cast<std::size_t>((i * 2 + static_cast<std::int64_t>(table)) * dim + d)] =
                        step.at("gradients")[table][static_cast<std::size_t>((first + i) * dim + d)];
            }
        static_cast<void>(layer->forward(batch));
        const std::vector<float> of_dense = step.at("dense");
        if (options.clip_norm != 0.0F) {
            sw::ExactSum squares;
            squares.add_squares(of_dense);
            layer->clip_with(squares);
        }
        layer->backward({.pooled = {gradient.data(), mine, 2 * dim}});
        if (options.clip_norm != 0.0F)
            expect_near(layer->gradient_norm(), run.at("final").at("norms")[number++], name + ", norm");
        for (std::size_t i = 0; i < dense.size(); ++i)
            dense[i] -= 0.1F * layer->gradient_scale() * of_dense[i];
    }
    const std::string where = name + ", " + sharding + " of " + std::to_string(comm.size());
    for (std::size_t i = 0; i < dense.size(); ++i)
        expect_near(static_cast<double>(dense[i]), run.at("final").at("dense")[i], where + ", dense");
    each_weight([&](float w, std::size_t table, std::size_t at) {
        expect_near(static_cast<double>(w), run.at("final").at("tables")[table][at], where);
    });
}

TEST(SettingsByTable, AreThoseOfPyTorch) {
    std::ifstream file{std::filesystem::path{__FILE__}.parent_path() / "../golden/data/settings.json"};
    const json all = json::parse(file);
    ASSERT_GE(all.at("runs").size(), 8U);
    for (const auto& [name, run] : all.at("runs").items())
        for (const std::string sharding : {"row", "col", "table", "dp", "flex"})
            for (const int ranks : {1, 2, 3}) {
                sw::ThreadWorld world{sw::Topology{1, ranks}};
                world.run(
                    [&, run_name = name](sw::ThreadCommunicator& comm) { check_run(comm, sharding, all, run_name); });
            }
}

}  // namespace
}  // namespace laws
