// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The fragments of docs/sequences.md: compiled, not run.

#include "shardwise/data/sequences.hpp"

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/data/alias_table.hpp"
#include "shardwise/data/history_generator.hpp"
#include "shardwise/data/loader.hpp"
#include "shardwise/data/next_items.hpp"
#include "shardwise/dense/data_parallel.hpp"
#include "shardwise/dense/loss.hpp"
#include "shardwise/dense/optimizer.hpp"
#include "shardwise/dense/sequence_model.hpp"
#include "shardwise/dense/target_attention.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/metrics/ranking.hpp"

namespace docs {

namespace sw = shardwise;

double train(sw::CommunicatorRef comm, sw::MemoryAccount& memory, const std::string& sharding, double learning_rate);
double rank_candidates(std::span<const float> logits);
sw::Histories generate(std::span<const double> lookups);

double train(sw::CommunicatorRef comm, sw::MemoryAccount& memory, const std::string& sharding, double learning_rate) {
    double loss = 0;
    std::vector<float> gradient;
    // clang-format off
    const auto histories = std::make_shared<const sw::Histories>(sw::read_histories({.files = {"clicks.txt"}}));
    sw::NextItems samples{{.histories = histories,
                           .history = 50,
                           .negatives = 4,
                           .slice = {.batch = 128, .rank = comm.rank(), .ranks = comm.size()}}};
    sw::PrefetchingLoader loader{std::move(samples)};

    const std::vector<sw::TableConfig> tables{
        {.name = "item", .rows = histories->rows, .dim = 32, .features = {"history", "candidate"}}};
    const auto layer = sw::make_layer(comm, tables, {.shardings = {sharding}, .optimizer = "adam", .pooling = "none"},
                                      {.learning_rate = {.base = 0.002F}});
    sw::SequenceModel<sw::TargetAttention> model{
        {.dimension = 32, .longest = 50, .top = {128, 64, 1}, .scale = std::sqrt(32.0F)}, memory};
    sw::ParameterSet& parameters = model.parameters();
    sw::DataParallel<sw::DenseAdam> training{parameters, {parameters.values().size(), memory.tables()}, comm, memory.work()};

    while (const sw::ClickBatch* batch = loader.next()) {
        sw::LayerFlight flight = layer->start(batch->ids.view());
        const sw::LayerVectors vectors = layer->forward(flight);
        const auto logits = model.forward({vectors.sequences[0], vectors.lengths[0]},   // (items, 32), (samples)
                                          {vectors.sequences[1], vectors.lengths[1]});  // -> one a candidate
        gradient.resize(logits.size());
        loss += sw::binary_cross_entropy(logits, batch->labels, 128 * 5 * comm.size(), gradient);
        const auto to_items = model.backward(gradient);
        training.start();
        layer->backward(std::move(flight), {.sequences = to_items});
        training.finish();
        training.step(learning_rate);
    }
    // clang-format on
    return loss;
}

double rank_candidates(std::span<const float> logits) {
    // clang-format off
    sw::RankingSums sums;
    sums.add(logits, 51);  // the right candidate and 50 others of each sample
    const double auc = sums.auc();
    // clang-format on
    return auc;
}

sw::Histories generate(std::span<const double> lookups) {
    // clang-format off
    const sw::AliasTable law{lookups};  // (rows): or sw::Zipf{rows, exponent}, or sw::RowSampler{sw::row_law(text)}
    const sw::Histories histories = sw::generate_histories(law, {.users = 10'000, .tastes = 16, .loyalty = 0.8});
    // clang-format on
    return histories;
}

}  // namespace docs
