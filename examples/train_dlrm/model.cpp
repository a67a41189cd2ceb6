// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "model.hpp"

#include <string>

#include "shardwise/checkpoint/dense_tensors.hpp"
#include "shardwise/dense/loss.hpp"
#include "shardwise/tower/layer_modules.hpp"
#include "shardwise/tower/parameters.hpp"
#include "stopwatch.hpp"

namespace train_dlrm {

namespace {

/// Dense weights learn as rows do. Row-wise moments make no sense for them: they learn by Adagrad then.
sw::AnyDenseOptimizer optimizer_of(const sw::ParameterSet& parameters, const std::string& of_rows,
                                   sw::MemoryAccount& memory) {
    return {of_rows == "sgd" || of_rows == "adam" ? of_rows : "adagrad", parameters.values().size(), memory.tables()};
}

}  // namespace

LayerSeconds& LayerSeconds::operator+=(const LayerSeconds& more) noexcept {
    exchange += more.exchange;
    exposed += more.exposed;
    lookup += more.lookup;
    sync += more.sync;
    return *this;
}
LayerSeconds& LayerSeconds::operator-=(const LayerSeconds& less) noexcept {
    return *this += {.exchange = -less.exchange, .exposed = -less.exposed, .lookup = -less.lookup, .sync = -less.sync};
}

Model::Model(const Options& o, sw::CommunicatorRef comm)
    : messages_{std::make_unique<LayerMessages>(comm)},
      learning_rate_{o.learning_rate},
      embedding_{make_embedding(o.policies, messages_->counted, tables_of(o),
                                {.learning_rate = o.learning_rate,
                                 .seed = o.seed,
                                 .towers = towers_of(o, comm.topology()),
                                 .groups = o.groups,
                                 .rows = o.row_plan.get(),
                                 .memory = embedding_memory_.get(),
                                 .tracer = tracer_.get()},
                                o.moment_scale, module_config(o))},
      dense_{make_dense_part(o, *embedding_, *dense_memory_)},
      labels_a_sample_{o.sequences ? 1 + o.sequences->negatives : 1},
      training_{dense_->parameters(), optimizer_of(dense_->parameters(), o.policies.optimizer, *dense_memory_), comm,
                dense_memory_->work()},
      logit_gradient_{dense_memory_->work()},
      sync_overlap_{o.sync_overlap} {
    if (o.policies.tower == "pass") return;
    sw::ParameterSet& parameters = sw::module_of<sw::AnyModule>(*embedding_).parameters();
    module_training_.emplace(parameters, optimizer_of(parameters, o.policies.optimizer, *dense_memory_), comm,
                             embedding_->topology(), embedding_->groups(), dense_memory_->work());
    module_tensors_.emplace(*embedding_, *module_training_, comm);
}

std::span<const float> Model::forward(const sw::ClickBatch& batch) {
    const std::int64_t begin = tracer_->now();
    dense_->forward_bottom(batch);
    tracer_->add("bottom MLP", sw::SpanKind::compute, number(), begin);
    const sw::LayerVectors vectors = embedding_->forward(flights_.front());
    vectors_ = vectors.pooled;
    const std::int64_t meeting = tracer_->now();
    const std::span<const float> logits = dense_->forward_top(vectors);
    tracer_->add("interaction and top MLP", sw::SpanKind::compute, number(), meeting);
    return logits;
}

void Model::drop() {
    static_cast<void>(embedding_->forward(flights_.front()));
    finish();
}

double Model::learn(const sw::ClickBatch& batch, std::span<const float> logits, const sw::SampleCounts& samples) {
    const std::int64_t begin = tracer_->now();
    const std::span<float> gradient = logit_gradient_.resize(logits.size());
    const double loss = sw::binary_cross_entropy(logits, batch.labels, samples.world * labels_a_sample_, gradient) /
                        static_cast<double>(labels_a_sample_);
    const sw::LayerVectors to_embeddings = dense_->backward(gradient, samples.to_group());
    tracer_->add("backward of the MLPs", sw::SpanKind::compute, number(), begin);
    {
        const Stopwatch watch{reduction_seconds_};
        training_.start();
    }
    embedding_->backward(std::move(flights_.front()), to_embeddings);
    flights_.pop_front();
    if (!sync_overlap_) finish_sync();
    const std::int64_t reduction = tracer_->now();
    {
        const Stopwatch watch{reduction_seconds_};
        training_.finish();
        if (module_training_) module_training_->sum(samples.to_world());
    }
    tracer_->add("sum of dense gradients", sw::SpanKind::compute, number(), reduction);
    embedding_->advance_sync();
    ++steps_;
    const double rate = learning_rate_.at(steps_);
    training_.step(rate);
    if (module_training_) module_training_->step(rate);
    embedding_->advance_sync();
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
    size.flops = dense_->flops();
    size.dense = training_.parameters().elements();
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

std::int64_t Model::embedding_payload() const {
    const sw::Traffic sent = messages_->counted.sent().total();
    return sent.host.payload + sent.cross_host.payload - embedding_->synced_payload();
}

LayerSeconds Model::layer_seconds() const noexcept {
    const double wait = tracer_->seconds(sw::SpanKind::wait);
    return {.exchange = wait + tracer_->seconds(sw::SpanKind::pack),
            .exposed = wait,
            .lookup = tracer_->seconds(sw::SpanOf::lookup),
            .sync = tracer_->seconds(sw::SpanOf::sync)};
}

}  // namespace train_dlrm
