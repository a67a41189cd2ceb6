// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/loss.hpp"

#include <cmath>
#include <vector>

#include "dense/support.hpp"

namespace dense_test {
namespace {

double naive_loss(double z, double y) {
    const double p = 1.0 / (1.0 + std::exp(-z));
    return -y * std::log(p) - (1.0 - y) * std::log(1.0 - p);
}

TEST(loss, equals_the_definition_and_its_slopes) {
    Random random{9};
    std::vector<float> logits(200);
    std::vector<float> labels(200);
    std::vector<float> gradient(200);
    for (std::size_t i = 0; i < logits.size(); ++i) {
        logits[i] = 8 * random();
        labels[i] = static_cast<float>(random.below(2));
    }
    labels[3] = 0.25F;
    const double sum = shardwise::binary_cross_entropy(logits, labels, 1000, gradient);
    double expected = 0.0;
    auto z = as_double(logits);
    for (std::size_t i = 0; i < z.size(); ++i) {
        expected += naive_loss(z[i], labels[i]);
        expect_close(gradient[i], slope(z, i, [&] { return naive_loss(z[i], labels[i]) / 1000; }), 1e-8);
    }
    expect_close(sum, expected, 1e-12);
}

TEST(loss, ranks_add_up) {
    Random random{10};
    std::vector<float> logits(30);
    std::vector<float> labels(30, 1.0F);
    random.fill(logits);
    std::vector<float> whole(30);
    std::vector<float> parts(30);
    const double sum = shardwise::binary_cross_entropy(logits, labels, 30, whole);
    const auto part = [&](std::size_t first, std::size_t count) {
        return shardwise::binary_cross_entropy(std::span{logits}.subspan(first, count),
                                               std::span{labels}.subspan(first, count), 30,
                                               std::span{parts}.subspan(first, count));
    };
    expect_close(part(0, 13) + part(13, 0) + part(13, 17), sum, 1e-14);
    EXPECT_EQ(parts, whole);
}

TEST(loss, stays_finite_for_large_logits) {
    const std::vector<float> logits{1e30F, -1e30F, 1e30F, -1e30F, 200.0F};
    const std::vector<float> labels{1.0F, 0.0F, 0.0F, 1.0F, 0.0F};
    std::vector<float> gradient(5);
    const double sum = shardwise::binary_cross_entropy(logits, labels, 5, gradient);
    expect_close(sum, 2.0 * static_cast<double>(1e30F) + 200.0, 1e-15);
    expect_all_close(gradient, std::vector{0.0, 0.0, 0.2, -0.2, 0.2}, 1e-7);
}

TEST(loss, of_nothing_is_zero) {
    EXPECT_EQ(shardwise::binary_cross_entropy({}, {}, 0, {}), 0.0);
}

}  // namespace
}  // namespace dense_test
