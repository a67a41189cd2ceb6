// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The fragments of docs/dense.md: compiled, not run.

#include <cstdint>
#include <span>

#include "shardwise/comm/all_reduce.hpp"
#include "shardwise/dense/dlrm.hpp"
#include "shardwise/dense/loss.hpp"
#include "shardwise/dense/optimizer.hpp"

namespace docs {

namespace sw = shardwise;

double step(sw::MemoryAccount& memory, sw::MatrixView<const float> dense, sw::MatrixView<const float> embeddings,
            std::span<const float> labels, std::int64_t global_samples, std::span<float> gradient,
            double learning_rate);

double step(sw::MemoryAccount& memory, sw::MatrixView<const float> dense, sw::MatrixView<const float> embeddings,
            std::span<const float> labels, std::int64_t global_samples, std::span<float> gradient,
            double learning_rate) {
    double loss = 0;
    // clang-format off
    sw::DlrmDense model{{.dense_features = 13, .dimension = 64, .features = 26, .bottom = {512, 256, 64}, .top = {512, 256, 1}},
                        memory};
    sw::ParameterSet& parameters = model.parameters();
    sw::DenseAdagrad optimizer{parameters.values().size(), memory.tables()};

    model.forward_bottom(dense);                        // (samples, 13); while the embeddings are on their way
    auto logits = model.forward_top(embeddings);        // (samples, 26 * 64) -> (samples)
    loss += sw::binary_cross_entropy(logits, labels, global_samples, gradient);
    auto to_embeddings = model.backward_top(gradient);  // (samples) -> (samples, 26 * 64)
    model.backward_bottom();                            // while those gradients are on their way
    // ... add parameters.gradients() over ranks ...
    optimizer.step(parameters.values(), parameters.gradients(), learning_rate);
    // clang-format on
    return to_embeddings.rows() == 0 ? 0 : loss;
}

void wide_step(sw::CommunicatorRef comm, sw::ParameterSet& parameters, sw::DenseAdagrad& optimizer,
               double learning_rate);

void wide_step(sw::CommunicatorRef comm, sw::ParameterSet& parameters, sw::DenseAdagrad& optimizer,
               double learning_rate) {
    sw::BasicTreeAllReduce<double> sum{comm};
    sum(parameters.wide_gradients());
    parameters.round_gradients();
    optimizer.step(parameters.values(), parameters.gradients(), learning_rate);
}

}  // namespace docs
