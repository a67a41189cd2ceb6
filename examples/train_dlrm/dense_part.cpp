// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dense_part.hpp"

#include <cmath>
#include <utility>

#include "shardwise/dense/dcn.hpp"
#include "shardwise/dense/dlrm.hpp"
#include "shardwise/dense/mean_pooling.hpp"
#include "shardwise/dense/sequence_model.hpp"
#include "shardwise/dense/target_attention.hpp"
#include "shardwise/dense/transformer_pooling.hpp"

namespace train_dlrm {

namespace {

/// Of clicks: pooled vectors meet dense features.
template <class Interaction>
class ClickPart final : public DensePart {
  public:
    ClickPart(const sw::DenseModelConfig<Interaction>& config, sw::MemoryAccount& memory) : model_{config, memory} {}

    void forward_bottom(const sw::ClickBatch& batch) override { model_.forward_bottom(batch.dense_view()); }
    std::span<const float> forward_top(const sw::LayerVectors& vectors) override {
        return model_.forward_top(vectors.pooled);
    }
    sw::LayerVectors backward(std::span<const float> gradient, float to_embeddings) override {
        const sw::MatrixView<const float> pooled = model_.backward_top(gradient, to_embeddings);
        model_.backward_bottom();
        return {.pooled = pooled};
    }
    sw::ParameterSet& parameters() override { return model_.parameters(); }
    [[nodiscard]] std::int64_t flops() const override { return model_.flops(); }

  private:
    sw::DenseModel<Interaction> model_;
};

/// Of sequences: histories, and their candidates.
template <class Pooling>
class SequencePart final : public DensePart {
  public:
    SequencePart(const sw::SequenceModelConfig<Pooling>& config, std::int64_t candidates, sw::MemoryAccount& memory)
        : model_{config, memory}, candidates_{candidates} {}

    void forward_bottom(const sw::ClickBatch&) override {}
    std::span<const float> forward_top(const sw::LayerVectors& vectors) override {
        return model_.forward({vectors.sequences[0], vectors.lengths[0]}, {vectors.sequences[1], vectors.lengths[1]});
    }
    sw::LayerVectors backward(std::span<const float> gradient, float to_embeddings) override {
        return {.sequences = model_.backward(gradient, to_embeddings)};
    }
    sw::ParameterSet& parameters() override { return model_.parameters(); }
    [[nodiscard]] std::int64_t flops() const override {
        return sw::SequenceModel<Pooling>::flops(model_.config(), model_.config().longest, candidates_);
    }

  private:
    sw::SequenceModel<Pooling> model_;
    std::int64_t candidates_;
};

template <class Interaction>
std::unique_ptr<DensePart> click_part(const Options& o, const sw::LayerBase& embedding, sw::MemoryAccount& memory,
                                      const typename Interaction::Config& interaction) {
    const int dim = interaction_dim(o);
    return std::make_unique<ClickPart<Interaction>>(
        sw::DenseModelConfig<Interaction>{.dense_features = batch_shape(o).dense,
                                          .dimension = dim,
                                          .features = embedding.width() / dim,
                                          .bottom = o.bottom,
                                          .top = o.top,
                                          .seed = o.seed,
                                          .precision = precision_of(o),
                                          .interaction = interaction},
        memory);
}

template <class Pooling>
std::unique_ptr<DensePart> sequence_part(const Options& o, sw::MemoryAccount& memory,
                                         const typename Pooling::Config& pooling) {
    return std::make_unique<SequencePart<Pooling>>(
        sw::SequenceModelConfig<Pooling>{.dimension = o.dim,
                                         .longest = o.sequences->history,
                                         .top = o.top,
                                         .scale = std::sqrt(static_cast<float>(o.dim)),
                                         .seed = o.seed,
                                         .precision = precision_of(o),
                                         .pooling = pooling},
        1 + o.sequences->negatives, memory);
}

}  // namespace

std::unique_ptr<DensePart> make_dense_part(const Options& o, const sw::LayerBase& embedding,
                                           sw::MemoryAccount& memory) {
    if (o.sequences) {
        const SequenceOptions& s = *o.sequences;
        if (s.pooling == sw::MeanPooling::name) return sequence_part<sw::MeanPooling>(o, memory, {});
        if (s.pooling == sw::TransformerPooling::name)
            return sequence_part<sw::TransformerPooling>(o, memory, {.heads = s.heads, .blocks = s.blocks});
        return sequence_part<sw::TargetAttention>(o, memory, {.heads = s.heads});
    }
    if (o.model == "dcn")
        return click_part<sw::CrossInteraction>(o, embedding, memory, {.layers = o.cross_layers, .rank = o.cross_rank});
    return click_part<sw::DotInteraction>(o, embedding, memory, {});
}

}  // namespace train_dlrm
