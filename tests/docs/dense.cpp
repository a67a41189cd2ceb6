// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The fragments of docs/dense.md: compiled, not run.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwise/dense/any_optimizer.hpp"
#include "shardwise/dense/data_parallel.hpp"
#include "shardwise/dense/dlrm.hpp"
#include "shardwise/dense/loss.hpp"
#include "shardwise/dense/mlp.hpp"
#include "shardwise/dense/optimizer.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/embedding/layer.hpp"

namespace docs {

namespace sw = shardwise;

double step(sw::MemoryAccount& memory, sw::CommunicatorRef comm, sw::EmbeddingLayer<>& layer,
            sw::MatrixView<const float> dense, sw::MatrixView<const float> embeddings, std::span<const float> labels,
            std::int64_t global_samples, std::span<float> gradient, double learning_rate);

double step(sw::MemoryAccount& memory, sw::CommunicatorRef comm, sw::EmbeddingLayer<>& layer,
            sw::MatrixView<const float> dense, sw::MatrixView<const float> embeddings, std::span<const float> labels,
            std::int64_t global_samples, std::span<float> gradient, double learning_rate) {
    double loss = 0;
    // clang-format off
    sw::DlrmDense model{{.dense_features = 13, .dimension = 64, .features = 26, .bottom = {512, 256, 64}, .top = {512, 256, 1}},
                        memory};
    sw::ParameterSet& parameters = model.parameters();
    sw::DataParallel<sw::DenseAdagrad> training{parameters, {parameters.values().size(), memory.tables()}, comm, memory.work()};

    model.forward_bottom(dense);                        // (samples, 13); while the embeddings are on their way
    auto logits = model.forward_top(embeddings);        // (samples, 26 * 64) -> (samples)
    loss += sw::binary_cross_entropy(logits, labels, global_samples, gradient);
    auto to_embeddings = model.backward_top(gradient);  // (samples) -> (samples, 26 * 64)
    model.backward_bottom();                            // while those gradients are on their way
    training.start();                                   // gradients of the dense part over ranks
    layer.backward(to_embeddings);                      // meanwhile the rows learn
    training.finish();
    training.step(learning_rate);
    // clang-format on
    return loss;
}

/// docs/optimizers.md
void clipped(sw::DataParallel<sw::DenseAdagrad>& training, sw::EmbeddingLayer<>& layer,
             sw::MatrixView<const float> to_embeddings, double learning_rate);

void clipped(sw::DataParallel<sw::DenseAdagrad>& training, sw::EmbeddingLayer<>& layer,
             sw::MatrixView<const float> to_embeddings, double learning_rate) {
    // clang-format off
    training.sum();                           // gradients of the dense part, over ranks
    layer.clip_with(training.squares());      // they count in the norm
    layer.backward(to_embeddings);            // finds it, and clips the tables' gradients
    training.rescale(layer.gradient_scale()); // and those of the dense part alike
    training.step(learning_rate);
    // clang-format on
}

float an_mlp(sw::MemoryAccount& memory, sw::MatrixView<const float> input, sw::MatrixView<const float> gradient,
             sw::MatrixView<float> input_gradient, std::uint64_t seed, double learning_rate);

float an_mlp(sw::MemoryAccount& memory, sw::MatrixView<const float> input, sw::MatrixView<const float> gradient,
             sw::MatrixView<float> input_gradient, std::uint64_t seed, double learning_rate) {
    // clang-format off
    sw::ParameterSet parameters{memory.tables()};
    const std::vector<std::int64_t> widths{48, 32, 1};  // inputs, outputs of each layer
    sw::Mlp<sw::Relu, sw::Identity> mlp{parameters, "mlp", widths, memory.work()};
    parameters.allocate();
    mlp.initialize(seed);
    sw::DenseAdagrad optimizer{parameters.values().size(), memory.tables()};

    const auto logits = mlp.forward(input);       // (samples, 48) -> (samples, 1)
    mlp.backward(gradient, input_gradient);       // (samples, 1) -> (samples, 48), and the parameters' gradients
    optimizer.step(parameters.values(), parameters.gradients(), learning_rate);
    // clang-format on
    return logits(0, 0);
}

double step_by_name(sw::MemoryAccount& memory, sw::CommunicatorRef comm, sw::ParameterSet& parameters,
                    const std::string& name, double learning_rate);

double step_by_name(sw::MemoryAccount& memory, sw::CommunicatorRef comm, sw::ParameterSet& parameters,
                    const std::string& name, double learning_rate) {
    // clang-format off
    sw::DataParallel<sw::AnyDenseOptimizer> training{
        parameters, {name, parameters.values().size(), memory.tables()}, comm, memory.work()};
    // clang-format on
    training.sum();
    training.step(learning_rate);
    return static_cast<double>(parameters.values()[0]);
}

void without_dense_features(sw::MatrixView<const float> embeddings, sw::MemoryAccount& memory);
void without_dense_features(sw::MatrixView<const float> embeddings, sw::MemoryAccount& memory) {
    // clang-format off
    sw::DlrmDense model{{.dimension = 16, .features = 22, .top = {128, 64, 1}}, memory};
    model.forward_bottom({nullptr, embeddings.rows(), 0});
    auto logits = model.forward_top(embeddings);
    // clang-format on
    static_cast<void>(logits);
}

}  // namespace docs
