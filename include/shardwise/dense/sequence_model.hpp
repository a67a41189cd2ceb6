// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
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
#include "shardwise/dense/jagged_rows.hpp"
#include "shardwise/dense/mean_pooling.hpp"
#include "shardwise/dense/mlp.hpp"
#include "shardwise/dense/parameter.hpp"

/// \file
/// The dense part of a model of sequences: a pooled history beside each candidate, and an MLP.

namespace shardwise::inline SHARDWISE_ABI {

/// Shapes of a SequenceModel.
template <class Pooling>
struct SequenceModelConfig {
    std::int64_t dimension = 0;                         ///< D, elements of an item's vector
    std::int64_t longest = 0;                           ///< items of the longest history
    std::vector<std::int64_t> top;                      ///< outputs of each layer of the MLP; the last is 1
    float scale = 1.0F;                                 ///< of all vectors; sqrt(D) where tables start small
    std::uint64_t seed = 0;                             ///< of the initial values
    DensePrecision precision = DensePrecision::single;  ///< of sums of products, and of gradients
    typename Pooling::Config pooling = {};

    /// Checks the shapes. \throws BadInput with a sentence that names the number and the remedy
    void validate() const {
        const auto at_least_one = [](const std::string& what, std::int64_t n) {
            if (n < 1) throw BadInput{concat({"sequence model: ", what, " is ", n, ": it is at least 1"})};
        };
        at_least_one("the dimension of an item", dimension);
        at_least_one("the length of the longest history", longest);
        for (const std::int64_t width : top)
            at_least_one("a width of the top MLP", width);
        if (!(scale > 0) || !std::isfinite(scale))
            throw BadInput{
                concat({"sequence model: a scale of ", static_cast<double>(scale), ": give a finite number above 0"})};
        if (top.empty() || top.back() != 1)
            throw BadInput{concat({"sequence model: the top MLP ends in ",
                                   (top.empty() ? std::string{"nothing"} : "width " + std::to_string(top.back())),
                                   ": its last width is 1, the logit"})};
    }
};

/// The dense part of a sequence DLRM, on one rank: for each candidate of a sample a logit from
/// [pooled history, candidate, their products element by element], through an MLP with ReLUs between its layers.
///
/// Vectors are multiplied by `scale` first: those of an embedding layer start within 1 / sqrt(rows), and learn sooner
/// times sqrt(D) (as Vaswani et al., 2017, section 3.4, have it).
///
/// A sample is a history, possibly empty, and one candidate or several, such as the item that came next and some that
/// did not; all are rows of one table, looked up as sequences (Pooling<None>). A step is
///
///     auto logits = model.forward({vectors.sequences[0], vectors.lengths[0]},
///                                 {vectors.sequences[1], vectors.lengths[1]});
///     loss += binary_cross_entropy(logits, labels, global_candidates, gradient);
///     layer.backward(..., {.sequences = model.backward(gradient)});
///     // then add model.parameters().gradients() over ranks (with wide precision: wide_gradients(), then round)
///     optimizer.step(model.parameters().values(), model.parameters().gradients(), learning_rate);
///
/// Parameters are named `history...` (see the pooling), `top.<layer>.weight` and `top.<layer>.bias`. Nothing here is
/// collective. A rank may have no samples: its gradients are then zero. Work buffers grow when a batch is larger than
/// all before it; nothing else allocates.
/// \tparam Pooling  TargetAttention, TransformerPooling, MeanPooling or a class with their members (mean_pooling.hpp)
template <class Pooling>
class SequenceModel {
  public:
    using Config = SequenceModelConfig<Pooling>;

    /// Reserves, allocates and initializes the parameters; a function of `config` alone, equal on all ranks.
    /// \param memory  outlives the model: parameters lie in its `tables()`, all else in its `work()`
    /// \throws BadInput when the shapes do not fit; see SequenceModelConfig::validate
    SequenceModel(Config config, MemoryAccount& memory)
        : config_{validated(std::move(config))},
          parameters_{memory.tables()},
          pooling_{parameters_, "history", shape(config_), config_.pooling, memory.work(), config_.precision},
          top_{parameters_, "top", widths(config_), memory.work(), config_.precision},
          meeting_{memory.work()},
          meeting_gradient_{memory.work()},
          pooled_{memory.work()},
          history_rows_{memory.work()},
          candidate_rows_{memory.work()},
          history_gradient_{memory.work()},
          candidate_gradient_{memory.work()} {
        parameters_.allocate(config_.precision);
        pooling_.initialize(config_.seed);
        top_.initialize(config_.seed);
    }

    [[nodiscard]] const Config& config() const noexcept { return config_; }
    /// Values and gradients of all weights and biases.
    [[nodiscard]] ParameterSet& parameters() noexcept { return parameters_; }
    [[nodiscard]] const ParameterSet& parameters() const noexcept { return parameters_; }
    /// Of forward and backward together, for a sample with a history of `items` and so many candidates, as a profiler
    /// counts: 6 a multiplication of a weight; biases, activations and norms not.
    [[nodiscard]] static std::int64_t flops(const Config& config, std::int64_t items, std::int64_t candidates) {
        const std::vector<std::int64_t> all = widths(config);
        std::int64_t products = 0;
        for (std::size_t i = 1; i < all.size(); ++i)
            products += 6 * all[i - 1] * all[i];
        return candidates * products + Pooling::flops(shape(config), config.pooling, items, candidates);
    }

    /// \param history     (items, D), at most `longest` a sample; its lengths stay as they are until backward
    /// \param candidates  (candidates, D), of as many samples; its lengths stay as they are until backward
    /// \returns the logits, (candidates), valid until the next forward
    /// \throws BadInput when the shapes do not fit: columns, lengths, a history that is too long
    std::span<const float> forward(const JaggedRows& history, const JaggedRows& candidates) {
        check(history, "sequence model: history");
        check(candidates, "sequence model: candidates");
        if (history.samples() != candidates.samples())
            throw BadInput{concat({"sequence model: ", history.samples(), " histories and ", candidates.samples(),
                                   " lists of candidates: give one of each a sample"})};
        if (history.longest() > config_.longest)
            throw BadInput{concat({"sequence model: a history of ", history.longest(),
                                   " items: it is made for at most ", config_.longest, ", the most recent ones"})};
        history_ = {scaled(history.rows, history_rows_), history.lengths};
        candidates_ = {scaled(candidates.rows, candidate_rows_), candidates.lengths};
        forwarded_ = true;
        const std::int64_t rows = candidates.rows.rows();
        const std::int64_t d = config_.dimension;
        const MatrixView<float> meeting = matrix(meeting_, rows, 3 * d);
        if constexpr (Pooling::per_candidate) {
            pooling_.forward(history_, candidates_, meeting.columns_from(0, d));
        } else {
            const MatrixView<float> pooled = matrix(pooled_, history.samples(), d);
            pooling_.forward(history_, candidates_, pooled);
            repeat_by_lists(pooled, candidates_, meeting.columns_from(0, d));
        }
        for (std::int64_t i = 0; i < rows; ++i) {
            const float* candidate = candidates_.rows.row(i);
            float* __restrict to = meeting.row(i);
            for (std::int64_t j = 0; j < d; ++j) {
                to[d + j] = candidate[j];
                to[2 * d + j] = to[j] * candidate[j];
            }
        }
        return {top_.forward(meeting).data(), static_cast<std::size_t>(rows)};
    }

    /// Overwrites the gradients of all parameters.
    /// \param gradient  with respect to the logits, (candidates)
    /// \param to_embeddings  what the results are multiplied with: SampleCounts::to_group() under replica groups
    /// \returns the gradients with respect to history, (items, D), and candidates, (candidates, D), valid until the
    ///          next backward
    /// \throws BadInput when the size does not fit, or forward did not come first
    std::span<const MatrixView<const float>> backward(std::span<const float> gradient, float to_embeddings = 1) {
        if (!std::exchange(forwarded_, false)) throw BadInput{"sequence model: backward comes right after forward"};
        const std::int64_t rows = candidates_.rows.rows();
        const std::int64_t d = config_.dimension;
        if (static_cast<std::int64_t>(gradient.size()) != rows)
            throw BadInput{concat({"sequence model: backward is given ", gradient.size(),
                                   " gradients of logits, and needs ", rows, ", one a candidate"})};
        const MatrixView<float> meeting = matrix(meeting_, rows, 3 * d);
        const MatrixView<float> through = matrix(meeting_gradient_, rows, 3 * d);
        const MatrixView<float> of_history = matrix(history_gradient_, history_.rows.rows(), d);
        const MatrixView<float> of_candidates = matrix(candidate_gradient_, rows, d);
        top_.backward({gradient.data(), rows, 1}, through);
        for (std::int64_t i = 0; i < rows; ++i) {
            const float* both = meeting.row(i);
            float* __restrict g = through.row(i);
            float* __restrict to = of_candidates.row(i);
            for (std::int64_t j = 0; j < d; ++j) {
                to[j] = std::fma(g[2 * d + j], both[j], g[d + j]);
                g[j] = std::fma(g[2 * d + j], both[d + j], g[j]);
            }
        }
        const MatrixView<float> of_pooled = through.columns_from(0, d);
        if constexpr (Pooling::per_candidate) {
            pooling_.backward(history_, candidates_, of_pooled, of_history, of_candidates);
        } else {
            const MatrixView<float> of_samples = matrix(pooled_, history_.samples(), d);
            repeat_by_lists_backward(of_pooled, candidates_, of_samples);
            pooling_.backward(history_, candidates_, of_samples, of_history, of_candidates);
        }
        for (const MatrixView<float>& each : {of_history, of_candidates}) {
            scale(each, config_.scale);
            if (to_embeddings != 1) scale(each, to_embeddings);
        }
        gradients_[0] = of_history;
        gradients_[1] = of_candidates;
        return gradients_;
    }

  private:
    static Config validated(Config config) {
        config.validate();
        return config;
    }
    static HistoryShape shape(const Config& config) {
        return {.dimension = config.dimension, .longest = config.longest};
    }
    static std::vector<std::int64_t> widths(const Config& config) {
        std::vector<std::int64_t> all{3 * config.dimension};
        all.insert(all.end(), config.top.begin(), config.top.end());
        return all;
    }
    void check(const JaggedRows& x, const char* what) const {
        if (x.rows.columns() != config_.dimension)
            throw BadInput{
                concat({what, " of ", x.rows.columns(), " columns, and it is made for ", config_.dimension})};
        x.validate(what);
    }
    static void scale(MatrixView<float> x, float by) {
        for (std::int64_t i = 0; i < x.rows() * x.columns(); ++i)
            x.data()[i] *= by;
    }
    [[nodiscard]] MatrixView<const float> scaled(MatrixView<const float> x, Buffer<float>& buffer) const {
        const MatrixView<float> copy = matrix(buffer, x.rows(), x.columns());
        for (std::int64_t i = 0; i < x.rows(); ++i)
            for (std::int64_t j = 0; j < x.columns(); ++j)
                copy(i, j) = config_.scale * x(i, j);
        return copy;
    }
    static MatrixView<float> matrix(Buffer<float>& buffer, std::int64_t rows, std::int64_t columns) {
        return {buffer.resize(static_cast<std::size_t>(rows * columns)).data(), rows, columns};
    }

    Config config_;
    ParameterSet parameters_;
    Pooling pooling_;
    Mlp<Relu, Identity> top_;
    bool forwarded_ = false;
    JaggedRows history_;
    JaggedRows candidates_;
    Buffer<float> meeting_;           // (candidates, pooled history, candidate and their products)
    Buffer<float> meeting_gradient_;  // the same
    Buffer<float> pooled_;            // (samples, D), where the pooling knows no candidates; then its gradient
    Buffer<float> history_rows_;      // (items, D), scaled
    Buffer<float> candidate_rows_;    // (candidates, D), scaled
    Buffer<float> history_gradient_;
    Buffer<float> candidate_gradient_;
    std::array<MatrixView<const float>, 2> gradients_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
