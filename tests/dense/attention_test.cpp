// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "dense/naive_sequences.hpp"
#include "shardwise/dense/multi_head_attention.hpp"
#include "shardwise/dense/transformer_block.hpp"

/// \file
/// Attention and Transformer blocks over random lists, empty ones among them, against the definition and its slopes.

namespace dense_test {
namespace {
using shardwise::AttentionMask;
using shardwise::DensePrecision;
using shardwise::JaggedRows;

std::vector<std::int32_t> some_lengths(std::size_t samples) {
    return *rc::gen::container<std::vector<std::int32_t>>(samples, rc::gen::inRange<std::int32_t>(0, 5));
}

/// What a sample's rows become, all below each other.
template <class OfSample>
std::vector<double> flat(std::size_t samples, OfSample of_sample) {
    std::vector<double> all;
    for (std::size_t s = 0; s < samples; ++s)
        for (const auto& row : of_sample(s))
            all.insert(all.end(), row.begin(), row.end());
    return all;
}
double dot(const std::vector<double>& y, const Matrix& gradient) {
    double sum = 0.0;
    for (std::size_t i = 0; i < y.size(); ++i)
        sum += y[i] * static_cast<double>(gradient.elements[i]);
    return sum;
}

RC_GTEST_PROP(attention, equals_the_definition_and_its_slopes, ()) {
    const auto samples = *rc::gen::inRange<std::size_t>(0, 5);
    const auto heads = *rc::gen::inRange<std::int64_t>(1, 4);
    const std::int64_t width = heads * *rc::gen::inRange<std::int64_t>(1, 4);
    const bool causal = *rc::gen::arbitrary<bool>();
    const AttentionMask mask{causal ? AttentionMask::Kind::causal : AttentionMask::Kind::none};
    const auto precision = *rc::gen::element(DensePrecision::single, DensePrecision::blocks, DensePrecision::wide);
    Random random{*rc::gen::arbitrary<std::uint32_t>()};
    Lists x{some_lengths(samples), width, random};
    Lists h{some_lengths(samples), width, random};
    shardwise::MemoryAccount memory;
    shardwise::ParameterSet set{memory.tables()};
    const shardwise::MultiHeadAttention attention{set, "a", {.width = width, .heads = heads}, precision};
    set.allocate(precision);
    draw_parameters(set, random);
    shardwise::MultiHeadAttention::Work work{memory.work()};
    const Matrix dy{x.matrix.rows, width, random};
    Matrix y{x.matrix.rows, width, random};
    Matrix dx{x.matrix.rows, width, random};
    Matrix dh{h.matrix.rows, width, random};
    attention.forward(x.view(), h.view(), mask, y.view(), work);
    attention.backward(work, x.view(), h.view(), dy.view(), dx.view(), dh.view());
    if (precision != DensePrecision::single) set.round_gradients();

    NamedParameters p{set};
    const auto naive = [&] {
        const auto questions = x.samples();
        const auto items = h.samples();
        return flat(samples,
                    [&](std::size_t s) { return naive_attention(questions[s], items[s], p, "a", heads, causal); });
    };
    const auto loss = [&] { return dot(naive(), dy); };
    RC_ASSERT(worst(y.elements.span(), naive()) < 1e-5);
    RC_ASSERT(worst_gradient(set, p, loss) < 1e-4);
    RC_ASSERT(worst(dx.elements.span(), slopes(x.exact, loss)) < 1e-4);
    RC_ASSERT(worst(dh.elements.span(), slopes(h.exact, loss)) < 1e-4);
    const auto allocations = memory.allocations();
    attention.forward(x.view(), h.view(), mask, y.view(), work);
    attention.backward(work, x.view(), h.view(), dy.view(), dx.view(), dh.view());
    RC_ASSERT(memory.allocations() == allocations);
}

RC_GTEST_PROP(transformer_block, equals_the_definition_and_its_slopes, ()) {
    const auto samples = *rc::gen::inRange<std::size_t>(0, 4);
    const auto heads = *rc::gen::inRange<std::int64_t>(1, 3);
    const std::int64_t width = heads * *rc::gen::inRange<std::int64_t>(2, 4);
    const auto hidden = *rc::gen::inRange<std::int64_t>(1, 6);
    const bool causal = *rc::gen::arbitrary<bool>();
    const AttentionMask mask{causal ? AttentionMask::Kind::causal : AttentionMask::Kind::none};
    const auto precision = *rc::gen::element(DensePrecision::single, DensePrecision::blocks, DensePrecision::wide);
    Random random{*rc::gen::arbitrary<std::uint32_t>()};
    Lists x{some_lengths(samples), width, random};
    shardwise::MemoryAccount memory;
    shardwise::ParameterSet set{memory.tables()};
    const shardwise::TransformerBlock block{
        set, "b", {.attention = {.width = width, .heads = heads}, .hidden = hidden}, precision};
    set.allocate(precision);
    draw_parameters(set, random);
    shardwise::TransformerBlock::Work work{memory.work()};
    const Matrix dy{x.matrix.rows, width, random};
    Matrix y{x.matrix.rows, width, random};
    Matrix dx{x.matrix.rows, width, random};
    block.forward(x.view(), mask, y.view(), work);
    block.backward(work, x.view(), dy.view(), dx.view());
    if (precision != DensePrecision::single) set.round_gradients();

    NamedParameters p{set};
    const auto naive = [&] {
        const auto lists = x.samples();
        return flat(samples, [&](std::size_t s) { return naive_block(lists[s], p, "b", heads, causal); });
    };
    const auto loss = [&] { return dot(naive(), dy); };
    RC_ASSERT(worst(y.elements.span(), naive()) < 1e-4);
    RC_ASSERT(worst_gradient(set, p, loss) < 2e-3);  // steep where a row is nearly flat
    RC_ASSERT(worst(dx.elements.span(), slopes(x.exact, loss)) < 2e-3);
}

TEST(attention, a_sample_answers_alike_in_any_batch) {
    Random random{3};
    shardwise::MemoryAccount memory;
    shardwise::ParameterSet set{memory.tables()};
    const shardwise::MultiHeadAttention attention{set, "a", {.width = 8, .heads = 2}, DensePrecision::wide};
    set.allocate(DensePrecision::wide);
    attention.initialize(1);
    const Lists x{{2, 1, 3}, 8, random};
    const Lists h{{4, 0, 7}, 8, random};
    shardwise::MultiHeadAttention::Work work{memory.work()};
    Matrix together{6, 8};
    attention.forward(x.view(), h.view(), {}, together.view(), work);
    Matrix alone{3, 8};
    attention.forward({x.matrix.view().rows_from(3, 3), std::span{x.lengths}.subspan(2)},
                      {h.matrix.view().rows_from(4, 7), std::span{h.lengths}.subspan(2)}, {}, alone.view(), work);
    for (std::int64_t i = 0; i < 3; ++i)
        for (std::int64_t j = 0; j < 8; ++j)
            EXPECT_EQ(together.view()(3 + i, j), alone.view()(i, j));
    for (std::int64_t j = 0; j < 8; ++j)
        EXPECT_EQ(together.view()(2, j), 0.0F);  // no item: the bias, which starts at zero
}

TEST(attention, lengths_may_be_left_out_where_each_list_has_one_row) {
    Random random{3};
    shardwise::MemoryAccount memory;
    shardwise::ParameterSet set{memory.tables()};
    const shardwise::MultiHeadAttention attention{set, "a", {.width = 4}};
    set.allocate();
    attention.initialize(1);
    const Lists x{{1, 1, 1}, 4, random};
    const Lists h{{2, 0, 3}, 4, random};
    shardwise::MultiHeadAttention::Work work{memory.work()};
    Matrix with{3, 4};
    Matrix without{3, 4};
    attention.forward(x.view(), h.view(), {}, with.view(), work);
    attention.forward({x.matrix.view()}, h.view(), {}, without.view(), work);
    expect_all_close(with.elements.span(), without.elements.span(), 0.0);
}

TEST(attention, refuses_heads_that_do_not_divide) {
    shardwise::MemoryAccount memory;
    shardwise::ParameterSet set{memory.tables()};
    for (const shardwise::AttentionConfig& config :
         {shardwise::AttentionConfig{.width = 0}, shardwise::AttentionConfig{.width = 4, .heads = 0},
          shardwise::AttentionConfig{.width = 4, .heads = 3}})
        EXPECT_THROW((shardwise::MultiHeadAttention{set, "a", config}), shardwise::BadInput);
}

}  // namespace
}  // namespace dense_test
