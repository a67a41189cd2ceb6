// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "model.hpp"

#include <string>

#include "shardwise/dense/loss.hpp"
#include "stopwatch.hpp"

namespace train_dlrm {

namespace {

/// The towers that the command line asks for; none: as the layer has it.
sw::Towers towers_of(const Options& o, const sw::Topology& topology) {
    if (o.towers == 0) return {};
    static_cast<void>(sw::with_towers(topology, o.towers));
    return sw::deal_tables(tables_of(o), o.towers);
}

}  // namespace

sw::DlrmConfig Model::dense_config(const Options& o) {
    return {.dense_features = dense_features,
            .dimension = o.dim,
            .features = categories,
            .bottom = o.bottom,
            .top = o.top,
            .seed = o.seed,
            .precision = o.policies.order == "tree" ? sw::DensePrecision::single : sw::DensePrecision::wide};
}

Model::DenseRule Model::dense_rule(const Options& o, std::size_t elements, sw::MemoryAccount& memory) {
    const std::string& name = o.policies.optimizer;  // row-wise moments make no sense for dense weights
    if (name == "sgd") return DenseRule{std::in_place_type<sw::DenseSgd>, elements, memory.tables()};
    if (name == "adam") return DenseRule{std::in_place_type<sw::DenseAdam>, elements, memory.tables()};
    return DenseRule{std::in_place_type<sw::DenseAdagrad>, elements, memory.tables()};
}

Model::Model(const Options& o, sw::CommunicatorRef comm)
    : topology_{comm.topology()},
      learning_rate_{o.learning_rate},
      dense_{dense_config(o), *dense_memory_},
      rule_{dense_rule(o, dense_.parameters().values().size(), *dense_memory_)},
      reduce_{comm, dense_memory_->work()},
      wide_reduce_{comm, dense_memory_->work()},
      logit_gradient_{dense_memory_->work()},
      embedding_{make_embedding(o.policies, comm, tables_of(o),
                                {.learning_rate = o.learning_rate,
                                 .seed = o.seed,
                                 .towers = towers_of(o, comm.topology()),
                                 .memory = embedding_memory_.get(),
                                 .tracer = tracer_.get()})} {}

std::span<const float> Model::forward(const sw::ClickBatch& batch) {
    const std::int64_t begin = tracer_->now();
    dense_.forward_bottom(batch.dense_view());
    tracer_->add("bottom MLP", sw::SpanKind::compute, number(), begin);
    const sw::MatrixView<const float> embeddings = embedding_->forward(flights_.front()).pooled;
    const std::int64_t meeting = tracer_->now();
    const std::span<const float> logits = dense_.forward_top(embeddings);
    tracer_->add("interaction and top MLP", sw::SpanKind::compute, number(), meeting);
    return logits;
}

void Model::drop() {
    static_cast<void>(embedding_->forward(flights_.front()));
    finish();
}

double Model::learn(const sw::ClickBatch& batch, std::span<const float> logits, std::int64_t global_samples) {
    const std::int64_t begin = tracer_->now();
    const std::span<float> gradient = logit_gradient_.resize(logits.size());
    const double loss = sw::binary_cross_entropy(logits, batch.labels, global_samples, gradient);
    const sw::MatrixView<const float> to_embeddings = dense_.backward_top(gradient);
    dense_.backward_bottom();
    tracer_->add("backward of the MLPs", sw::SpanKind::compute, number(), begin);
    {
        const Stopwatch watch{reduction_seconds_};
        if (wide()) {
            wide_reduce_.start(dense_.parameters().wide_gradients());
        } else {
            reduce_.start(dense_.parameters().gradients());
        }
    }
    embedding_->backward(std::move(flights_.front()), {.pooled = to_embeddings, .sequences = {}});
    flights_.pop_front();
    const std::int64_t reduction = tracer_->now();
    {
        const Stopwatch watch{reduction_seconds_};
        if (wide()) {
            wide_reduce_.finish();
            dense_.parameters().round_gradients();
        } else {
            reduce_.finish();
        }
    }
    tracer_->add("sum of dense gradients", sw::SpanKind::compute, number(), reduction);
    ++steps_;
    const double rate = learning_rate_.at(steps_);
    std::visit([&](auto& rule) { rule.step(dense_.parameters().values(), dense_.parameters().gradients(), rate); },
               rule_);
    return loss;
}

sw::TrafficMatrix Model::predict_reduction() const {
    const auto elements = static_cast<std::int64_t>(dense_.parameters().values().size());
    return wide() ? sw::predict_all_reduce<double>(topology_, elements) : sw::predict_all_reduce(topology_, elements);
}

std::size_t Model::moments() const {
    return std::holds_alternative<sw::DenseSgd>(rule_) ? 0 : std::holds_alternative<sw::DenseAdam>(rule_) ? 2 : 1;
}

sw::Checkpoint Model::checkpoint() {
    sw::Checkpoint all{.layer = sw::shards_of(*embedding_), .dense = {}, .numbers = {}};
    const std::span<float> state = std::visit([](auto& rule) { return rule.state(); }, rule_);
    const std::span<float> values = dense_.parameters().values();
    for (const sw::Parameter& weight : dense_.parameters()) {
        const std::vector<std::int64_t> shape{weight.rows, weight.columns};
        all.dense.push_back({weight.name, shape, weight.values()});
        const auto first = static_cast<std::size_t>(weight.values().data() - values.data());
        for (std::size_t i = 0; i < moments(); ++i)
            all.dense.push_back({"dense_state/" + weight.name + "/" + std::to_string(i), shape,
                                 state.subspan(i * values.size() + first, weight.size())});
    }
    return all;
}

void Model::set_steps(std::int64_t steps) {
    steps_ = steps;
    embedding_->set_steps(steps);
    std::visit([&](auto& rule) { rule.set_steps(steps); }, rule_);
}

double Model::exchange_seconds() const noexcept {
    return tracer_->seconds(sw::SpanKind::wait) + tracer_->seconds(sw::SpanKind::pack);
}

}  // namespace train_dlrm
