// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/gemm.hpp"
#include "shardwise/dense/jagged_rows.hpp"
#include "shardwise/dense/linear.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/dense/softmax.hpp"

/// \file
/// Multi-head attention over lists of different lengths (Vaswani et al., "Attention Is All You Need", 2017, section
/// 3.2).

namespace shardwise::inline SHARDWISE_ABI {

/// The shape of a MultiHeadAttention.
struct AttentionConfig {
    std::int64_t width = 0;  ///< elements of questions, items and answers
    std::int64_t heads = 1;  ///< divides the width

    /// Checks the numbers.
    /// \throws BadInput with the numbers, where the heads do not divide the width
    void validate(const std::string& name) const {
        if (width < 1 || heads < 1 || width % heads != 0)
            throw BadInput{concat({"attention '", name, "' of width ", width, " and ", heads,
                                   " heads: both are at least 1, and the heads divide the width"})};
    }
};

/// Each sample's questions attend to its items: with q = x Wq + bq of a question, k = h Wk + bk and v = h Wv + bv of
/// the items, a head answers softmax(q k^T / sqrt(width / heads)) v, and the heads' answers side by side go through Wo.
/// As torch.nn.MultiheadAttention without dropout.
///
/// No padding: a sample costs what its own lists cost, and what goes on between its rows is a function of these alone,
/// however a batch is split over ranks. A sample without items answers Wo 0 + bo, and its questions and items get no
/// gradient from it. Questions and items may be the same rows (self-attention): their gradients are then to be added.
///
/// Not collective. With w the width, the flops are 2 w^2 a projected row (two projections a question, two an item) and
/// 4 w a pair of question and item; twice as many backward.
class MultiHeadAttention {
  public:
    /// What a batch leaves from forward to backward, in buffers that grow when it is larger than all before it.
    struct Work {
        Work() = default;
        explicit Work(std::pmr::memory_resource& memory) { on(memory); }
        /// Takes memory from `memory` from now on, where it has none yet.
        Work& on(std::pmr::memory_resource& memory) noexcept {
            for (Buffer<float>* buffer : {&questions, &items, &attention, &gradients, &scores})
                buffer->on(memory);
            products.on(memory);
            return *this;
        }

        Buffer<float> questions;  ///< (q and the heads' answers, questions, width)
        Buffer<float> items;      ///< (k and v, items, width)
        Buffer<float> attention;  ///< sample by sample: (heads, its questions, its items)
        Buffer<float> gradients;  ///< of all that, and (items, width)
        Buffer<float> scores;     ///< of one head of a sample
        BatchProducts products;
    };

    /// Reserves `<name>.query.weight` (width, width) and `.bias` (1, width), and the same for `key`, `value` and `out`,
    /// in `set`, which outlives this. \param precision  of the projections; but with single,
    /// backward overwrites the set's wide gradients \throws BadInput when the heads do not divide the width, or a name
    /// is taken
    MultiHeadAttention(ParameterSet& set, const std::string& name, const AttentionConfig& config,
                       DensePrecision precision = DensePrecision::single)
        : config_{checked(name, config)},
          precision_{precision},
          query_{set, name + ".query", config.width, config.width},
          key_{set, name + ".key", config.width, config.width},
          value_{set, name + ".value", config.width, config.width},
          out_{set, name + ".out", config.width, config.width} {}

    [[nodiscard]] const AttentionConfig& config() const noexcept { return config_; }

    /// Initial values: weights uniform with variance 1 / width, biases zero. A function of seed and parameter indices.
    void initialize(std::uint64_t seed) const {
        for (const Linear* layer : {&query_, &key_, &value_, &out_})
            layer->initialize_weight(seed);
    }

    /// \param x    questions, lists of `width` columns; has to stay as it is until backward
    /// \param h    items, as many lists; likewise
    /// \param y    (questions, width), overlaps neither
    void forward(const JaggedRows& x, const JaggedRows& h, AttentionMask mask, MatrixView<float> y, Work& work) const {
        SHARDWISE_ASSERT(x.samples() == h.samples() && x.rows.columns() == config_.width);
        SHARDWISE_ASSERT(h.rows.columns() == config_.width && y.rows() == x.rows.rows());
        const MatrixView<float> q = matrix(work.questions, 0, x.rows.rows());
        const MatrixView<float> answers = matrix(work.questions, 1, x.rows.rows());
        const MatrixView<float> k = matrix(work.items, 0, h.rows.rows());
        const MatrixView<float> v = matrix(work.items, 1, h.rows.rows());
        query_.forward(x.rows, q, products(work));
        key_.forward(h.rows, k, products(work));
        value_.forward(h.rows, v, products(work));
        std::int64_t pairs = 0;
        for_each_sample(x, h, [&](const Sample& s) { pairs += s.questions * s.items; });
        work.attention.resize(static_cast<std::size_t>(pairs * config_.heads));
        for_each_head(x, h, work, [&](const Head& head) {
            gemm_nt(head.of_questions(q), head.of_items(k), head.attention);
            softmax(head.attention, scale(), mask);
            gemm_nn(head.attention, head.of_items(v), head.of_questions(answers));
        });
        out_.forward(answers, y, products(work));
    }

    /// Overwrites the gradients of all four layers.
    /// \param work, x, h  as in the last forward \param gradient  (questions, width), with respect to its y
    /// \param dx          (questions, width), with respect to x \param dh  (items, width), with respect to h
    void backward(Work& work, const JaggedRows& x, const JaggedRows& h, MatrixView<const float> gradient,
                  MatrixView<float> dx, MatrixView<float> dh) const {
        const std::int64_t questions = x.rows.rows();
        const std::int64_t items = h.rows.rows();
        const MatrixView<float> q = matrix(work.questions, 0, questions);
        const MatrixView<float> answers = matrix(work.questions, 1, questions);
        const MatrixView<float> k = matrix(work.items, 0, items);
        const MatrixView<float> v = matrix(work.items, 1, items);
        float* place =
            work.gradients.resize(static_cast<std::size_t>((2 * questions + 3 * items) * config_.width)).data();
        const auto next = [&](std::int64_t rows) {
            const MatrixView<float> matrix{place, rows, config_.width};
            place += rows * config_.width;
            return matrix;
        };
        const MatrixView<float> dq = next(questions);
        const MatrixView<float> d_answers = next(questions);
        const MatrixView<float> dk = next(items);
        const MatrixView<float> dv = next(items);
        const MatrixView<float> through_values = next(items);

        out_.backward(answers, gradient, products(work));
        out_.backward_input(gradient, d_answers, products(work));
        for_each_head(x, h, work, [&](const Head& head) {
            const MatrixView<float> scores{
                work.scores.resize(static_cast<std::size_t>(head.sample.questions * head.sample.items)).data(),
                head.sample.questions, head.sample.items};
            gemm_nt(head.of_questions(d_answers), head.of_items(v), scores);
            gemm_tn(head.attention, head.of_questions(d_answers), head.of_items(dv));
            softmax_backward(head.attention, scale(), scores);
            gemm_nn(scores, head.of_items(k), head.of_questions(dq));
            gemm_tn(scores, head.of_questions(q), head.of_items(dk));
        });
        query_.backward(x.rows, dq, products(work));
        query_.backward_input(dq, dx, products(work));
        key_.backward(h.rows, dk, products(work));
        key_.backward_input(dk, dh, products(work));
        value_.backward(h.rows, dv, products(work));
        value_.backward_input(dv, through_values, products(work));
        for (std::int64_t i = 0; i < items; ++i) {
            const float* from = through_values.row(i);
            float* __restrict to = dh.row(i);
            for (std::int64_t j = 0; j < config_.width; ++j)
                to[j] += from[j];
        }
    }

  private:
    struct Sample {
        std::int64_t first_question = 0;
        std::int64_t questions = 0;
        std::int64_t first_item = 0;
        std::int64_t items = 0;
    };
    struct Head {
        Sample sample;
        std::int64_t first_column = 0;
        std::int64_t columns = 0;
        MatrixView<float> attention;  // (questions, items)

        [[nodiscard]] MatrixView<float> of_questions(MatrixView<float> x) const {
            return x.rows_from(sample.first_question, sample.questions).columns_from(first_column, columns);
        }
        [[nodiscard]] MatrixView<float> of_items(MatrixView<float> h) const {
            return h.rows_from(sample.first_item, sample.items).columns_from(first_column, columns);
        }
    };

    static const AttentionConfig& checked(const std::string& name, const AttentionConfig& config) {
        config.validate(name);
        return config;
    }
    [[nodiscard]] BatchProducts* products(Work& work) const noexcept { return work.products.in(precision_); }
    [[nodiscard]] double scale() const {
        return 1.0 / std::sqrt(static_cast<double>(config_.width) / static_cast<double>(config_.heads));
    }
    // One of the two matrices that lie in `buffer`.
    [[nodiscard]] MatrixView<float> matrix(Buffer<float>& buffer, std::int64_t which, std::int64_t rows) const {
        const std::int64_t each = rows * config_.width;
        return {buffer.resize(static_cast<std::size_t>(2 * each)).data() + which * each, rows, config_.width};
    }
    template <class Use>
    static void for_each_sample(const JaggedRows& x, const JaggedRows& h, Use use) {
        Sample s;
        for (std::int64_t sample = 0; sample < x.samples(); ++sample) {
            s.questions = x.length(sample);
            s.items = h.length(sample);
            use(s);
            s.first_question += s.questions;
            s.first_item += s.items;
        }
    }
    template <class Use>
    void for_each_head(const JaggedRows& x, const JaggedRows& h, Work& work, Use use) const {
        float* attention = work.attention.data();
        const std::int64_t columns = config_.width / config_.heads;
        for_each_sample(x, h, [&](const Sample& s) {
            for (std::int64_t head = 0; head < config_.heads; ++head) {
                use(Head{.sample = s,
                         .first_column = head * columns,
                         .columns = columns,
                         .attention = {attention, s.questions, s.items}});
                attention += s.questions * s.items;
            }
        });
    }

    AttentionConfig config_;
    DensePrecision precision_;
    Linear query_;
    Linear key_;
    Linear value_;
    Linear out_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
