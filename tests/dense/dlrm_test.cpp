// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/dlrm.hpp"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dense/naive.hpp"
#include "dense/support.hpp"
#include "shardwise/dense/loss.hpp"
#include "shardwise/dense/optimizer.hpp"

namespace dense_test {
namespace {
using shardwise::BadInput;
using shardwise::DlrmConfig;
using shardwise::DlrmDense;

DlrmConfig small_config(std::int64_t dimension = 4) {
    return {.dense_features = 5,
            .dimension = dimension,
            .features = 3,
            .bottom = {8, dimension},
            .top = {9, 6, 1},
            .seed = 17};
}

/// Logits of the definition.
std::vector<double> naive_dlrm_logits(const DlrmConfig& config, std::span<const NaiveParameter> parameters,
                                      std::span<const double> dense, std::span<const double> embeddings,
                                      std::int64_t samples) {
    const auto bottom = parameters.first(2 * config.bottom.size());
    const auto top = parameters.subspan(2 * config.bottom.size());
    const Rows x = naive_mlp(as_rows(dense, samples, config.dense_features), bottom, naive_relu, naive_relu);
    const Rows f = as_rows(embeddings, samples, config.features * config.dimension);
    const Rows y = naive_mlp(naive_interaction(x, f, config.dimension), top, naive_relu, naive_identity);
    std::vector<double> logits;
    for (const auto& row : y)
        logits.push_back(row[0]);
    return logits;
}

void check_model(const DlrmConfig& config, std::int64_t samples) {
    SCOPED_TRACE(testing::Message() << "D " << config.dimension << ", samples " << samples);
    shardwise::MemoryAccount memory;
    DlrmDense model{config, memory};
    Random random{21};
    random.fill(model.parameters().gradients());  // what stood there before does not matter
    expect_model(model, samples, 1e-5, random, naive_dlrm_logits);
}

TEST(dlrm, equals_the_definition_and_its_slopes) {
    for (const std::int64_t dimension : {1, 3, 16, 64})
        for (const std::int64_t samples : {0, 1, 5})
            check_model(small_config(dimension), samples);
    check_model({.dense_features = 1, .dimension = 2, .features = 1, .bottom = {2}, .top = {1}}, 4);
}

TEST(dlrm, without_dense_features_embeddings_meet_each_other) {
    for (const std::int64_t features : {2, 3, 12})  // few vectors meet in a loop, many in a product
        for (const std::int64_t samples : {0, 1, 5})
            check_model({.dimension = 4, .features = features, .top = {9, 1}, .seed = 17}, samples);
    shardwise::MemoryAccount memory;
    const DlrmDense model{{.dimension = 2, .features = 3, .top = {1}}, memory};
    EXPECT_EQ(model.parameters().find("bottom.0.weight"), nullptr);
    EXPECT_EQ(model.parameters().find("top.0.weight")->columns, 3);
    EXPECT_EQ(model.flops(), 6 * 3 * 3 * 2 + 6 * 3 * 1);
    EXPECT_EQ(DlrmDense::parameter_count(model.config()), 3 + 1);
}

TEST(dlrm, without_samples_has_no_gradient) {
    shardwise::MemoryAccount memory;
    DlrmDense model{small_config(), memory};
    Random random{1};
    random.fill(model.parameters().gradients());
    model.forward_bottom({nullptr, 0, 5});
    EXPECT_TRUE(model.forward_top({nullptr, 0, 12}).empty());
    EXPECT_EQ(model.backward_top({}).rows(), 0);
    model.backward_bottom();
    for (const auto& parameter : model.parameters())
        for (const float gradient : parameter.gradients())
            EXPECT_EQ(gradient, 0.0F);
}

template <class Optimizer>
void check_warm_steps() {
    shardwise::MemoryAccount memory;
    DlrmDense model{small_config(), memory};
    auto& parameters = model.parameters();
    Optimizer optimizer{parameters.values().size(), memory.tables()};
    Random random{2};
    const Matrix dense{32, 5, random};
    const Matrix embeddings{32, 12, random};
    std::vector<float> labels(32);
    for (float& label : labels)
        label = static_cast<float>(random.below(2));
    std::vector<float> gradient(32);
    double first = 0.0;
    double last = 0.0;
    std::int64_t warm = 0;
    for (int step = 0; step < 200; ++step) {
        const std::int64_t samples = step == 100 ? 0 : step % 7 == 1 ? 13 : 32;
        const auto n = static_cast<std::size_t>(samples);
        model.forward_bottom(dense.view().rows_from(0, samples));
        const auto logits = model.forward_top(embeddings.view().rows_from(0, samples));
        const auto dz = std::span{gradient}.first(n);
        last = shardwise::binary_cross_entropy(logits, std::span{labels}.first(n), samples, dz);
        model.backward_top(dz);
        model.backward_bottom();
        optimizer.step(parameters.values(), parameters.gradients(), 0.02);
        if (step == 0) first = last;
        if (step == 0) warm = memory.allocations();
    }
    EXPECT_LT(last, 0.8 * first);
    EXPECT_EQ(memory.allocations(), warm);
    const float* end = parameters.values().data();
    for (const auto& parameter : parameters) {  // nothing between two parameters
        for (; end != parameter.value.data(); ++end)
            EXPECT_EQ(*end, 0.0F);
        end += parameter.size();
    }
}

TEST(dlrm, learns_without_allocating) {
    check_warm_steps<shardwise::DenseSgd>();
    check_warm_steps<shardwise::DenseAdagrad>();
    check_warm_steps<shardwise::DenseAdam>();
}

TEST(dlrm, starts_equal_on_all_ranks) {
    shardwise::MemoryAccount memory;
    const DlrmDense one{small_config(), memory};
    const DlrmDense other{small_config(), memory};
    auto config = small_config();
    config.seed = 18;
    const DlrmDense third{config, memory};
    const auto bits = [](const DlrmDense& model) {
        const auto values = model.parameters().values();
        return std::vector<float>(values.begin(), values.end());
    };
    EXPECT_EQ(bits(one), bits(other));
    EXPECT_NE(bits(one), bits(third));
    EXPECT_EQ(one.parameters().find("bottom.1.weight")->rows, 4);
    EXPECT_EQ(one.parameters().find("top.0.weight")->columns, 4 + 6);
}

/// The values after five steps on random numbers, with the work buffers somewhere else for another `shift`.
std::vector<float> trained(std::size_t shift) {
    shardwise::MemoryAccount memory;
    const Buffer<float> in_the_way{memory.work(), 1000 * shift};
    DlrmDense model{small_config(16), memory};
    auto& parameters = model.parameters();
    shardwise::DenseAdagrad optimizer{parameters.values().size(), memory.tables()};
    Random random{30};
    std::vector<float> gradient(50);
    for (int step = 0; step < 5; ++step) {
        const Matrix dense{50, 5, random};
        const Matrix embeddings{50, 48, random};
        random.fill(gradient);
        model.forward_bottom(dense.view());
        model.forward_top(embeddings.view());
        model.backward_top(gradient);
        model.backward_bottom();
        optimizer.step(parameters.values(), parameters.gradients(), 0.02);
    }
    return {parameters.values().begin(), parameters.values().end()};
}

TEST(dlrm, learns_the_same_bits_on_every_thread) {
    const auto expected = trained(0);
    std::vector<std::vector<float>> results(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < results.size(); ++i)
        threads.emplace_back([&results, i] { results[i] = trained(i); });
    for (auto& thread : threads)
        thread.join();
    for (const auto& result : results)
        EXPECT_EQ(result, expected);
}

TEST(dlrm, still_works_when_moved) {
    shardwise::MemoryAccount memory;
    DlrmDense model{small_config(), memory};
    Random random{3};
    const Matrix dense{6, 5, random};
    const Matrix embeddings{6, 12, random};
    model.forward_bottom(dense.view());
    const auto logits = model.forward_top(embeddings.view());
    const std::vector<float> before(logits.begin(), logits.end());
    DlrmDense moved{std::move(model)};
    moved.forward_bottom(dense.view());
    const auto again = moved.forward_top(embeddings.view());
    EXPECT_EQ(before, (std::vector<float>(again.begin(), again.end())));
}

/// The sentence that the call throws.
template <class Function>
std::string sentence(Function function) {
    try {
        function();
    } catch (const BadInput& error) {
        return error.what();
    }
    return "nothing was thrown";
}

TEST(dlrm, says_what_is_wrong_with_shapes) {
    shardwise::MemoryAccount memory;
    const auto with = [&](auto change) {
        auto config = small_config();
        change(config);
        return sentence([&] { const DlrmDense model{config, memory}; });
    };
    EXPECT_EQ(
        with([](auto& c) {
            c.bottom = {8, 5};
        }),
        "DLRM: the bottom MLP ends in width 5, and embeddings have dimension 4: its last width is the dimension of "
        "the embeddings");
    EXPECT_EQ(with([](auto& c) {
                  c.top = {8, 2};
              }),
              "DLRM: the top MLP ends in width 2: its last width is 1, the logit");
    EXPECT_EQ(with([](auto& c) { c.top = {}; }), "DLRM: the top MLP ends in nothing: its last width is 1, the logit");
    EXPECT_EQ(with([](auto& c) { c.features = 0; }), "DLRM: the number of embeddings a sample is 0: it is at least 1");
    EXPECT_EQ(with([](auto& c) { c.dense_features = 0; }),
              "DLRM: there are no dense features, and the bottom MLP ends in width 4: without dense features it has no "
              "layers");
    EXPECT_EQ(with([](auto& c) { c.dense_features = -1; }),
              "DLRM: the number of dense features is -1: it is at least 0");
    EXPECT_EQ(with([](auto& c) {
                  c.dense_features = 0;
                  c.bottom = {};
                  c.features = 1;
              }),
              "DLRM: 1 embedding and no dense features: nothing meets it; give another embedding or dense features");
    EXPECT_EQ(with([](auto& c) { c.bottom = {-8, 4}; }), "DLRM: a width of the bottom MLP is -8: it is at least 1");
}

TEST(dlrm, says_which_call_is_missing) {
    shardwise::MemoryAccount memory;
    DlrmDense model{small_config(), memory};
    Random random{5};
    const Matrix dense{6, 5, random};
    const Matrix embeddings{6, 12, random};
    const std::vector<float> gradient(6);
    EXPECT_EQ(sentence([&] { model.forward_top(embeddings.view()); }),
              "DLRM: forward_top comes right after forward_bottom");
    EXPECT_EQ(sentence([&] { model.forward_bottom(embeddings.view()); }),
              "DLRM: forward_bottom is given 12 dense features, and needs 5");
    model.forward_bottom(dense.view());
    EXPECT_EQ(sentence([&] { model.backward_top(gradient); }), "DLRM: backward_top comes right after forward_top");
    EXPECT_EQ(sentence([&] { model.forward_top(embeddings.view().rows_from(0, 4)); }),
              "DLRM: forward_top is given 4 samples, and needs 6");
    model.forward_top(embeddings.view());
    EXPECT_EQ(sentence([&] { model.backward_bottom(); }), "DLRM: backward_bottom comes right after backward_top");
    EXPECT_EQ(sentence([&] { model.backward_top(std::span{gradient}.first(5)); }),
              "DLRM: backward_top is given 5 samples, and needs 6");
    model.backward_top(gradient);
    model.backward_bottom();
}

TEST(dlrm, counts_its_flops) {
    shardwise::MemoryAccount memory;
    const DlrmDense model{{.dense_features = 5, .dimension = 2, .features = 3, .bottom = {2}, .top = {1}}, memory};
    // Bottom: forward and weights. Interaction: forward and twice backward. Top: forward, weights and input.
    EXPECT_EQ(model.flops(), 2 * (2 * 5 * 2 + 3 * 4 * 4 * 2 + 3 * 8 * 1));
    EXPECT_EQ(DlrmDense::parameter_count(model.config()), 6 * 2 + 9 * 1);
    std::int64_t elements = 0;
    for (const auto& parameter : model.parameters())
        elements += static_cast<std::int64_t>(parameter.size());
    EXPECT_EQ(elements, 6 * 2 + 9 * 1);
}

}  // namespace
}  // namespace dense_test
