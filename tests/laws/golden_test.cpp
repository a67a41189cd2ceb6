// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "golden/golden.hpp"

#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "laws/compositions.hpp"
#include "shardwise/comm/all_reduce.hpp"
#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/dense/dlrm.hpp"
#include "shardwise/dense/loss.hpp"
#include "shardwise/dense/optimizer.hpp"
#include "shardwise/optimizer/rms_prop.hpp"

/// \file
/// A whole DLRM over several ranks, sharded every way, against PyTorch: forward pass, gradients, ten training steps.

namespace laws {
namespace {

constexpr double tolerance = 1e-5;

void expect_close(double actual, double expected, const std::string& what) {
    if (!(std::abs(actual - expected) <= tolerance * std::max(1.0, std::abs(expected))))
        throw std::runtime_error{what + ": " + std::to_string(actual) + " instead of " + std::to_string(expected)};
}

/// Rank `rank`'s samples of a golden batch.
struct Part {
    std::int64_t samples = 0;
    std::vector<float> dense, labels, weights;
    std::vector<std::int32_t> lengths;
    std::vector<std::int64_t> ids;
    std::int64_t first = 0;

    Part(const golden::Batch& batch, std::int64_t features, std::int64_t dense_features, int rank, int ranks) {
        first = batch.samples * rank / ranks;
        samples = batch.samples * (rank + 1) / ranks - first;
        dense.assign(batch.dense.begin() + first * dense_features,
                     batch.dense.begin() + (first + samples) * dense_features);
        labels.assign(batch.labels.begin() + first, batch.labels.begin() + first + samples);
        std::size_t at = 0;
        for (std::int64_t bag = 0; bag < features * batch.samples; ++bag) {
            const auto length = batch.lengths[static_cast<std::size_t>(bag)];
            const std::int64_t sample = bag % batch.samples;
            if (sample >= first && sample < first + samples) {
                lengths.push_back(length);
                for (std::int32_t k = 0; k < length; ++k) {
                    ids.push_back(batch.values[at + static_cast<std::size_t>(k)]);
                    if (!batch.weights.empty()) weights.push_back(batch.weights[at + static_cast<std::size_t>(k)]);
                }
            }
            at += static_cast<std::size_t>(length);
        }
    }
    [[nodiscard]] Batch view(std::int64_t features) const {
        Batch batch;
        batch.wide_view.samples = samples;
        batch.wide_view.features = features;
        batch.wide_view.values = ids;
        batch.wide_view.lengths = lengths;
        batch.wide_view.weights = weights;
        return batch;
    }
};

using AnyOptimizer = std::variant<sw::DenseSgd, sw::DenseAdagrad, sw::DenseAdam>;
AnyOptimizer make_optimizer(const golden::Optimizer& o, std::size_t elements, std::pmr::memory_resource& memory) {
    if (o.name == "sgd") return sw::DenseSgd{elements, memory};
    if (o.name == "adagrad") return sw::DenseAdagrad{elements, memory, {.epsilon = o.epsilon}};
    return sw::DenseAdam{elements, memory, {.beta1 = o.beta1, .beta2 = o.beta2, .epsilon = o.epsilon}};
}

void check_rank(sw::ThreadCommunicator& comm, const Composition& composition, const golden::Case& c,
                const golden::Run& run) {
    const auto features = static_cast<std::int64_t>(c.tables.size());
    std::vector<sw::TableConfig> tables;
    for (std::size_t t = 0; t < c.tables.size(); ++t)
        tables.push_back({.name = c.tables[t].name,
                          .rows = c.tables[t].rows,
                          .dim = static_cast<int>(c.tables[t].dimension),
                          .features = {},
                          .sharding = composition.shardings[t % composition.shardings.size()]});
    auto layer =
        composition.make(comm, tables, static_cast<float>(run.sparse_optimizer.learning_rate), std::uint64_t{1});
    const auto each_weight = [&](const auto& use) {
        layer->for_each_shard([&](const sw::ShardView& shard, const auto& row_of) {
            const auto table = static_cast<std::size_t>(shard.table);
            for (std::int64_t local = 0; local < shard.rows; ++local)
                for (int d = 0; d < shard.dim; ++d)
                    use(shard.weights[local * shard.dim + d], table,
                        static_cast<std::size_t>(row_of(local) * c.tables[table].dimension + shard.first_column + d));
        });
    };
    each_weight([&](float& w, std::size_t table, std::size_t at) { w = c.initial.tables[table][at]; });

    sw::MemoryAccount memory;
    sw::DlrmDense model{{.dense_features = c.config.dense_features,
                         .dimension = c.config.dimension,
                         .features = c.config.features,
                         .bottom = c.config.bottom,
                         .top = c.config.top},
                        memory};
    for (const auto& parameter : model.parameters()) {
        const auto& values = c.initial.dense.at(parameter.name);
        std::copy(values.begin(), values.end(), parameter.values().begin());
    }
    AnyOptimizer optimizer = make_optimizer(run.dense_optimizer, model.parameters().values().size(), memory.tables());
    sw::TreeAllReduce all_reduce{comm, memory.work()};

    for (std::size_t step = 0; step < c.batches.size(); ++step) {
        const golden::Batch& batch = c.batches[step];
        const Part part{batch, features, c.config.dense_features, comm.rank(), comm.size()};
        const std::string where = composition.name() + ", step " + std::to_string(step);
        std::vector<Part> parts;
        std::vector<Batch> views;
        for (int rank = 0; rank < comm.size(); ++rank)
            parts.emplace_back(batch, features, c.config.dense_features, rank, comm.size());
        for (const Part& one : parts)
            views.push_back(one.view(features));
        layer.start(views, comm.rank());
        model.forward_bottom({part.dense.data(), part.samples, c.config.dense_features});
        const auto pooled = layer.forward();
        const std::int64_t width = features * c.config.dimension;
        const auto logits = model.forward_top({pooled[0].data(), part.samples, width});
        std::vector<float> gradient(logits.size());
        double loss = sw::binary_cross_entropy(logits, part.labels, batch.samples, gradient);
        const auto embedding_gradient = model.backward_top(gradient);
        model.backward_bottom();
        if (step == 0) {
            for (std::int64_t i = 0; i < part.samples; ++i) {
                expect_close(logits[static_cast<std::size_t>(i)],
                             c.first.logits[static_cast<std::size_t>(part.first + i)], where + ", logit");
                for (std::int64_t d = 0; d < width; ++d) {
                    const auto at = static_cast<std::size_t>((part.first + i) * width + d);
                    expect_close(pooled[0].data()[i * width + d], c.first.pooled[at], where + ", pooled");
                    expect_close(embedding_gradient(i, d), c.first.pooled_gradient[at], where + ", gradient");
                }
            }
        }
        all_reduce.start(model.parameters().gradients());
        layer.backward({{embedding_gradient.data(), part.samples, c.config.dimension, width}});
        all_reduce.finish();
        if (step == 0)
            for (const auto& parameter : model.parameters())
                for (std::size_t i = 0; i < parameter.size(); ++i)
                    expect_close(parameter.gradients()[i], c.first.dense_gradient.at(parameter.name)[i],
                                 where + ", gradient of " + parameter.name);
        std::visit(
            [&](auto& o) {
                o.step(model.parameters().values(), model.parameters().gradients(), run.dense_optimizer.learning_rate);
            },
            optimizer);
        double sum = 0.0;
        for (const auto& theirs : sw::all_gather_v<double>(comm, std::span<const double>{&loss, 1}))
            sum += theirs[0];
        expect_close(sum / static_cast<double>(batch.samples), run.losses[step], where + ", loss");
    }
    each_weight([&](float& w, std::size_t table, std::size_t at) {
        expect_close(w, run.final.tables[table][at], composition.name() + ", table " + std::to_string(table));
    });
    for (const auto& parameter : model.parameters())
        for (std::size_t i = 0; i < parameter.size(); ++i)
            expect_close(parameter.values()[i], run.final.dense.at(parameter.name)[i],
                         composition.name() + ", " + parameter.name);
}

TEST(Golden, ShardedDlrmTrainsAsPyTorchDoes) {
    int checked = 0;
    for (const char* file : {"dlrm_sum", "dlrm_mean", "dlrm_weighted"}) {
        const golden::Case c = golden::read(file);
        for (const Composition& composition : all_compositions()) {
            if (composition.pooling != c.pooling || composition.forward_wire != "fp32" ||
                composition.backward_wire != "fp32" || composition.has_modules() ||
                composition.optimizer == sw::RmsProp::name ||
                !composition.rule.learns)  // of which the golden files have no run
                continue;
            for (const sw::Topology& t : {sw::Topology{1, 1}, sw::Topology{2, 2}, sw::Topology{3, 1}}) {
                if (composition.is_coalesced() && t.ranks() != 4) continue;
                sw::ThreadWorld world{t};
                try {
                    world.run([&](sw::ThreadCommunicator& comm) {
                        check_rank(comm, composition, c, c.runs.at(composition.optimizer));
                    });
                    ++checked;
                } catch (const std::exception& error) {
                    ADD_FAILURE() << file << ", " << t.hosts << "x" << t.ranks_per_host << ": " << error.what();
                }
            }
        }
    }
    EXPECT_GE(checked, 3 * 3 * 25);
}

}  // namespace
}  // namespace laws
