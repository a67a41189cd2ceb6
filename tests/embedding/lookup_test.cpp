// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/embedding/kernels/lookup.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

/// \file
/// The host kernels of a lookup write the bits that a loop over ids writes, and nothing beside them.

namespace {

namespace sw = shardwise;

constexpr float guard = 12345.0F;

struct LookupCase {
    std::vector<float> table;
    std::vector<std::int32_t> lengths;
    std::vector<sw::LocalRow> rows;
    std::vector<float> weights;
    std::int64_t stride = 0;
    sw::LookupArguments a;  // but for `out`
};

/// Of any dim; bags of one id, of several or of none, or no ids at all; weighted or not; rows of output apart or not.
LookupCase draw_lookup(std::mt19937_64& engine) {
    const auto below = [&engine](std::int64_t end) {
        return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(end));
    };
    constexpr int dims[]{0, 1, 3, 15, 16, 17, 31, 32, 33, 64, 100, 128, 130, 256};
    LookupCase p;
    p.a.dim = dims[below(std::ssize(dims))];
    const std::int64_t gaps = below(3);
    p.stride = p.a.dim + gaps * (1 + below(1100));
    p.a.bags = below(120);
    const std::int64_t table_rows = 1 + below(200);
    const bool one_each = below(2) == 0;
    std::int64_t named = one_each ? p.a.bags : 0;
    if (!one_each)
        for (std::int64_t bag = 0; bag < p.a.bags; ++bag) {
            p.lengths.push_back(static_cast<std::int32_t>(below(4) == 0 ? 0 : below(40)));
            named += p.lengths.back();
        }
    p.a.ids = below(5) == 0 && one_each ? 0 : named + below(3);  // perhaps more than the bags have
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < table_rows * p.a.dim; ++i)
        p.table.push_back(below(9) == 0 ? -0.0F : normal(engine));
    for (std::int64_t i = 0; i < p.a.ids; ++i)
        p.rows.push_back(static_cast<sw::LocalRow>(below(table_rows)));
    if (below(2) == 0)  // products of less than a half and the least negative number are -0.0
        for (std::int64_t i = 0; i < std::max<std::int64_t>(p.a.ids, 1); ++i)
            p.weights.push_back(below(7) == 0 ? -std::numeric_limits<float>::denorm_min() : normal(engine));
    p.a.table = p.table.data();
    p.a.lengths = one_each ? nullptr : p.lengths.data();
    p.a.rows = p.rows.data();
    p.a.weights = p.weights.empty() ? nullptr : p.weights.data();
    return p;
}

std::vector<float> guarded_memory(std::int64_t rows, std::int64_t stride) {
    return std::vector<float>(static_cast<std::size_t>(rows * stride + 1), guard);
}

/// Sums by a loop that knows nothing of widths, of what is asked for ahead or of registers.
std::vector<float> lookup_sums(const LookupCase& p) {
    std::vector<float> out = guarded_memory(p.a.bags, p.stride);
    std::int64_t first = 0;
    for (std::int64_t bag = 0; bag < p.a.bags; ++bag) {
        const std::int64_t length = p.a.ids == 0 ? 0 : (p.a.lengths != nullptr ? p.a.lengths[bag] : 1);
        for (int d = 0; d < p.a.dim; ++d) {
            float sum = 0.0F;
            for (std::int64_t i = first; i < first + length; ++i) {
                const float weight = p.a.weights != nullptr ? p.a.weights[i] : 1.0F;
                sum = std::fma(weight, p.table[static_cast<std::size_t>(p.a.rows[i]) * p.a.dim + d], sum);
            }
            out[static_cast<std::size_t>(bag * p.stride + d)] = sum + 0.0F;
        }
        first += length;
    }
    return out;
}

bool equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(PooledLookup, SumsAsALoopOverIdsAndWritesNothingElse) {
    std::mt19937_64 engine{20};
    for (int round = 0; round < 600; ++round) {
        LookupCase p = draw_lookup(engine);
        std::vector<float> out = guarded_memory(p.a.bags, p.stride);
        p.a.out = out.data();
        sw::pooled_lookup(p.a, p.stride);
        ASSERT_TRUE(equal_bits(out, lookup_sums(p)))
            << "round " << round << ": " << p.a.bags << " bags, " << p.a.ids << " ids, " << p.a.dim
            << " columns, stride " << p.stride << (p.a.lengths == nullptr ? ", one id each" : "")
            << (p.weights.empty() ? "" : ", weighted");
    }
}

TEST(GatherRows, CopiesTheRowOfEachIdAndWritesNothingElse) {
    std::mt19937_64 engine{21};
    for (int round = 0; round < 300; ++round) {
        LookupCase p = draw_lookup(engine);
        std::vector<float> out = guarded_memory(p.a.ids, p.stride);
        std::vector<float> expected = out;
        for (std::int64_t i = 0; i < p.a.ids; ++i)
            for (int d = 0; d < p.a.dim; ++d)
                expected[static_cast<std::size_t>(i * p.stride + d)] =
                    p.table[static_cast<std::size_t>(p.a.rows[i]) * p.a.dim + d];
        p.a.out = out.data();
        sw::gather_rows(p.a, p.stride);
        ASSERT_TRUE(equal_bits(out, expected))
            << "round " << round << ": " << p.a.ids << " ids, " << p.a.dim << " columns, stride " << p.stride;
    }
}

}  // namespace
