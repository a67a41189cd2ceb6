// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dense/support.hpp"
#include "shardwise/dense/cross_net.hpp"
#include "shardwise/dense/parameter.hpp"

/// \file
/// The dense model again, in double precision, from the definitions and without the library's layers.

namespace dense_test {

/// Row-major (samples, columns).
using Rows = std::vector<std::vector<double>>;

/// A parameter in double precision.
struct NaiveParameter {
    std::int64_t rows = 0, columns = 0;
    std::vector<double> values;
};

inline std::vector<NaiveParameter> naive_parameters(const shardwise::ParameterSet& set) {
    std::vector<NaiveParameter> all;
    for (const auto& parameter : set)
        all.push_back({parameter.rows, parameter.columns, {parameter.values().begin(), parameter.values().end()}});
    return all;
}

/// Layers [weight, bias, weight, bias...] with `hidden` after each but the last and `last` after that.
template <class Hidden, class Last>
Rows naive_mlp(Rows x, std::span<const NaiveParameter> parameters, Hidden hidden, Last last) {
    for (std::size_t layer = 0; layer < parameters.size(); layer += 2) {
        const auto& weight = parameters[layer];
        const auto& bias = parameters[layer + 1];
        for (auto& row : x) {
            std::vector<double> y(bias.values);
            for (std::size_t o = 0; o < y.size(); ++o) {
                for (std::size_t i = 0; i < row.size(); ++i)
                    y[o] += weight.values[o * row.size() + i] * row[i];
                y[o] = layer + 2 < parameters.size() ? hidden(y[o]) : last(y[o]);
            }
            row = y;
        }
    }
    return x;
}

inline double naive_relu(double z) {
    return std::max(z, 0.0);
}
inline double naive_identity(double z) {
    return z;
}
inline double naive_sigmoid(double z) {
    return 1.0 / (1.0 + std::exp(-z));
}

/// [dense, pairwise dots of dense and features], sample by sample.
inline Rows naive_interaction(const Rows& dense, const Rows& features, std::int64_t dimension) {
    Rows result;
    const auto d = static_cast<std::size_t>(dimension);
    for (std::size_t sample = 0; sample < dense.size(); ++sample) {
        std::vector<double> all = dense[sample];
        all.insert(all.end(), features[sample].begin(), features[sample].end());
        auto& row = result.emplace_back(dense[sample]);
        for (std::size_t i = 0; i < all.size() / d; ++i)
            for (std::size_t j = 0; j < i; ++j) {
                double dot = 0.0;
                for (std::size_t k = 0; k < d; ++k)
                    dot += all[i * d + k] * all[j * d + k];
                row.push_back(dot);
            }
    }
    return result;
}

inline Rows as_rows(std::span<const double> flat, std::int64_t samples, std::int64_t columns) {
    Rows rows;
    for (std::int64_t i = 0; i < samples; ++i)
        rows.emplace_back(flat.begin() + i * columns, flat.begin() + (i + 1) * columns);
    return rows;
}

/// From the definition: parameters [u or w: weight, bias; v: weight] a layer.
inline Rows naive_cross_net(const Rows& input, std::span<const NaiveParameter> parameters,
                            const shardwise::CrossNetConfig& config) {
    const auto width = static_cast<std::size_t>(config.width);
    const auto rank = static_cast<std::size_t>(config.rank);
    Rows result;
    for (const auto& first : input) {
        std::vector<double> x = first;
        for (std::size_t l = 0; l < static_cast<std::size_t>(config.layers); ++l) {
            const auto* layer = &parameters[l * (rank == 0 ? 2 : 3)];
            std::vector<double> in = x;
            if (rank != 0) {
                in.assign(rank, 0.0);
                for (std::size_t r = 0; r < rank; ++r)
                    for (std::size_t j = 0; j < width; ++j)
                        in[r] += layer[2].values[r * width + j] * x[j];
            }
            std::vector<double> next(width);
            for (std::size_t j = 0; j < width; ++j) {
                double z = layer[1].values[j];
                for (std::size_t k = 0; k < in.size(); ++k)
                    z += layer[0].values[j * in.size() + k] * in[k];
                next[j] = first[j] * z + x[j];
            }
            x = next;
        }
        result.push_back(x);
    }
    return result;
}

/// Gradients of a set against the slopes of `loss`, a function of `parameters`, at some elements of each.
template <class Loss>
void expect_slopes(const shardwise::ParameterSet& set, std::vector<NaiveParameter>& parameters, Loss loss) {
    std::size_t index = 0;
    for (const auto& parameter : set) {
        SCOPED_TRACE(parameter.name);
        auto& values = parameters[index++].values;
        for (std::size_t i = 0; i < values.size(); i += 1 + values.size() / 40)
            expect_close(parameter.gradients()[i], slope(values, i, loss), 1e-4);
    }
}

/// Logits and gradients of a DenseModel on random samples against `naive_logits(config, parameters, dense, embeddings,
/// samples)` and its slopes. What the gradients held before does not matter.
template <class Model, class Naive>
void expect_model(Model& model, std::int64_t samples, double tolerance, Random& random, Naive naive_logits) {
    const auto& config = model.config();
    const Matrix dense{samples, config.dense_features, random};
    const Matrix embeddings{samples, config.features * config.dimension, random};
    std::vector<float> dy(static_cast<std::size_t>(samples));
    random.fill(dy);

    model.forward_bottom(dense.view());
    const auto logits = model.forward_top(embeddings.view());
    const auto embedding_gradient = model.backward_top(dy);
    model.backward_bottom();
    if (config.precision != shardwise::DensePrecision::single) model.parameters().round_gradients();

    auto parameters = naive_parameters(model.parameters());
    const auto x = as_double(dense.elements.span());
    auto e = as_double(embeddings.elements.span());
    const auto naive = [&] { return naive_logits(config, parameters, x, e, samples); };
    expect_all_close(logits, naive(), tolerance);
    const auto loss = [&] {
        const auto z = naive();
        double sum = 0.0;
        for (std::size_t i = 0; i < z.size(); ++i)
            sum += z[i] * static_cast<double>(dy[i]);
        return sum;
    };
    expect_slopes(model.parameters(), parameters, loss);
    ASSERT_EQ(embedding_gradient.rows(), samples);
    ASSERT_EQ(embedding_gradient.columns(), config.features * config.dimension);
    for (std::size_t i = 0; i < e.size(); i += 1 + e.size() / 50)
        expect_close(embedding_gradient.data()[i], slope(e, i, loss), 1e-4);
}

}  // namespace dense_test
