// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/sequence_model.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "dense/naive_sequences.hpp"
#include "shardwise/dense/loss.hpp"
#include "shardwise/dense/optimizer.hpp"
#include "shardwise/dense/target_attention.hpp"
#include "shardwise/dense/transformer_pooling.hpp"

namespace dense_test {
namespace {
namespace sw = shardwise;
using sw::DensePrecision;
using sw::JaggedRows;
using sw::SequenceModel;

template <class Pooling>
typename Pooling::Config pooling_config(std::int64_t heads, bool causal) {
    using Kind = sw::AttentionMask::Kind;
    if constexpr (std::is_same_v<Pooling, sw::TransformerPooling>)
        return {.heads = heads, .hidden = 3, .blocks = 2, .mask = {causal ? Kind::causal : Kind::none}};
    else if constexpr (std::is_same_v<Pooling, sw::TargetAttention>)
        return {.heads = heads};
    else
        return {};
}

std::vector<Rows> scaled(std::vector<Rows> samples, double scale) {
    for (Rows& rows : samples)
        for (auto& row : rows)
            for (double& x : row)
                x *= scale;
    return samples;
}

/// Logits and all gradients on random lists, empty ones among them.
template <class Pooling>
void check_model() {
    const auto samples = *rc::gen::inRange<std::size_t>(0, 3);
    const auto some = [&] {
        return *rc::gen::container<std::vector<std::int32_t>>(samples, rc::gen::inRange<std::int32_t>(0, 4));
    };
    const bool causal = *rc::gen::arbitrary<bool>();
    const auto precision = *rc::gen::element(DensePrecision::single, DensePrecision::blocks, DensePrecision::wide);
    Random random{*rc::gen::arbitrary<std::uint32_t>()};
    Lists history{some(), 4, random};
    Lists candidates{some(), 4, random};
    sw::MemoryAccount memory;
    SequenceModel<Pooling> model{{.dimension = 4,
                                  .longest = 4,
                                  .top = {3, 1},
                                  .scale = 1.5F,
                                  .precision = precision,
                                  .pooling = pooling_config<Pooling>(2, causal)},
                                 memory};
    draw_parameters(model.parameters(), random);
    std::vector<float> gradient(static_cast<std::size_t>(candidates.matrix.rows));
    random.fill(gradient);
    const auto logits = model.forward(history.view(), candidates.view());
    const auto of_rows = model.backward(gradient);
    if (precision != DensePrecision::single) model.parameters().round_gradients();

    NamedParameters p{model.parameters()};
    const auto naive = [&] {
        const auto h = scaled(history.samples(), 1.5);
        const auto c = scaled(candidates.samples(), 1.5);
        std::vector<double> all;
        for (std::size_t s = 0; s < samples; ++s) {
            const auto of_sample = naive_logits(Pooling::name, h[s], c[s], p, 2, 2, causal, 4, 2);
            all.insert(all.end(), of_sample.begin(), of_sample.end());
        }
        return all;
    };
    const auto loss = [&] {
        double sum = 0.0;
        const auto z = naive();
        for (std::size_t i = 0; i < z.size(); ++i)
            sum += z[i] * static_cast<double>(gradient[i]);
        return sum;
    };
    const auto flat = [](sw::MatrixView<const float> x) {
        return std::span{x.data(), static_cast<std::size_t>(x.rows() * x.columns())};
    };
    constexpr double tolerance =
        std::is_same_v<Pooling, sw::TransformerPooling> ? 5e-3 : 1e-4;  // see transformer_block
    RC_ASSERT(worst(logits, naive()) < 1e-4);
    RC_ASSERT(worst_gradient(model.parameters(), p, loss) < tolerance);
    RC_ASSERT(of_rows.size() == 2U);
    RC_ASSERT(worst(flat(of_rows[0]), slopes(history.exact, loss)) < tolerance);
    RC_ASSERT(worst(flat(of_rows[1]), slopes(candidates.exact, loss)) < tolerance);
}

RC_GTEST_PROP(sequence_model, mean_pooling_equals_the_definition_and_its_slopes, ()) {
    check_model<sw::MeanPooling>();
}
RC_GTEST_PROP(sequence_model, target_attention_equals_the_definition_and_its_slopes, ()) {
    check_model<sw::TargetAttention>();
}
RC_GTEST_PROP(sequence_model, transformer_pooling_equals_the_definition_and_its_slopes, ()) {
    check_model<sw::TransformerPooling>();
}

/// A warm step takes no memory, and the model learns: which of two groups the history is of.
template <class Pooling>
void expect_learning() {
    SCOPED_TRACE(Pooling::name);
    Random random{7};
    sw::MemoryAccount memory;
    SequenceModel<Pooling> model{
        {.dimension = 4, .longest = 6, .top = {8, 1}, .seed = 3, .pooling = pooling_config<Pooling>(2, false)}, memory};
    sw::DenseAdam adam{model.parameters().values().size(), memory.tables()};
    double first = 0.0;
    double last = 0.0;
    std::int64_t allocations = 0;
    for (int step = 0; step < 300; ++step) {
        std::vector<std::int32_t> lengths;
        for (int s = 0; s < 16; ++s)
            lengths.push_back(static_cast<std::int32_t>(step == 0 ? 6 : 1 + random.below(6)));
        Lists history{lengths, 4, random};
        Lists candidates{std::vector<std::int32_t>(16, 2), 4, random};
        std::vector<float> labels;
        std::int64_t row = 0;
        for (std::int64_t s = 0; s < 16; ++s) {
            const bool group = random.below(2) == 1;
            for (std::int32_t i = 0; i < lengths[static_cast<std::size_t>(s)]; ++i)
                history.matrix.view()(row++, 0) = group ? 1.0F : -1.0F;
            candidates.matrix.view()(2 * s, 0) = group ? 1.0F : -1.0F;
            candidates.matrix.view()(2 * s + 1, 0) = group ? -1.0F : 1.0F;
            labels.insert(labels.end(), {1.0F, 0.0F});
        }
        std::vector<float> gradient(labels.size());
        const auto logits = model.forward(history.view(), candidates.view());
        last = sw::binary_cross_entropy(logits, labels, std::ssize(labels), gradient) / 32;
        if (step == 0) first = last;
        static_cast<void>(model.backward(gradient));
        if (step == 0) allocations = memory.allocations();
        adam.step(model.parameters().values(), model.parameters().gradients(), 0.02);
    }
    EXPECT_EQ(memory.allocations(), allocations);
    EXPECT_LT(last, 0.2);
    EXPECT_LT(last, first / 2);
}

TEST(sequence_model, learns_and_takes_no_memory_once_warm) {
    expect_learning<sw::MeanPooling>();
    expect_learning<sw::TargetAttention>();
    expect_learning<sw::TransformerPooling>();
}

TEST(sequence_model, refuses_what_does_not_fit) {
    sw::MemoryAccount memory;
    using Model = SequenceModel<sw::TargetAttention>;
    EXPECT_THROW((Model{{.dimension = 0, .longest = 4, .top = {1}}, memory}), sw::BadInput);
    EXPECT_THROW((Model{{.dimension = 4, .longest = 0, .top = {1}}, memory}), sw::BadInput);
    EXPECT_THROW((Model{{.dimension = 4, .longest = 4, .top = {2}}, memory}), sw::BadInput);
    EXPECT_THROW((Model{{.dimension = 4, .longest = 4, .top = {}}, memory}), sw::BadInput);
    EXPECT_THROW((Model{{.dimension = 4, .longest = 4, .top = {1}, .pooling = {.heads = 3}}, memory}), sw::BadInput);
    EXPECT_THROW((Model{{.dimension = 4, .longest = 4, .top = {1}, .scale = 0}, memory}), sw::BadInput);
    EXPECT_THROW((SequenceModel<sw::TransformerPooling>{
                     {.dimension = 4, .longest = 4, .top = {1}, .pooling = {.blocks = 0}}, memory}),
                 sw::BadInput);
    Model model{{.dimension = 4, .longest = 3, .top = {1}}, memory};
    Random random{1};
    const auto says = [&](const JaggedRows& history, const JaggedRows& candidates) -> std::string {
        try {
            static_cast<void>(model.forward(history, candidates));
        } catch (const sw::BadInput& error) {
            return error.what();
        }
        return "";
    };
    const Lists two{{1, 2}, 4, random};
    const Lists three{{1, 1, 1}, 4, random};
    const Lists wide{{1, 2}, 5, random};
    const Lists four{{4, 0}, 4, random};
    const std::vector<std::int32_t> wrong{1, 1};
    const std::vector<std::int32_t> negative{4, -1};
    EXPECT_NE(says(wide.view(), two.view()).find("5 columns, and it is made for 4"), std::string::npos);
    EXPECT_NE(says(two.view(), three.view()).find("2 histories and 3 lists of candidates"), std::string::npos);
    EXPECT_NE(says(four.view(), two.view()).find("a history of 4 items"), std::string::npos);
    EXPECT_NE(says({two.matrix.view(), wrong}, two.view()).find("add up to 2, and there are 3 rows"),
              std::string::npos);
    EXPECT_NE(says({two.matrix.view(), negative}, two.view()).find("sample 1 has a length of -1"), std::string::npos);
    EXPECT_THROW(static_cast<void>(model.backward({})), sw::BadInput);
    EXPECT_EQ(says(two.view(), two.view()), "");
    EXPECT_THROW(static_cast<void>(model.backward(std::vector<float>(2))), sw::BadInput);
}

}  // namespace
}  // namespace dense_test
