// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/embedding/lanes/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

/// \file
/// Vectors that are looked up where they are read: at once, piece by piece, row by row.

namespace {

namespace sw = shardwise;

constexpr float untouched = -7777.0F;

/// A block of random shape, and its rows worked out one number at a time.
struct Example {
    sw::steps::VectorBlock block;
    std::vector<float> memory;  // a table, or rows with gaps or all in one place
    std::vector<std::int32_t> gather;
    std::vector<std::int32_t> lengths;
    std::vector<sw::LocalRow> rows;
    std::vector<float> weights;
    std::vector<std::vector<float>> expected;

    Example(std::mt19937_64& engine, sw::steps::VectorsAre kind) {
        const auto below = [&](int n) { return static_cast<int>(engine() % static_cast<std::uint64_t>(n)); };
        const auto number = [&] {
            if (below(8) == 0) return below(2) == 0 ? -0.0F : 1e-30F;
            return static_cast<float>(below(2001) - 1000) / (below(4) == 0 ? -1e30F : 64.0F);
        };
        const int dim = std::vector<int>{1, 3, 16, 17, 32, 64, 100, 128, 256}[static_cast<std::size_t>(below(9))];
        const std::int64_t n = below(5) == 0 ? 0 : 1 + below(90);
        block.head = {.source = 0, .feature = 0, .shard = 0, .dim = dim, .n = n};
        block.are = kind;
        if (kind == sw::steps::VectorsAre::in_memory) {
            block.words = below(4) == 0 ? 2 : 1;
            const int width = block.width();
            block.stride = below(6) == 0 ? 0 : width + below(3);
            memory.resize(static_cast<std::size_t>(n == 0 ? 0 : (n - 1) * block.stride + width));  // for sanitizers
            std::generate(memory.begin(), memory.end(), number);
            block.data = n == 0 ? nullptr : memory.data();
            for (std::int64_t i = 0; i < n; ++i)
                gather.push_back(below(static_cast<int>(n)));
            const bool gathered = below(3) == 0;
            if (gathered) block.gather = gather.data();
            for (std::int64_t i = 0; i < n; ++i) {
                const float* const row =
                    memory.data() + (gathered ? gather[static_cast<std::size_t>(i)] : i) * block.stride;
                expected.emplace_back(row, row + width);
            }
            return;
        }
        const int table_rows = 1 + below(50);
        memory.resize(static_cast<std::size_t>(table_rows * dim));
        std::generate(memory.begin(), memory.end(), number);
        const bool pooled = kind == sw::steps::VectorsAre::bag_sums;
        const bool single = !pooled || below(3) == 0;
        const bool empty = pooled && below(6) == 0;
        const bool weighted = pooled && below(3) == 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const int length = empty ? 0 : single ? 1 : below(5);
            lengths.push_back(length);
            std::vector<float> sum(static_cast<std::size_t>(dim), 0.0F);
            for (int k = 0; k < length; ++k) {
                rows.push_back(static_cast<sw::LocalRow>(below(table_rows)));
                weights.push_back(number());
                for (int d = 0; d < dim; ++d) {
                    float& to = sum[static_cast<std::size_t>(d)];
                    const float x = memory[static_cast<std::size_t>(rows.back()) * static_cast<std::size_t>(dim) +
                                           static_cast<std::size_t>(d)];
                    to = !pooled ? x : weighted ? std::fma(weights.back(), x, to) : to + x;
                }
            }
            if (weighted)
                for (float& x : sum)
                    x += 0.0F;
            expected.push_back(sum);
        }
        block.lookup = {.table = memory.data(),
                        .dim = dim,
                        .bags = n,
                        .ids = static_cast<std::int64_t>(rows.size()),
                        .lengths = single || empty ? nullptr : lengths.data(),
                        .rows = rows.empty() ? nullptr : rows.data(),
                        .weights = weighted ? weights.data() : nullptr,
                        .out = nullptr};
    }
};

template <class Check>
void for_examples(Check check) {
    std::mt19937_64 engine{20};
    for (const sw::steps::VectorsAre kind :
         {sw::steps::VectorsAre::in_memory, sw::steps::VectorsAre::bag_sums, sw::steps::VectorsAre::table_rows})
        for (int example = 0; example < 300; ++example) {
            SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << ", example " << example);
            const Example e{engine, kind};
            check(e, engine);
            if (testing::Test::HasFailure()) return;
        }
}

bool same(const float* row, const std::vector<float>& expected) {
    return std::memcmp(row, expected.data(), expected.size() * sizeof(float)) == 0;
}

TEST(Blocks, WriteEveryRowAndNothingBetweenThem) {
    for_examples([](const Example& e, std::mt19937_64& engine) {
        const int width = e.block.width();
        const std::int64_t stride = width + static_cast<std::int64_t>(engine() % 4);
        std::vector<float> out(static_cast<std::size_t>(e.block.head.n * stride), untouched);
        e.block.write(out.data(), stride);
        for (std::int64_t i = 0; i < e.block.head.n; ++i) {
            EXPECT_TRUE(same(out.data() + i * stride, e.expected[static_cast<std::size_t>(i)])) << "row " << i;
            EXPECT_EQ(std::count(out.data() + i * stride + width, out.data() + (i + 1) * stride, untouched),
                      stride - width);
        }
    });
}

TEST(Blocks, WriteSumsThatAreNeverMinusZero) {
    int minus_zeros = 0;
    for_examples([&](const Example& e, std::mt19937_64& engine) {
        if (e.block.are == sw::steps::VectorsAre::table_rows || e.block.words != 1) return;
        const std::int64_t n = e.block.head.n;
        const int dim = e.block.head.dim;
        const std::int64_t stride = dim + static_cast<std::int64_t>(engine() % 4);
        std::vector<float> out(static_cast<std::size_t>(n * stride), untouched);
        sw::steps::write_sums(e.block, {out.data(), n, dim, stride});
        for (std::int64_t i = 0; i < n; ++i) {
            std::vector<float> sum = e.expected[static_cast<std::size_t>(i)];
            for (float& x : sum) {
                minus_zeros += x == 0.0F && std::signbit(x) ? 1 : 0;
                x += 0.0F;
            }
            EXPECT_TRUE(same(out.data() + i * stride, sum)) << "row " << i;
            EXPECT_EQ(std::count(out.data() + i * stride + dim, out.data() + (i + 1) * stride, untouched),
                      stride - dim);
        }
    });
    EXPECT_GT(minus_zeros, 1000);
}

TEST(Blocks, AreReadPieceByPiece) {
    for_examples([](const Example& e, std::mt19937_64& engine) {
        if (e.block.are == sw::steps::VectorsAre::table_rows) return;
        sw::steps::detail::RowReader reader{e.block};
        for (std::int64_t begin = 0; begin < e.block.head.n;) {
            const std::int64_t count = std::min(e.block.head.n - begin, 1 + static_cast<std::int64_t>(engine() % 20));
            std::vector<float> tile(static_cast<std::size_t>(count * e.block.head.dim));
            reader.next(count, tile.data());
            for (std::int64_t i = 0; i < count; ++i)
                EXPECT_TRUE(same(reader.row(i), e.expected[static_cast<std::size_t>(begin + i)]))
                    << "row " << begin + i;
            begin += count;
        }
    });
}

TEST(Blocks, GiveRowsThatAreNoSums) {
    for_examples([](const Example& e, std::mt19937_64&) {
        if (e.block.are == sw::steps::VectorsAre::bag_sums) return;
        for (std::int64_t i = 0; i < e.block.head.n; ++i)
            EXPECT_TRUE(same(e.block.row_or_table_row(i), e.expected[static_cast<std::size_t>(i)])) << "row " << i;
    });
}

}  // namespace
