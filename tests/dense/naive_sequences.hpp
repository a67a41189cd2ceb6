// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "dense/naive.hpp"
#include "dense/support.hpp"
#include "shardwise/dense/jagged_rows.hpp"
#include "shardwise/dense/parameter.hpp"

/// \file
/// Attention, Transformer blocks and sequence models again, in double precision, from the definitions, a sample at a
/// time. Random lists for the tests of the library's own.

namespace dense_test {

/// Parameters in double precision by their names; they may be changed.
class NamedParameters {
  public:
    explicit NamedParameters(const shardwise::ParameterSet& set) : values{naive_parameters(set)} {
        for (const auto& parameter : set)
            names_.push_back(parameter.name);
    }
    [[nodiscard]] const NaiveParameter& operator()(const std::string& name) const {
        const auto found = std::find(names_.begin(), names_.end(), name);
        if (found == names_.end()) throw std::runtime_error{"no parameter " + name};
        return values[static_cast<std::size_t>(found - names_.begin())];
    }
    std::vector<NaiveParameter> values;

  private:
    std::vector<std::string> names_;
};

inline Rows naive_linear(const Rows& x, const NamedParameters& p, const std::string& name) {
    const auto& weight = p(name + ".weight");
    Rows y;
    for (const auto& row : x) {
        y.push_back(p(name + ".bias").values);
        for (std::size_t o = 0; o < y.back().size(); ++o)
            for (std::size_t i = 0; i < row.size(); ++i)
                y.back()[o] += weight.values[o * row.size() + i] * row[i];
    }
    return y;
}

inline Rows naive_norm(Rows x, const NamedParameters& p, const std::string& name) {
    for (auto& row : x) {
        const auto count = static_cast<double>(row.size());
        double mean = 0.0;
        for (const double v : row)
            mean += v / count;
        double variance = 0.0;
        for (const double v : row)
            variance += (v - mean) * (v - mean) / count;
        for (std::size_t j = 0; j < row.size(); ++j)
            row[j] = (row[j] - mean) / std::sqrt(variance + 1e-5) * p(name + ".weight").values[j] +
                     p(name + ".bias").values[j];
    }
    return x;
}

/// One sample: questions x, items h.
inline Rows naive_attention(const Rows& x, const Rows& h, const NamedParameters& p, const std::string& name,
                            std::int64_t heads, bool causal) {
    const Rows q = naive_linear(x, p, name + ".query");
    const Rows k = naive_linear(h, p, name + ".key");
    const Rows v = naive_linear(h, p, name + ".value");
    Rows answers = q;
    for (std::size_t i = 0; i < q.size(); ++i) {
        const std::size_t width = q[i].size();
        const std::size_t columns = width / static_cast<std::size_t>(heads);
        std::fill(answers[i].begin(), answers[i].end(), 0.0);
        for (std::size_t first = 0; first < width; first += columns) {
            std::vector<double> weights;
            double sum = 0.0;
            for (std::size_t j = 0; j < h.size(); ++j) {
                double score = 0.0;
                for (std::size_t c = first; c < first + columns; ++c)
                    score += q[i][c] * k[j][c];
                const bool hidden = causal && j + q.size() > i + h.size();
                weights.push_back(hidden ? 0.0 : std::exp(score / std::sqrt(static_cast<double>(columns))));
                sum += weights.back();
            }
            for (std::size_t j = 0; sum > 0 && j < h.size(); ++j)
                for (std::size_t c = first; c < first + columns; ++c)
                    answers[i][c] += weights[j] / sum * v[j][c];
        }
    }
    return naive_linear(answers, p, name + ".out");
}

inline Rows naive_sum(Rows a, const Rows& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t j = 0; j < a[i].size(); ++j)
            a[i][j] += b[i][j];
    return a;
}

/// One sample through a TransformerBlock.
inline Rows naive_block(const Rows& x, const NamedParameters& p, const std::string& name, std::int64_t heads,
                        bool causal) {
    const Rows normal = naive_norm(x, p, name + ".norm1");
    const Rows a = naive_sum(x, naive_attention(normal, normal, p, name + ".attention", heads, causal));
    Rows hidden = naive_linear(naive_norm(a, p, name + ".norm2"), p, name + ".up");
    for (auto& row : hidden)
        std::transform(row.begin(), row.end(), row.begin(), naive_relu);
    return naive_sum(a, naive_linear(hidden, p, name + ".down"));
}

inline Rows naive_positions(Rows h, const NamedParameters& p, const std::string& name) {
    const auto& weight = p(name + ".weight");
    for (std::size_t i = 0; i < h.size(); ++i)
        for (std::size_t j = 0; j < h[i].size(); ++j)
            h[i][j] += weight.values[(h.size() - 1 - i) * h[i].size() + j];
    return h;
}

/// The logits of one sample of a SequenceModel. \param pooling  its name
inline std::vector<double> naive_logits(const std::string& pooling, const Rows& history, const Rows& candidates,
                                        const NamedParameters& p, std::int64_t heads, std::int64_t blocks, bool causal,
                                        std::size_t dimension, std::size_t top) {
    Rows pooled(candidates.size(), std::vector<double>(dimension, 0.0));
    if (pooling == "attention") {
        pooled = naive_attention(candidates, naive_positions(history, p, "history.positions"), p, "history.attention",
                                 heads, false);
    } else {
        Rows x = history;
        if (pooling == "transformer") {
            x = naive_positions(x, p, "history.positions");
            for (std::int64_t b = 0; b < blocks; ++b)
                x = naive_block(x, p, "history." + std::to_string(b), heads, causal);
            x = naive_norm(x, p, "history.norm");
        }
        for (auto& row : pooled)
            for (const auto& item : x)
                for (std::size_t j = 0; j < dimension; ++j)
                    row[j] += item[j] / static_cast<double>(x.size());
    }
    Rows x;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        x.push_back(pooled[i]);
        x.back().insert(x.back().end(), candidates[i].begin(), candidates[i].end());
        for (std::size_t j = 0; j < dimension; ++j)
            x.back().push_back(pooled[i][j] * candidates[i][j]);
    }
    for (std::size_t layer = 0; layer < top; ++layer) {
        x = naive_linear(x, p, "top." + std::to_string(layer));
        for (auto& row : x)
            if (layer + 1 < top) std::transform(row.begin(), row.end(), row.begin(), naive_relu);
    }
    std::vector<double> logits;
    for (const auto& row : x)
        logits.push_back(row[0]);
    return logits;
}

/// Lists of random vectors, and the same in double precision.
struct Lists {
    Lists(std::vector<std::int32_t> sizes, std::int64_t width, Random& random)
        : lengths{std::move(sizes)}, matrix{total(lengths), width, random}, exact{as_double(matrix.elements.span())} {}

    [[nodiscard]] shardwise::JaggedRows view() const { return {matrix.view(), lengths}; }
    /// The rows of each sample, of `exact`.
    [[nodiscard]] std::vector<Rows> samples() const {
        std::vector<Rows> all;
        std::int64_t first = 0;
        for (const std::int32_t length : lengths) {
            all.push_back(as_rows(std::span{exact}.subspan(static_cast<std::size_t>(first * matrix.columns)), length,
                                  matrix.columns));
            first += length;
        }
        return all;
    }
    static std::int64_t total(const std::vector<std::int32_t>& sizes) {
        std::int64_t sum = 0;
        for (const std::int32_t size : sizes)
            sum += size;
        return sum;
    }

    std::vector<std::int32_t> lengths;
    Matrix matrix;
    std::vector<double> exact;  // (rows, width), may be changed
};

/// The largest |a - b| / max(1, |b|); infinite where the sizes differ.
template <class A, class B>
double worst(const A& a, const B& b) {
    if (std::size(a) != std::size(b)) return HUGE_VAL;
    double most = 0.0;
    for (std::size_t i = 0; i < std::size(a); ++i) {
        const double error = std::abs(static_cast<double>(a[i]) - b[i]) / std::max(1.0, std::abs(b[i]));
        most = error <= most ? most : error;  // NaN stays
    }
    return most;
}

/// The slopes of `loss` at every element of x.
template <class Loss>
std::vector<double> slopes(std::vector<double>& x, Loss loss) {
    std::vector<double> all;
    for (std::size_t i = 0; i < x.size(); ++i)
        all.push_back(slope(x, i, loss));
    return all;
}

/// The worst of all parameters' gradients against the slopes of `loss`.
template <class Loss>
double worst_gradient(const shardwise::ParameterSet& set, NamedParameters& p, Loss loss) {
    double most = 0.0;
    std::size_t index = 0;
    for (const auto& parameter : set) {
        const double error = worst(parameter.gradients(), slopes(p.values[index++].values, loss));
        most = error <= most ? most : error;
    }
    return most;
}

/// Fills all parameters, also those that start at zero or one.
inline void draw_parameters(shardwise::ParameterSet& set, Random& random) {
    for (const auto& parameter : set) {
        random.fill(parameter.values());
        for (float& v : parameter.values())
            v *= 0.7F;
        random.fill(parameter.gradients());  // which a backward pass overwrites
    }
    for (double& wide : set.wide_gradients())
        wide = 3.0;
}

}  // namespace dense_test
