// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/layer_norm.hpp"

#include <cstdint>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "dense/naive_sequences.hpp"

namespace dense_test {
namespace {
using shardwise::DensePrecision;

RC_GTEST_PROP(layer_norm, equals_the_definition_and_its_slopes, ()) {
    const auto rows = *rc::gen::inRange<std::int64_t>(0, 7);
    const auto width = *rc::gen::inRange<std::int64_t>(1, 9);
    const auto precision = *rc::gen::element(DensePrecision::single, DensePrecision::blocks, DensePrecision::wide);
    Random random{*rc::gen::arbitrary<std::uint32_t>()};
    shardwise::MemoryAccount memory;
    shardwise::ParameterSet set{memory.tables()};
    const shardwise::LayerNorm norm{set, "norm", width, precision};
    set.allocate(precision);
    draw_parameters(set, random);
    shardwise::LayerNorm::Work work{memory.work()};
    const Matrix x{rows, width, random};
    const Matrix dy{rows, width, random};
    Matrix y{rows, width, random};
    Matrix dx{rows, width, random};
    norm.forward(x.view(), y.view(), work);
    norm.backward(work, x.view(), dy.view(), dx.view());
    if (precision != DensePrecision::single) set.round_gradients();

    NamedParameters p{set};
    auto exact = as_double(x.elements.span());
    const auto naive = [&] {
        std::vector<double> flat;
        for (const auto& row : naive_norm(as_rows(exact, rows, width), p, "norm"))
            flat.insert(flat.end(), row.begin(), row.end());
        return flat;
    };
    const auto loss = [&] {
        double sum = 0.0;
        const auto flat = naive();
        for (std::size_t i = 0; i < flat.size(); ++i)
            sum += flat[i] * static_cast<double>(dy.elements[i]);
        return sum;
    };
    RC_ASSERT(worst(y.elements.span(), naive()) < 1e-5);
    RC_ASSERT(worst_gradient(set, p, loss) < 1e-4);
    if (width > 1)
        RC_ASSERT(worst(dx.elements.span(), slopes(exact, loss)) < 1e-3);  // steep where a row is nearly flat
    Matrix same = Matrix{rows, width};
    std::copy_n(dy.elements.data(), dy.size(), same.elements.data());
    norm.backward(work, x.view(), same.view(), same.view());  // in place
    RC_ASSERT(worst(same.elements.span(), as_double(dx.elements.span())) == 0.0);
}

TEST(layer_norm, starts_as_plain_normalization) {
    shardwise::MemoryAccount memory;
    shardwise::ParameterSet set{memory.tables()};
    const shardwise::LayerNorm norm{set, "n", 2};
    set.allocate();
    norm.initialize();
    EXPECT_EQ(set.find("n.weight")->values()[1], 1.0F);
    EXPECT_EQ(set.find("n.bias")->values()[1], 0.0F);
    EXPECT_THROW((shardwise::LayerNorm{set, "n", 2}), shardwise::BadInput);
}

}  // namespace
}  // namespace dense_test
