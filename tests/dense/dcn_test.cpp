// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/dcn.hpp"

#include <cstdint>
#include <span>
#include <vector>

#include "dense/naive.hpp"
#include "dense/support.hpp"

namespace dense_test {
namespace {
using shardwise::BadInput;
using shardwise::DcnConfig;
using shardwise::DcnDense;
using shardwise::DensePrecision;

DcnConfig small_config(std::int64_t dimension, std::int64_t rank) {
    return {.dense_features = 5,
            .dimension = dimension,
            .features = 3,
            .bottom = {8, dimension},
            .top = {9, 1},
            .seed = 17,
            .interaction = {.layers = 2, .rank = rank}};
}

/// Logits of the definition.
std::vector<double> naive_dcn_logits(const DcnConfig& config, std::span<const NaiveParameter> parameters,
                                     std::span<const double> dense, std::span<const double> embeddings,
                                     std::int64_t samples) {
    const auto layers = static_cast<std::size_t>(config.interaction.layers) * (config.interaction.rank == 0 ? 2 : 3);
    const auto cross = parameters.first(layers);
    const auto bottom = parameters.subspan(layers, 2 * config.bottom.size());
    const auto top = parameters.subspan(layers + 2 * config.bottom.size());
    Rows x = naive_mlp(as_rows(dense, samples, config.dense_features), bottom, naive_relu, naive_relu);
    const Rows f = as_rows(embeddings, samples, config.features * config.dimension);
    for (std::size_t i = 0; i < x.size(); ++i)
        x[i].insert(x[i].end(), f[i].begin(), f[i].end());
    x = naive_cross_net(x, cross,
                        {.width = (config.features + (config.has_dense() ? 1 : 0)) * config.dimension,
                         .layers = config.interaction.layers,
                         .rank = config.interaction.rank});
    std::vector<double> logits;
    for (const auto& row : naive_mlp(x, top, naive_relu, naive_identity))
        logits.push_back(row[0]);
    return logits;
}

void check_model(DcnConfig config, std::int64_t samples, DensePrecision precision) {
    SCOPED_TRACE(testing::Message() << "D " << config.dimension << ", rank " << config.interaction.rank << ", samples "
                                    << samples);
    config.precision = precision;
    shardwise::MemoryAccount memory;
    DcnDense model{config, memory};
    Random random{21};
    random.fill(model.parameters().values());
    random.fill(model.parameters().gradients());
    expect_model(model, samples, 1e-4, random, naive_dcn_logits);
}

TEST(dcn, equals_the_definition_and_its_slopes) {
    for (const DensePrecision precision : {DensePrecision::single, DensePrecision::blocks, DensePrecision::wide})
        for (const std::int64_t samples : {0, 1, 5})
            for (const std::int64_t rank : {0, 2})
                for (const std::int64_t dimension : {1, 6})
                    check_model(small_config(dimension, rank), samples, precision);
}

TEST(dcn, without_dense_features_crosses_the_embeddings) {
    for (const DensePrecision precision : {DensePrecision::single, DensePrecision::blocks, DensePrecision::wide})
        for (const std::int64_t features : {1, 3}) {
            DcnConfig config = small_config(4, 2);
            config.dense_features = 0;
            config.bottom = {};
            config.features = features;
            check_model(config, 5, precision);
            EXPECT_EQ(DcnDense::parameter_count(config),
                      2 * (2 * 4 * features * 2 + 4 * features) + (4 * features + 1) * 9 + 10);
        }
}

TEST(dcn, names_and_counts_its_parameters) {
    shardwise::MemoryAccount memory;
    const DcnConfig config = small_config(4, 2);
    const DcnDense model{config, memory};
    EXPECT_NE(model.parameters().find("cross.1.v.weight"), nullptr);
    EXPECT_NE(model.parameters().find("bottom.0.weight"), nullptr);
    EXPECT_EQ(DcnDense::parameter_count(config), model.parameters().elements());
    // 16 wide: 2 layers of rank 2; MLPs 5-8-4 and 16-9-1, without the gradient of the dense features
    EXPECT_EQ(model.flops(), 6 * 2 * (2 * 16 * 2 + 16) + 6 * (5 * 8 + 8 * 4 + 16 * 9 + 9) - 2 * 5 * 8);
    for (const float bias : model.parameters().find("cross.0.u.bias")->values())
        EXPECT_EQ(bias, 0.0F);
    EXPECT_NE(model.parameters().find("cross.0.u.weight")->values()[0], 0.0F);
}

TEST(dcn, refuses_what_does_not_fit) {
    shardwise::MemoryAccount memory;
    DcnConfig config = small_config(4, 0);
    config.interaction.layers = 0;
    EXPECT_THROW((DcnDense{config, memory}), BadInput);
    config = small_config(4, 0);
    config.top = {2};
    try {
        const DcnDense model{config, memory};
        FAIL();
    } catch (const BadInput& error) {
        EXPECT_STREQ(error.what(), "DCN: the top MLP ends in width 2: its last width is 1, the logit");
    }
}

}  // namespace
}  // namespace dense_test
