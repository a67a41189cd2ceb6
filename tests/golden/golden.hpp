// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "shardwise/core/jagged.hpp"

/// \file
/// Reads the golden files of this folder; README.md describes the fields.

namespace golden {

using Numbers = std::vector<double>;

/// The shapes of the dense model.
struct Config {
    std::int64_t dense_features = 0, dimension = 0, features = 0;
    std::vector<std::int64_t> bottom, top;
};

struct Table {
    std::string name;
    std::int64_t rows = 0, dimension = 0;
};

/// Parameters by name and tables in order, row-major.
template <class T>
struct Weights {
    std::map<std::string, std::vector<T>> dense;
    std::vector<std::vector<T>> tables;
};

/// A global batch: the samples of all ranks.
struct Batch {
    std::int64_t samples = 0;
    std::vector<float> dense;           ///< (samples, dense_features)
    std::vector<float> labels;          ///< (samples)
    std::vector<std::int32_t> lengths;  ///< (features, samples)
    std::vector<std::int64_t> values;   ///< all bags, one after the other
    std::vector<float> weights;         ///< one an id, or empty

    [[nodiscard]] shardwise::JaggedView<std::int64_t> ids() const {
        const auto bags = static_cast<std::int64_t>(lengths.size());
        return {.samples = samples,
                .features = bags / samples,
                .values = values,
                .lengths = lengths,
                .offsets = {},
                .weights = weights,
                .keys = {}};
    }
};

/// The touched rows of a table in ascending order, and their gradients (rows, dimension).
struct TouchedRows {
    std::vector<std::int64_t> rows;
    Numbers values;
};

/// What the first batch gives with the initial weights.
struct FirstStep {
    Numbers pooled;  ///< (samples, features * dimension)
    Numbers logits;  ///< (samples)
    double loss = 0.0;
    Numbers logit_gradient, pooled_gradient;
    std::map<std::string, Numbers> dense_gradient;
    std::vector<TouchedRows> table_gradient;
};

/// An optimizer by name; what its formula has no use for is zero.
struct Optimizer {
    std::string name;
    double learning_rate = 0.0, beta1 = 0.0, beta2 = 0.0, epsilon = 0.0;
};

/// Training on all batches, once each.
struct Run {
    Optimizer dense_optimizer, sparse_optimizer;
    Numbers losses;  ///< mean loss of each batch, before its step
    Weights<double> final;
};

struct Case {
    std::string pooling;  ///< "sum" or "mean"
    Config config;
    std::vector<Table> tables;
    Weights<float> initial;
    std::vector<Batch> batches;
    FirstStep first;
    std::map<std::string, Run> runs;
};

inline void from_json(const nlohmann::json& json, Optimizer& optimizer) {
    json.at("name").get_to(optimizer.name);
    json.at("learning_rate").get_to(optimizer.learning_rate);
    optimizer.beta1 = json.value("beta1", 0.0);
    optimizer.beta2 = json.value("beta2", 0.0);
    optimizer.epsilon = json.value("epsilon", 0.0);
}

/// Reads `data/<name>.json`, for example "dlrm_sum".
inline Case read(const std::string& name) {
    const auto path = std::filesystem::path{__FILE__}.parent_path() / "data" / (name + ".json");
    std::ifstream file{path};
    if (!file) throw std::runtime_error{"no golden file " + path.string()};
    const auto json = nlohmann::json::parse(file);
    if (json.at("format") != 1) throw std::runtime_error{path.string() + ": not format 1"};

    Case c;
    json.at("pooling").get_to(c.pooling);
    const auto& config = json.at("config");
    config.at("dense_features").get_to(c.config.dense_features);
    config.at("dimension").get_to(c.config.dimension);
    config.at("features").get_to(c.config.features);
    config.at("bottom").get_to(c.config.bottom);
    config.at("top").get_to(c.config.top);
    for (const auto& table : json.at("tables"))
        c.tables.push_back({.name = table.at("name"), .rows = table.at("rows"), .dimension = table.at("dimension")});
    json.at("initial").at("dense").get_to(c.initial.dense);
    json.at("initial").at("tables").get_to(c.initial.tables);
    for (const auto& batch : json.at("batches")) {
        auto& b = c.batches.emplace_back();
        batch.at("samples").get_to(b.samples);
        batch.at("dense").get_to(b.dense);
        batch.at("labels").get_to(b.labels);
        batch.at("lengths").get_to(b.lengths);
        batch.at("values").get_to(b.values);
        if (batch.contains("weights")) batch.at("weights").get_to(b.weights);
    }
    const auto& first = json.at("first");
    first.at("pooled").get_to(c.first.pooled);
    first.at("logits").get_to(c.first.logits);
    first.at("loss").get_to(c.first.loss);
    const auto& gradients = first.at("gradients");
    gradients.at("logits").get_to(c.first.logit_gradient);
    gradients.at("pooled").get_to(c.first.pooled_gradient);
    gradients.at("dense").get_to(c.first.dense_gradient);
    for (const auto& table : gradients.at("tables"))
        c.first.table_gradient.push_back({.rows = table.at("rows"), .values = table.at("values")});
    for (const auto& [run_name, run] : json.at("runs").items()) {
        auto& r = c.runs[run_name];
        run.at("dense_optimizer").get_to(r.dense_optimizer);
        run.at("sparse_optimizer").get_to(r.sparse_optimizer);
        run.at("losses").get_to(r.losses);
        run.at("final").at("dense").get_to(r.final.dense);
        run.at("final").at("tables").get_to(r.final.tables);
    }
    return c;
}

}  // namespace golden
