// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/batch_products.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory_resource>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "dense/support.hpp"

namespace dense_test {
namespace {

using shardwise::BatchProducts;
using shardwise::DensePrecision;

BatchProducts products_in(DensePrecision precision) {
    return {precision, *std::pmr::new_delete_resource()};
}
std::int64_t any(std::int64_t least, std::int64_t most) {
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(least, most + 1));
}

/// A gradient of weights, summed over the parts of a batch as ranks sum it: in double, rounded once.
std::vector<float> gradient_of(DensePrecision precision, const Matrix& a, const Matrix& b,
                               const std::vector<std::int64_t>& parts) {
    std::vector<double> sum(static_cast<std::size_t>(a.columns * b.columns));
    std::int64_t first = 0;
    for (const std::int64_t rows : parts) {
        std::vector<double> part(sum.size(), -1.0);
        products_in(precision).tn(a.view().rows_from(first, rows), b.view().rows_from(first, rows),
                                  {part.data(), a.columns, b.columns});
        std::transform(part.begin(), part.end(), sum.begin(), sum.begin(), std::plus{});
        first += rows;
    }
    return {sum.begin(), sum.end()};
}

RC_GTEST_PROP(batch_products, rows_do_not_depend_on_the_batch_that_they_stand_in, ()) {
    Random random{*rc::gen::arbitrary<std::uint32_t>()};
    const std::int64_t inputs = any(1, 150);
    const std::int64_t outputs = any(1, 150);
    const std::int64_t samples = any(1, 400);
    const std::int64_t wider = any(0, 1) * any(1, 20);  // columns of a matrix that this one is a part of
    Matrix x{samples, inputs + wider, random};
    const Matrix weight{outputs, inputs, random};
    const Matrix transposed{inputs, outputs, random};
    Matrix y{samples, outputs + wider};
    Matrix z{samples, outputs};
    BatchProducts products = products_in(DensePrecision::blocks);
    products.nt(x.view().columns_from(0, inputs), weight.view(), y.view().columns_from(wider, outputs));
    products.nn(x.view().columns_from(0, inputs), transposed.view(), z.view());
    for (int turn = 0; turn < 3; ++turn) {
        const std::int64_t first = any(0, samples - 1);
        const std::int64_t rows = any(1, samples - first);
        Matrix part{rows, outputs};
        Matrix own{rows, inputs};
        for (std::int64_t i = 0; i < rows; ++i)
            std::copy_n(x.view().row(first + i), inputs, own.view().row(i));
        products.nt(own.view(), weight.view(), part.view());
        for (std::int64_t i = 0; i < rows; ++i)
            RC_ASSERT(std::equal(part.view().row(i), part.view().row(i) + outputs, y.view().row(first + i) + wider));
        products.nn(own.view(), transposed.view(), part.view());
        for (std::int64_t i = 0; i < rows; ++i)
            RC_ASSERT(std::equal(part.view().row(i), part.view().row(i) + outputs, z.view().row(first + i)));
    }
}

RC_GTEST_PROP(batch_products, whole_blocks_and_less_than_one_have_the_same_gradient_however_they_are_split, ()) {
    Random random{*rc::gen::arbitrary<std::uint32_t>()};
    const bool whole = *rc::gen::arbitrary<bool>();
    const std::int64_t unit = whole ? BatchProducts::block : 1;
    std::vector<std::int64_t> parts;
    std::int64_t units = any(1, whole ? 4 : BatchProducts::block - 1);
    const std::int64_t samples = units * unit;
    while (units > 0) {
        parts.push_back(any(0, units) * unit);  // a rank may have none
        units -= parts.back() / unit;
    }
    const Matrix a{samples, any(1, 200), random};
    const Matrix b{samples, any(1, 60), random};
    RC_ASSERT(gradient_of(DensePrecision::blocks, a, b, parts) == gradient_of(DensePrecision::blocks, a, b, {samples}));
}

RC_GTEST_PROP(batch_products, equal_the_definition, ()) {
    Random random{*rc::gen::arbitrary<std::uint32_t>()};
    const auto precision = *rc::gen::element(DensePrecision::blocks, DensePrecision::wide);
    const std::int64_t samples = any(0, 300);
    const std::int64_t m = any(1, 140);
    const std::int64_t n = any(1, 40);
    const Matrix a{samples, m, random};
    const Matrix b{samples, n, random};
    const Matrix weight{n, m, random};
    std::vector<double> gradient(static_cast<std::size_t>(m * n), -1.0);
    BatchProducts products = products_in(precision);
    products.tn(a.view(), b.view(), {gradient.data(), m, n});
    for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0.0;
            for (std::int64_t s = 0; s < samples; ++s)
                sum += static_cast<double>(a.view()(s, i)) * static_cast<double>(b.view()(s, j));
            expect_close(gradient[static_cast<std::size_t>(i * n + j)], sum, 2e-5);
        }
    Matrix y{samples, n};
    products.nt(a.view(), weight.view(), y.view());
    for (std::int64_t s = 0; s < samples; ++s)
        for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0.0;
            for (std::int64_t i = 0; i < m; ++i)
                sum += static_cast<double>(a.view()(s, i)) * static_cast<double>(weight.view()(j, i));
            expect_close(static_cast<double>(y.view()(s, j)), sum, 1e-5);
        }
}

TEST(batch_products, of_blocks_are_rounded_where_wide_ones_are_not) {
    // 2^24 + 1 is no float: a block adds up to 2^24 in float, and to one more in double.
    Matrix ones{BatchProducts::block, 1};
    Matrix terms{BatchProducts::block, 1};
    std::fill(ones.elements.span().begin(), ones.elements.span().end(), 1.0F);
    std::fill(terms.elements.span().begin(), terms.elements.span().end(), 0.0F);
    terms.elements[0] = 16777216.0F;
    terms.elements[1] = 1.0F;
    double sum = 0.0;
    products_in(DensePrecision::blocks).tn(ones.view(), terms.view(), {&sum, 1, 1});
    EXPECT_EQ(sum, 16777216.0);
    products_in(DensePrecision::wide).tn(ones.view(), terms.view(), {&sum, 1, 1});
    EXPECT_EQ(sum, 16777217.0);
}

}  // namespace
}  // namespace dense_test
