// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/dense/activation.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/mlp.hpp"
#include "shardwise/dense/parameter.hpp"

/// \file
/// The dense part of a recommendation model: bottom MLP, an interaction with the embeddings, top MLP.

namespace shardwise::inline SHARDWISE_ABI {

/// Shapes of a dense part with an Interaction.
template <class Interaction>
struct DenseModelConfig {
    std::int64_t dense_features = 0;        ///< inputs of the bottom MLP; 0: there is none
    std::int64_t dimension = 0;             ///< D, elements of an embedding
    std::int64_t features = 0;              ///< F, embeddings a sample
    std::vector<std::int64_t> bottom = {};  ///< outputs of its layers; the last is D; none without dense features
    std::vector<std::int64_t> top = {};     ///< outputs of each layer of the top MLP; the last is 1
    std::uint64_t seed = 0;                 ///< of the initial values
    DensePrecision precision = DensePrecision::single;  ///< of sums of products, and of gradients
    typename Interaction::Config interaction = {};

    /// Checks the shapes. \throws BadInput with a sentence that names the number and the remedy
    void validate() const {
        const auto at_least_one = [](const std::string& what, std::int64_t n) {
            if (n < 1) throw BadInput{concat({text(), what, " is ", n, ": it is at least 1"})};
        };
        if (dense_features < 0)
            throw BadInput{concat({text(), "the number of dense features is ", dense_features, ": it is at least 0"})};
        at_least_one("the dimension of an embedding", dimension);
        at_least_one("the number of embeddings a sample", features);
        for (const std::int64_t width : bottom)
            at_least_one("a width of the bottom MLP", width);
        for (const std::int64_t width : top)
            at_least_one("a width of the top MLP", width);
        if (!has_dense() && !bottom.empty())
            throw BadInput{concat({text(), "there are no dense features, and the bottom MLP ends in ", ending(bottom),
                                   ": without dense features it has no layers"})};
        if (has_dense() && (bottom.empty() || bottom.back() != dimension))
            throw BadInput{
                concat({text(), "the bottom MLP ends in ", ending(bottom), ", and embeddings have dimension ",
                        dimension, ": its last width is the dimension of the embeddings"})};
        if (top.empty() || top.back() != 1)
            throw BadInput{concat({text(), "the top MLP ends in ", ending(top), ": its last width is 1, the logit"})};
        if (Interaction::outputs(dimension, features, has_dense()) < 1)
            throw BadInput{concat({text(), features,
                                   " embedding and no dense features: nothing meets it; give another "
                                   "embedding or dense features"})};
    }
    /// Whether a vector of dense features meets the embeddings.
    [[nodiscard]] bool has_dense() const noexcept { return dense_features > 0; }

  private:
    static std::string text() { return std::string{Interaction::model} + ": "; }
    static std::string ending(const std::vector<std::int64_t>& widths) {
        return widths.empty() ? "nothing" : "width " + std::to_string(widths.back());
    }
};

/// The dense part of a model, on one rank: data parallel over ranks, each with its own samples.
///
/// The bottom MLP has a ReLU after every layer, the top MLP between its layers; parameters are named
/// `bottom.<layer>.weight`, `bottom.<layer>.bias`, `top.<layer>.weight` and `top.<layer>.bias`, and those of the
/// interaction as it says. A step is
///
///     model.forward_bottom(dense);                        // while the embeddings are on their way
///     auto logits = model.forward_top(embeddings);
///     loss += binary_cross_entropy(logits, labels, global_samples, gradient);
///     auto to_embeddings = model.backward_top(gradient);  // goes back to the embedding layer
///     model.backward_bottom();                            // while those gradients are on their way
///     // add model.parameters().gradients() over ranks (with wide precision: wide_gradients(), then round), then
///     optimizer.step(model.parameters().values(), model.parameters().gradients(), learning_rate);
///
/// Without dense features there is no bottom MLP, the embeddings meet each other alone, and forward_bottom is given a
/// matrix without columns. Nothing here is collective. A rank may have no samples: its gradients are then zero. Work
/// buffers grow when a batch is larger than all before it; nothing else allocates. \tparam Interaction  how a sample's
/// vectors meet: DotInteraction, CrossInteraction, or a class with their members
template <class Interaction>
class DenseModel {
  public:
    using Config = DenseModelConfig<Interaction>;

    /// Reserves, allocates and initializes the parameters; a function of `config` alone, equal on all ranks.
    /// \param memory  outlives the model: parameters lie in its `tables()`, all else in its `work()`
    /// \throws BadInput when the shapes do not fit; see DenseModelConfig::validate
    DenseModel(Config config, MemoryAccount& memory)
        : config_{validated(std::move(config))},
          parameters_{memory.tables()},
          interaction_{parameters_,         config_.dimension, config_.features, config_.has_dense(),
                       config_.interaction, memory.work(),     config_.precision},
          bottom_{make_bottom(config_, parameters_, memory)},
          top_{parameters_, "top", widths(interaction_.outputs(), config_.top), memory.work(), config_.precision},
          meeting_{memory.work()},
          meeting_gradient_{memory.work()},
          dense_gradient_{memory.work()},
          embedding_gradient_{memory.work()} {
        parameters_.allocate(config_.precision);
        interaction_.initialize(config_.seed);
        if (bottom_) bottom_->initialize(config_.seed);
        top_.initialize(config_.seed);
    }

    [[nodiscard]] const Config& config() const noexcept { return config_; }
    /// Values and gradients of all weights and biases.
    [[nodiscard]] ParameterSet& parameters() noexcept { return parameters_; }
    [[nodiscard]] const ParameterSet& parameters() const noexcept { return parameters_; }
    /// Of the four stages together, a sample, as a profiler counts: 6 a multiplication of a weight (2 forward, 4
    /// backward), but for the gradient of the first layer's input, which nobody needs; biases and activations not.
    [[nodiscard]] static std::int64_t flops(const Config& config) {
        std::int64_t products = config.has_dense() ? -2 * config.dense_features * config.bottom.front() : 0;
        for_layers(config, [&](std::int64_t inputs, std::int64_t outputs) { products += 6 * inputs * outputs; });
        return products + Interaction::flops(config.dimension, config.features, config.has_dense(), config.interaction);
    }
    [[nodiscard]] std::int64_t flops() const { return flops(config_); }
    /// Weights and biases.
    [[nodiscard]] static std::int64_t parameter_count(const Config& config) {
        std::int64_t count =
            Interaction::parameter_count(config.dimension, config.features, config.has_dense(), config.interaction);
        for_layers(config, [&](std::int64_t inputs, std::int64_t outputs) { count += (inputs + 1) * outputs; });
        return count;
    }

    /// Runs the bottom MLP.
    /// \param dense  (samples, dense_features); has to stay as it is until backward_bottom
    /// \throws BadInput when the number of columns is another one
    void forward_bottom(MatrixView<const float> dense) {
        expect("forward_bottom", "dense features", dense.columns(), config_.dense_features);
        samples_ = dense.rows();
        bottom_output_ = bottom_ ? bottom_->forward(dense) : dense;
        stage_ = Stage::bottom;
    }

    /// Runs the interaction and the top MLP.
    /// \param embeddings  (samples, F * D), feature after feature; has to stay as it is until backward_top
    /// \returns the logits, (samples), valid until the next forward_top
    /// \throws BadInput when the shape does not fit, or forward_bottom did not come first
    std::span<const float> forward_top(MatrixView<const float> embeddings) {
        follows("forward_top", Stage::bottom, "forward_bottom");
        expect("forward_top", "columns of embeddings", embeddings.columns(), config_.features * config_.dimension);
        expect("forward_top", "samples", embeddings.rows(), samples_);
        embeddings_ = embeddings;
        const MatrixView<float> meeting = matrix(meeting_, interaction_.outputs());
        interaction_.forward(bottom_output_, embeddings, meeting);
        const MatrixView<const float> logits = top_.forward(meeting);
        stage_ = Stage::top;
        return {logits.data(), static_cast<std::size_t>(samples_)};
    }

    /// Overwrites the gradients of the top MLP.
    /// \param gradient  with respect to the logits, (samples)
    /// \param to_embeddings  what the result is multiplied with: SampleCounts::to_group() under replica groups
    /// \returns the gradient with respect to the embeddings, (samples, F * D), valid until the next backward_top
    /// \throws BadInput when the size does not fit, or forward_top did not come first
    MatrixView<const float> backward_top(std::span<const float> gradient, float to_embeddings = 1) {
        follows("backward_top", Stage::top, "forward_top");
        expect("backward_top", "samples", static_cast<std::int64_t>(gradient.size()), samples_);
        const MatrixView<float> meeting_gradient = matrix(meeting_gradient_, interaction_.outputs());
        const MatrixView<float> embedding_gradient = matrix(embedding_gradient_, embeddings_.columns());
        top_.backward({gradient.data(), samples_, 1}, meeting_gradient);
        interaction_.backward(bottom_output_, embeddings_, meeting_gradient,
                              matrix(dense_gradient_, bottom_output_.columns()), embedding_gradient);
        if (to_embeddings != 1)
            for (float& g : embedding_gradient_.span())
                g *= to_embeddings;
        stage_ = Stage::top_gradient;
        return embedding_gradient;
    }

    /// Overwrites the gradients of the bottom MLP. \throws BadInput when backward_top did not come first
    void backward_bottom() {
        follows("backward_bottom", Stage::top_gradient, "backward_top");
        if (bottom_) bottom_->backward(MatrixView<const float>{dense_gradient_.data(), samples_, config_.dimension});
        stage_ = Stage::none;
    }

  private:
    enum class Stage : std::uint8_t { none, bottom, top, top_gradient };

    static Config validated(Config config) {
        config.validate();
        return config;
    }
    static std::optional<Mlp<Relu, Relu>> make_bottom(const Config& config, ParameterSet& parameters,
                                                      MemoryAccount& memory) {
        if (!config.has_dense()) return std::nullopt;
        return Mlp<Relu, Relu>{parameters, "bottom", widths(config.dense_features, config.bottom), memory.work(),
                               config.precision};
    }
    static std::vector<std::int64_t> widths(std::int64_t inputs, const std::vector<std::int64_t>& outputs) {
        std::vector<std::int64_t> all{inputs};
        all.insert(all.end(), outputs.begin(), outputs.end());
        return all;
    }
    /// Calls use(inputs, outputs) for the layers of both MLPs.
    template <class Use>
    static void for_layers(const Config& config, Use use) {
        const std::int64_t met = Interaction::outputs(config.dimension, config.features, config.has_dense());
        // Without dense features the first has no layers.
        for (const auto& all : {widths(config.dense_features, config.bottom), widths(met, config.top)})
            for (std::size_t i = 1; i < all.size(); ++i)
                use(all[i - 1], all[i]);
    }
    static void expect(const char* call, const char* what, std::int64_t given, std::int64_t wanted) {
        if (given != wanted)
            throw BadInput{
                concat({Interaction::model, ": ", call, " is given ", given, " ", what, ", and needs ", wanted})};
    }
    void follows(const char* call, Stage stage, const char* before) const {
        if (stage_ != stage) throw BadInput{concat({Interaction::model, ": ", call, " comes right after ", before})};
    }
    MatrixView<float> matrix(Buffer<float>& buffer, std::int64_t columns) const {
        return {buffer.resize(static_cast<std::size_t>(samples_ * columns)).data(), samples_, columns};
    }

    Config config_;
    ParameterSet parameters_;
    Interaction interaction_;
    std::optional<Mlp<Relu, Relu>> bottom_;  // none without dense features
    Mlp<Relu, Identity> top_;
    Stage stage_ = Stage::none;
    std::int64_t samples_ = 0;
    MatrixView<const float> bottom_output_;  // (samples, D), or the dense features where there are none
    MatrixView<const float> embeddings_;     // (samples, F * D)
    Buffer<float> meeting_;                  // (samples, outputs of the interaction)
    Buffer<float> meeting_gradient_;
    Buffer<float> dense_gradient_;      // (samples, D), or nothing
    Buffer<float> embedding_gradient_;  // (samples, F * D)
};

}  // namespace shardwise::inline SHARDWISE_ABI
