// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "model.hpp"

#include <string>
#include <type_traits>

#include "shardwise/checkpoint/dense_tensors.hpp"
#include "shardwise/dense/loss.hpp"
#include "shardwise/tower/layer_modules.hpp"
#include "shardwise/tower/parameters.hpp"
#include "stopwatch.hpp"

namespace train_dlrm {

namespace {

sw::ParameterSet& parameters_of(std::variant<sw::DlrmDense, sw::DcnDense>& dense) {
    return std::visit([](auto& model) -> sw::ParameterSet& { return model.parameters(); }, dense);
}

/// Dense weights learn as rows do. Row-wise moments make no sense for them: they learn by Adagrad then.
sw::AnyDenseOptimizer optimizer_of(const sw::ParameterSet& parameters, const std::string& of_rows,
                                   sw::MemoryAccount& memory) {
    return {of_rows == "sgd" || of_rows == "adam" ? of_rows : "adagrad", parameters.values().size(), memory.tables()};
}

}  // namespace

Model::Dense Model::make_dense(const Options& o, const sw::LayerBase& embedding, sw::MemoryAccount& memory) {
    const int dim = interaction_dim(o);
    const auto fill = [&](auto config) {
        config.dense_features = dense_features;
        config.dimension = dim;
        config.features = embedding.width() / dim;
        config.bottom = o.bottom;
        config.top = o.top;
        config.seed = o.seed;
        config.precision = precision_of(o);
        return config;
    };
    if (o.model == "dlrm") return Dense{std::in_place_type<sw::DlrmDense>, fill(sw::DlrmConfig{}), memory};
    sw::DcnConfig config = fill(sw::DcnConfig{});
    config.interaction = {.layers = o.cross_layers, .rank = o.cross_rank};
    return Dense{std::in_place_type<sw::DcnDense>, config, memory};
}

Model::Model(const Options& o, sw::CommunicatorRef comm)
    : learning_rate_{o.learning_rate},
      embedding_{make_embedding(o.policies, comm, tables_of(o),
                                {.learning_rate = o.learning_rate,
                                 .seed = o.seed,
                                 .towers = towers_of(o, comm.topology()),
                                 .memory = embedding_memory_.get(),
                                 .tracer = tracer_.get()},
                                module_config(o))},
      dense_{make_dense(o, *embedding_, *dense_memory_)},
      training_{parameters_of(dense_), optimizer_of(parameters_of(dense_), o.policies.optimizer, *dense_memory_), comm,
                dense_memory_->work()},
      logit_gradient_{dense_memory_->work()} {
    if (o.policies.tower == "pass") return;
    sw::ParameterSet& parameters = sw::module_of<sw::AnyModule>(*embedding_).parameters();
    module_training_.emplace(parameters, optimizer_of(parameters, o.policies.optimizer, *dense_memory_), comm,
                             embedding_->topology(), dense_memory_->work());
    module_tensors_.emplace(*embedding_, *module_training_, comm);
}

std::span<const float> Model::forward(const sw::ClickBatch& batch) {
    const std::int64_t begin = tracer_->now();
    std::visit([&](auto& dense) { dense.forward_bottom(batch.dense_view()); }, dense_);
    tracer_->add("bottom MLP", sw::SpanKind::compute, number(), begin);
    vectors_ = embedding_->forward(flights_.front()).pooled;
    const std::int64_t meeting = tracer_->now();
    const std::span<const float> logits = std::visit([&](auto& dense) { return dense.forward_top(vectors_); }, dense_);
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
    const sw::MatrixView<const float> to_embeddings = std::visit(
        [&](auto& dense) {
            const sw::MatrixView<const float> result = dense.backward_top(gradient);
            dense.backward_bottom();
            return result;
        },
        dense_);
    tracer_->add("backward of the MLPs", sw::SpanKind::compute, number(), begin);
    {
        const Stopwatch watch{reduction_seconds_};
        training_.start();
    }
    embedding_->backward(std::move(flights_.front()), {.pooled = to_embeddings, .sequences = {}});
    flights_.pop_front();
    const std::int64_t reduction = tracer_->now();
    {
        const Stopwatch watch{reduction_seconds_};
        training_.finish();
        if (module_training_) module_training_->sum();
    }
    tracer_->add("sum of dense gradients", sw::SpanKind::compute, number(), reduction);
    ++steps_;
    const double rate = learning_rate_.at(steps_);
    training_.step(rate);
    if (module_training_) module_training_->step(rate);
    return loss;
}

sw::TrafficMatrix Model::predict_reduction() const {
    sw::TrafficMatrix moved = training_.predict_sum();
    if (module_training_) moved += sw::predict_module_sum<sw::AnyModule>(*embedding_, training_.precision());
    return moved;
}

sw::Checkpoint Model::checkpoint() {
    sw::Checkpoint all{.layer = sw::shards_of(*embedding_), .dense = {}, .numbers = {}};
    sw::append_tensors(all, training_);
    if (module_tensors_) module_tensors_->append_to(all);
    return all;
}

void Model::set_steps(std::int64_t steps) {
    steps_ = steps;
    embedding_->set_steps(steps);
    training_.optimizer().set_steps(steps);
    if (module_training_) module_training_->optimizer().set_steps(steps);
}

ModelSize Model::size() const {
    ModelSize size;
    std::visit(
        [&](const auto& dense) {
            size.flops = dense.flops();
            size.dense = std::decay_t<decltype(dense)>::parameter_count(dense.config());
        },
        dense_);
    for (const sw::TableConfig& table : embedding_->tables())
        size.tables += table.rows * table.dim;
    if (module_training_) {
        const auto modules = sw::size_of_modules<sw::AnyModule>(*embedding_);
        size.flops += modules.flops;
        size.modules = modules.parameters;
        size.compression = sw::compression(embedding_->towers());
    }
    return size;
}

double Model::exchange_seconds() const noexcept {
    return tracer_->seconds(sw::SpanKind::wait) + tracer_->seconds(sw::SpanKind::pack);
}

}  // namespace train_dlrm
