// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "dense/support.hpp"
#include "shardwise/dense/cross_net.hpp"
#include "shardwise/tower/cross.hpp"
#include "shardwise/tower/dot.hpp"

/// \file
/// Cross networks and tower modules against PyTorch; see tests/golden/README.md.

namespace dense_test {
namespace {
namespace sw = shardwise;
using nlohmann::json;

constexpr double tolerance = 2e-5;

std::vector<float> floats(const json& numbers) {
    return numbers.get<std::vector<float>>();
}

/// Fills a set with the case's parameters, which have the same names.
void set_parameters(sw::ParameterSet& set, const json& c) {
    ASSERT_EQ(set.size(), c["parameters"].size());
    for (const auto& parameter : set) {
        ASSERT_TRUE(c["parameters"].contains(parameter.name)) << parameter.name;
        const std::vector<float> values = floats(c["parameters"][parameter.name]);
        ASSERT_EQ(values.size(), parameter.size()) << parameter.name;
        std::copy(values.begin(), values.end(), parameter.values().begin());
    }
}
void expect_gradients(const sw::ParameterSet& set, const json& c) {
    for (const auto& parameter : set) {
        SCOPED_TRACE(parameter.name);
        expect_all_close(parameter.gradients(), c["gradients"][parameter.name].get<std::vector<double>>(), tolerance);
    }
}

void check_cross_net(const json& c) {
    const sw::CrossNetConfig config{
        .width = c["config"]["width"], .layers = c["config"]["layers"], .rank = c["config"]["rank"]};
    sw::MemoryAccount memory;
    sw::ParameterSet set{memory.tables()};
    const sw::CrossNet net{set, "cross", config};
    set.allocate();
    set_parameters(set, c);
    const std::vector<float> in = floats(c["input"]);
    const std::vector<float> gradient = floats(c["gradient"]);
    std::vector<float> through(in.size());
    const auto rows = static_cast<std::int64_t>(in.size()) / config.width;
    sw::CrossNet::Work work{memory.work()};
    const auto out = net.forward({in.data(), rows, config.width}, work);
    expect_all_close(std::span{out.data(), in.size()}, c["output"].get<std::vector<double>>(), tolerance);
    net.backward(work, {gradient.data(), rows, config.width}, {through.data(), rows, config.width});
    expect_all_close(through, c["input_gradient"].get<std::vector<double>>(), tolerance);
    expect_gradients(set, c);
}

template <class M>
void check_module(const typename M::Config& config, const json& c) {
    const sw::TowerShape shape{.tower = 0, .dims = c["config"]["dims"].get<std::vector<int>>()};
    sw::MemoryAccount memory;
    M module{config, shape, 1, memory};
    set_parameters(module.parameters(), c);
    const std::vector<float> in = floats(c["input"]);
    const std::vector<float> gradient = floats(c["gradient"]);
    const auto rows = static_cast<std::int64_t>(in.size()) / shape.width();
    const int columns = M::outputs(config, shape);
    ASSERT_EQ(static_cast<std::int64_t>(gradient.size()), rows * columns);
    std::vector<float> out(gradient.size());
    std::vector<float> through(in.size());
    typename M::Work work;
    module.forward({in.data(), rows, shape.width()}, work, {out.data(), rows, columns}, memory.work());
    expect_all_close(out, c["output"].get<std::vector<double>>(), tolerance);
    module.backward(work, {gradient.data(), rows, columns}, {through.data(), rows, shape.width()}, memory.work());
    expect_all_close(through, c["input_gradient"].get<std::vector<double>>(), tolerance);
    expect_gradients(module.parameters(), c);
}

TEST(golden, cross_networks_and_modules_are_those_of_pytorch) {
    std::ifstream file{std::filesystem::path{__FILE__}.parent_path().parent_path() / "golden" / "data" /
                       "modules.json"};
    ASSERT_TRUE(file);
    const json all = json::parse(file);
    int cross_nets = 0;
    int dots = 0;
    int crosses = 0;
    for (const json& c : all["cases"]) {
        SCOPED_TRACE(c["kind"].get<std::string>() + " " + c["config"].dump());
        const json& config = c["config"];
        if (c["kind"] == "cross_net") {
            check_cross_net(c);
            ++cross_nets;
        } else if (c["kind"] == "dot") {
            check_module<sw::Dot>({.per_feature = config["per_feature"],
                                   .per_tower = config["per_tower"],
                                   .dimension = config["dimension"]},
                                  c);
            ++dots;
        } else {
            check_module<sw::Cross>({.layers = config["layers"],
                                     .rank = config["rank"],
                                     .per_tower = config["per_tower"],
                                     .dimension = config["dimension"]},
                                    c);
            ++crosses;
        }
    }
    EXPECT_EQ(cross_nets, 4);
    EXPECT_EQ(dots, 3);
    EXPECT_EQ(crosses, 2);
}

}  // namespace
}  // namespace dense_test
