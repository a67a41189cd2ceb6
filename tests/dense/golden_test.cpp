// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "golden/golden.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "dense/support.hpp"
#include "shardwise/dense/dlrm.hpp"
#include "shardwise/dense/loss.hpp"
#include "shardwise/dense/optimizer.hpp"

namespace dense_test {
namespace {

constexpr double tolerance = 1e-5;

/// The embedding tables on one process, from the definitions.
class NaiveTables {
  public:
    explicit NaiveTables(const golden::Case& c)
        : dimension_{static_cast<std::size_t>(c.config.dimension)}, mean_{c.pooling == "mean"} {
        for (const auto& table : c.initial.tables) {
            weights.emplace_back(table.begin(), table.end());
            first_.emplace_back(table.size(), 0.0);
            second_.emplace_back(table.size(), 0.0);
        }
    }

    /// Calls `visit(table, row, sample, weight)` for every id, where the weight includes the mean's division.
    template <class Visit>
    void each_id(const golden::Batch& batch, Visit visit) const {
        const auto samples = static_cast<std::size_t>(batch.samples);
        std::size_t next = 0;
        for (std::size_t bag = 0; bag < batch.lengths.size(); ++bag)
            for (std::int32_t i = 0; i < batch.lengths[bag]; ++i, ++next) {
                const double weight = batch.weights.empty() ? 1.0 : static_cast<double>(batch.weights[next]);
                visit(bag / samples, static_cast<std::size_t>(batch.values[next]), bag % samples,
                      mean_ ? weight / batch.lengths[bag] : weight);
            }
    }

    /// (samples, features * dimension).
    [[nodiscard]] Matrix pool(const golden::Batch& batch) const {
        Matrix pooled{batch.samples, static_cast<std::int64_t>(weights.size() * dimension_)};
        std::vector<double> sums(pooled.size());
        each_id(batch, [&](std::size_t table, std::size_t row, std::size_t sample, double weight) {
            for (std::size_t d = 0; d < dimension_; ++d)
                sums[(sample * weights.size() + table) * dimension_ + d] +=
                    weight * weights[table][row * dimension_ + d];
        });
        std::transform(sums.begin(), sums.end(), pooled.elements.data(),
                       [](double x) { return static_cast<float>(x); });
        return pooled;
    }

    /// Gradient by touched row of each table.
    [[nodiscard]] std::vector<std::map<std::size_t, golden::Numbers>> gradients(const golden::Batch& batch,
                                                                                MatrixView<const float> dy) const {
        std::vector<std::map<std::size_t, golden::Numbers>> all(weights.size());
        each_id(batch, [&](std::size_t table, std::size_t row, std::size_t sample, double weight) {
            auto& gradient = all[table].try_emplace(row, dimension_, 0.0).first->second;
            const float* from = dy.row(static_cast<std::int64_t>(sample)) + table * dimension_;
            for (std::size_t d = 0; d < dimension_; ++d)
                gradient[d] += weight * static_cast<double>(from[d]);
        });
        return all;
    }

    void step(const golden::Batch& batch, MatrixView<const float> dy, const golden::Optimizer& o, int t) {
        const auto all = gradients(batch, dy);
        for (std::size_t table = 0; table < all.size(); ++table)
            for (const auto& [row, gradient] : all[table])
                update(table, row, gradient, o, t);
    }

    std::vector<golden::Numbers> weights;

  private:
    void update(std::size_t table, std::size_t row, const golden::Numbers& gradient, const golden::Optimizer& o,
                int t) {
        double* w = &weights[table][row * dimension_];
        double* m = &first_[table][row * dimension_];
        double* v = &second_[table][row * dimension_];
        double squares = 0.0;
        for (const double g : gradient)
            squares += g * g;
        if (o.name == "rowwise_adagrad") *m += squares;
        if (o.name == "rowwise_adagrad_mean") *m += squares / static_cast<double>(dimension_);
        for (std::size_t d = 0; d < dimension_; ++d) {
            const double g = gradient[d];
            if (o.name == "sgd") {
                w[d] -= o.learning_rate * g;
            } else if (o.name == "adagrad") {
                m[d] += g * g;
                w[d] -= o.learning_rate * g / (std::sqrt(m[d]) + o.epsilon);
            } else if (o.name == "adam") {
                m[d] = o.beta1 * m[d] + (1 - o.beta1) * g;
                v[d] = o.beta2 * v[d] + (1 - o.beta2) * g * g;
                const double rate = o.learning_rate * std::sqrt(1 - std::pow(o.beta2, t)) / (1 - std::pow(o.beta1, t));
                w[d] -= rate * m[d] / (std::sqrt(v[d]) + o.epsilon);
            } else {
                w[d] -= o.learning_rate * g / (std::sqrt(*m) + o.epsilon);
            }
        }
    }

    std::size_t dimension_;
    bool mean_;
    std::vector<golden::Numbers> first_, second_;  // moments; row-wise ones at a row's first element
};

/// The model with the file's initial weights.
shardwise::DlrmDense make_model(const golden::Case& c, shardwise::MemoryAccount& memory) {
    shardwise::DlrmDense model{{.dense_features = c.config.dense_features,
                                .dimension = c.config.dimension,
                                .features = c.config.features,
                                .bottom = c.config.bottom,
                                .top = c.config.top},
                               memory};
    EXPECT_EQ(model.parameters().size(), c.initial.dense.size());
    for (const auto& parameter : model.parameters()) {
        const auto& values = c.initial.dense.at(parameter.name);
        EXPECT_EQ(values.size(), parameter.size()) << parameter.name;
        std::copy(values.begin(), values.end(), parameter.values().begin());
    }
    return model;
}

using AnyOptimizer = std::variant<shardwise::DenseSgd, shardwise::DenseAdagrad, shardwise::DenseAdam>;

AnyOptimizer make_optimizer(const golden::Optimizer& o, std::size_t elements, std::pmr::memory_resource& resource) {
    if (o.name == "sgd") return shardwise::DenseSgd{elements, resource};
    if (o.name == "adagrad") return shardwise::DenseAdagrad{elements, resource, {.epsilon = o.epsilon}};
    EXPECT_EQ(o.name, "adam");
    return shardwise::DenseAdam{elements, resource, {.beta1 = o.beta1, .beta2 = o.beta2, .epsilon = o.epsilon}};
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, first_step) {
    const golden::Case c = golden::read(GetParam());
    shardwise::MemoryAccount memory;
    auto model = make_model(c, memory);
    const golden::Batch& batch = c.batches[0];
    const NaiveTables tables{c};
    const Matrix pooled = tables.pool(batch);
    expect_all_close(pooled.elements.span(), c.first.pooled, 1e-6);

    model.forward_bottom({batch.dense.data(), batch.samples, c.config.dense_features});
    const auto logits = model.forward_top(pooled.view());
    expect_all_close(logits, c.first.logits, 1e-6);
    std::vector<float> gradient(logits.size());
    const double loss = shardwise::binary_cross_entropy(logits, batch.labels, batch.samples, gradient);
    expect_close(loss / static_cast<double>(batch.samples), c.first.loss, 1e-6);
    expect_all_close(gradient, c.first.logit_gradient, 1e-7);

    const auto pooled_gradient = model.backward_top(gradient);
    model.backward_bottom();
    expect_all_close(std::span{pooled_gradient.data(), pooled.size()}, c.first.pooled_gradient, 1e-7);
    for (const auto& parameter : model.parameters()) {
        SCOPED_TRACE(parameter.name);
        expect_all_close(parameter.gradients(), c.first.dense_gradient.at(parameter.name), 1e-7);
    }
    const auto table_gradients = tables.gradients(batch, pooled_gradient);
    for (std::size_t table = 0; table < table_gradients.size(); ++table) {
        const auto& expected = c.first.table_gradient[table];
        std::vector<std::int64_t> rows;
        golden::Numbers values;
        for (const auto& [row, g] : table_gradients[table]) {
            rows.push_back(static_cast<std::int64_t>(row));
            values.insert(values.end(), g.begin(), g.end());
        }
        EXPECT_EQ(rows, expected.rows);
        expect_all_close(values, expected.values, 1e-7);
    }
}

TEST_P(Golden, ten_steps) {
    const golden::Case c = golden::read(GetParam());
    ASSERT_EQ(c.runs.size(), 5U);
    for (const auto& [name, run] : c.runs) {
        SCOPED_TRACE(name);
        shardwise::MemoryAccount memory;
        auto model = make_model(c, memory);
        auto& parameters = model.parameters();
        auto optimizer = make_optimizer(run.dense_optimizer, parameters.values().size(), memory.tables());
        NaiveTables tables{c};
        std::vector<double> losses;
        for (const golden::Batch& batch : c.batches) {
            const Matrix pooled = tables.pool(batch);
            model.forward_bottom({batch.dense.data(), batch.samples, c.config.dense_features});
            const auto logits = model.forward_top(pooled.view());
            std::vector<float> gradient(logits.size());
            losses.push_back(shardwise::binary_cross_entropy(logits, batch.labels, batch.samples, gradient) /
                             static_cast<double>(batch.samples));
            const auto pooled_gradient = model.backward_top(gradient);
            model.backward_bottom();
            const double rate = run.dense_optimizer.learning_rate;
            std::visit([&](auto& o) { o.step(parameters.values(), parameters.gradients(), rate); }, optimizer);
            tables.step(batch, pooled_gradient, run.sparse_optimizer, static_cast<int>(losses.size()));
        }
        expect_all_close(losses, run.losses, tolerance);
        for (const auto& parameter : parameters) {
            SCOPED_TRACE(parameter.name);
            expect_all_close(parameter.values(), run.final.dense.at(parameter.name), tolerance);
        }
        for (std::size_t table = 0; table < tables.weights.size(); ++table)
            expect_all_close(tables.weights[table], run.final.tables[table], tolerance);
    }
}

/// The files are only worth something if they have the cases that go wrong.
TEST_P(Golden, has_the_cases_it_promises) {
    const golden::Case c = golden::read(GetParam());
    std::set<std::int64_t> sizes;
    for (const auto& batch : c.batches) {
        EXPECT_NO_THROW(batch.ids().validate());
        EXPECT_EQ(batch.ids().features, c.config.features);
        EXPECT_NE(std::count(batch.lengths.begin(), batch.lengths.end(), 0), 0);
        EXPECT_EQ(batch.weights.empty(), std::string{GetParam()} != "dlrm_weighted");
        sizes.insert(batch.samples);
    }
    EXPECT_GT(sizes.size(), 1U);
    EXPECT_EQ(c.batches[0].lengths[0], 0);
    EXPECT_EQ((std::vector<std::int64_t>(c.batches[0].values.begin(), c.batches[0].values.begin() + 3)),
              (std::vector<std::int64_t>{4, 4, 4}));
    for (const auto& [name, run] : c.runs) {
        std::size_t moved = 0;
        for (std::size_t i = 0; i < run.final.tables[0].size(); ++i)
            moved += std::abs(run.final.tables[0][i] - static_cast<double>(c.initial.tables[0][i])) > 1e-3 ? 1 : 0;
        EXPECT_GT(moved, run.final.tables[0].size() / 2) << name;
    }
}

INSTANTIATE_TEST_SUITE_P(pytorch, Golden, testing::Values("dlrm_sum", "dlrm_mean", "dlrm_weighted"),
                         [](const auto& parameter) { return std::string{parameter.param}; });

}  // namespace
}  // namespace dense_test
