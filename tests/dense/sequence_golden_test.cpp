// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "dense/support.hpp"
#include "shardwise/dense/layer_norm.hpp"
#include "shardwise/dense/multi_head_attention.hpp"
#include "shardwise/dense/sequence_model.hpp"
#include "shardwise/dense/target_attention.hpp"
#include "shardwise/dense/transformer_block.hpp"
#include "shardwise/dense/transformer_pooling.hpp"

/// \file
/// Layer norm, attention, Transformer blocks and sequence models against PyTorch; see tests/golden/README.md.

namespace dense_test {
namespace {
namespace sw = shardwise;
using nlohmann::json;

constexpr double sequence_tolerance = 2e-5;

/// One of a case's inputs.
struct Input {
    explicit Input(const json& c, std::int64_t width)
        : lengths{c["lengths"].get<std::vector<std::int32_t>>()},
          values{c["rows"].get<std::vector<float>>()},
          expected{c["gradient"].get<std::vector<double>>()},
          columns{width},
          gradient(values.size()) {}
    [[nodiscard]] std::int64_t rows() const { return std::ssize(values) / columns; }
    [[nodiscard]] sw::JaggedRows view() const { return {{values.data(), rows(), columns}, lengths}; }
    [[nodiscard]] sw::MatrixView<float> gradient_view() { return {gradient.data(), rows(), columns}; }
    void expect_gradient(std::span<const float> actual) const {
        expect_all_close(actual, expected, sequence_tolerance);
    }

    std::vector<std::int32_t> lengths;
    std::vector<float> values;
    std::vector<double> expected;
    std::int64_t columns;
    std::vector<float> gradient;
};

/// Fills a set with the case's parameters, which have the same names.
void set_parameters(sw::ParameterSet& set, const json& c) {
    ASSERT_EQ(set.size(), c["parameters"].size());
    for (const auto& parameter : set) {
        ASSERT_TRUE(c["parameters"].contains(parameter.name)) << parameter.name;
        const auto values = c["parameters"][parameter.name].get<std::vector<float>>();
        ASSERT_EQ(values.size(), parameter.size()) << parameter.name;
        std::copy(values.begin(), values.end(), parameter.values().begin());
    }
}
void expect_gradients(sw::ParameterSet& set, const json& c, sw::DensePrecision precision) {
    if (precision != sw::DensePrecision::single) set.round_gradients();
    for (const auto& parameter : set) {
        SCOPED_TRACE(parameter.name);
        expect_all_close(parameter.gradients(), c["gradients"][parameter.name].get<std::vector<double>>(),
                         sequence_tolerance);
    }
}
sw::AttentionMask mask_of(const json& config) {
    return {config["causal"].get<bool>() ? sw::AttentionMask::Kind::causal : sw::AttentionMask::Kind::none};
}

void check_layer_norm(const json& c, sw::DensePrecision precision) {
    Input x{c["inputs"]["x"], c["config"]["width"]};
    sw::MemoryAccount memory;
    sw::ParameterSet set{memory.tables()};
    const sw::LayerNorm norm{set, "norm", x.columns, precision};
    set.allocate(precision);
    set_parameters(set, c);
    sw::LayerNorm::Work work{memory.work()};
    std::vector<float> y(x.values.size());
    const auto gradient = c["gradient"].get<std::vector<float>>();
    norm.forward(x.view().rows, {y.data(), x.rows(), x.columns}, work);
    norm.backward(work, x.view().rows, {gradient.data(), x.rows(), x.columns}, x.gradient_view());
    expect_all_close(y, c["output"].get<std::vector<double>>(), sequence_tolerance);
    x.expect_gradient(x.gradient);
    expect_gradients(set, c, precision);
}

void check_attention(const json& c, sw::DensePrecision precision) {
    const json& config = c["config"];
    Input x{c["inputs"]["x"], config["width"]};
    Input h{c["inputs"]["h"], config["width"]};
    sw::MemoryAccount memory;
    sw::ParameterSet set{memory.tables()};
    const sw::MultiHeadAttention attention{
        set, "attention", {.width = config["width"], .heads = config["heads"]}, precision};
    set.allocate(precision);
    set_parameters(set, c);
    sw::MultiHeadAttention::Work work{memory.work()};
    std::vector<float> y(x.values.size());
    const auto gradient = c["gradient"].get<std::vector<float>>();
    attention.forward(x.view(), h.view(), mask_of(config), {y.data(), x.rows(), x.columns}, work);
    attention.backward(work, x.view(), h.view(), {gradient.data(), x.rows(), x.columns}, x.gradient_view(),
                       h.gradient_view());
    expect_all_close(y, c["output"].get<std::vector<double>>(), sequence_tolerance);
    x.expect_gradient(x.gradient);
    h.expect_gradient(h.gradient);
    expect_gradients(set, c, precision);
}

void check_transformer_block(const json& c, sw::DensePrecision precision) {
    const json& config = c["config"];
    Input x{c["inputs"]["x"], config["width"]};
    sw::MemoryAccount memory;
    sw::ParameterSet set{memory.tables()};
    const sw::TransformerBlock block{
        set,
        "block",
        {.attention = {.width = config["width"], .heads = config["heads"]}, .hidden = config["hidden"]},
        precision};
    set.allocate(precision);
    set_parameters(set, c);
    sw::TransformerBlock::Work work{memory.work()};
    std::vector<float> y(x.values.size());
    const auto gradient = c["gradient"].get<std::vector<float>>();
    block.forward(x.view(), mask_of(config), {y.data(), x.rows(), x.columns}, work);
    block.backward(work, x.view(), {gradient.data(), x.rows(), x.columns}, x.gradient_view());
    expect_all_close(y, c["output"].get<std::vector<double>>(), sequence_tolerance);
    x.expect_gradient(x.gradient);
    expect_gradients(set, c, precision);
}

template <class Pooling>
void check_sequence_model(const json& c, sw::DensePrecision precision, const typename Pooling::Config& pooling) {
    const json& config = c["config"];
    const Input history{c["inputs"]["history"], config["dimension"]};
    const Input candidates{c["inputs"]["candidates"], config["dimension"]};
    sw::MemoryAccount memory;
    sw::SequenceModel<Pooling> model{{.dimension = config["dimension"],
                                      .longest = config["longest"],
                                      .top = config["top"].get<std::vector<std::int64_t>>(),
                                      .precision = precision,
                                      .pooling = pooling},
                                     memory};
    set_parameters(model.parameters(), c);
    const auto gradient = c["gradient"].get<std::vector<float>>();
    const auto logits = model.forward(history.view(), candidates.view());
    const auto of_rows = model.backward(gradient);
    expect_all_close(logits, c["output"].get<std::vector<double>>(), sequence_tolerance);
    history.expect_gradient({of_rows[0].data(), history.values.size()});
    candidates.expect_gradient({of_rows[1].data(), candidates.values.size()});
    expect_gradients(model.parameters(), c, precision);
}

class SequenceGolden : public testing::TestWithParam<sw::DensePrecision> {};

TEST_P(SequenceGolden, every_case) {
    std::ifstream file{std::filesystem::path{__FILE__}.parent_path().parent_path() / "golden" / "data" /
                       "sequences.json"};
    const json all = json::parse(file);
    ASSERT_EQ(all["format"], 1);
    ASSERT_EQ(all["cases"].size(), 10U);
    for (const json& c : all["cases"]) {
        SCOPED_TRACE(c["kind"].dump() + c["config"].dump());
        const std::string kind = c["kind"];
        const json& config = c["config"];
        if (kind == "layer_norm") {
            check_layer_norm(c, GetParam());
        } else if (kind == "attention") {
            check_attention(c, GetParam());
        } else if (kind == "transformer_block") {
            check_transformer_block(c, GetParam());
        } else if (config["pooling"] == "mean") {
            check_sequence_model<sw::MeanPooling>(c, GetParam(), {});
        } else if (config["pooling"] == "attention") {
            check_sequence_model<sw::TargetAttention>(c, GetParam(), {.heads = config["heads"]});
        } else {
            check_sequence_model<sw::TransformerPooling>(
                c, GetParam(), {.heads = config["heads"], .hidden = config["hidden"], .blocks = config["blocks"]});
        }
    }
}

INSTANTIATE_TEST_SUITE_P(pytorch, SequenceGolden,
                         testing::Values(sw::DensePrecision::single, sw::DensePrecision::blocks,
                                         sw::DensePrecision::wide),
                         [](const auto& instance) {
                             const bool blocks = instance.param == sw::DensePrecision::blocks;
                             return instance.param == sw::DensePrecision::single ? "single"
                                    : blocks                                     ? "blocks"
                                                                                 : "wide";
                         });

}  // namespace
}  // namespace dense_test
