// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The pooled lookup of the host. Its ceiling reads the same rows and writes an output of the same shape, with huge
// pages and the best of several prefetch distances, in the same process.
//
//   bench_lookup [--table_mib=N] [--benchmark_filter=...] [--benchmark_format=json]

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "shardwise/core/buffer.hpp"
#include "shardwise/embedding/lookup_kernel.hpp"
#include "support.hpp"

namespace {

using shardwise_bench::Best;
using shardwise_bench::Line;

std::int64_t table_mib = 1024;

/// A table of one dim, kept from benchmark to benchmark.
const float* table(int dim, std::int64_t rows) {
    static int last = 0;
    static shardwise::HugePageResource memory;
    static shardwise::Buffer<float> weights;
    if (dim != last) {
        weights.release();
        weights.on(memory).resize(static_cast<std::size_t>(rows * dim));
        for (std::size_t i = 0; i < weights.size(); ++i)
            weights[i] = static_cast<float>(i & 1023U) * 0.001F;
        last = dim;
    }
    return weights.data();
}

/// Reads each row and writes each output once; sums all rows of a bag into a few registers.
template <int Dim>
void ceiling(const shardwise::LookupArguments& a, int distance) {
    std::int64_t i = 0;
    for (std::int64_t bag = 0; bag < a.bags; ++bag) {
        Line sum[4] = {};
        for (const std::int64_t end = i + (a.lengths == nullptr ? 1 : a.lengths[bag]); i < end; ++i) {
            if (i + distance < a.ids)
                shardwise_bench::prefetch(a.table + static_cast<std::int64_t>(a.rows[i + distance]) * Dim, Dim, 0);
            const float* row = a.table + static_cast<std::int64_t>(a.rows[i]) * Dim;
            for (int d = 0; d < Dim; d += 16)
                sum[d / 16 % 4] += *reinterpret_cast<const Line*>(row + d);
        }
        for (int d = 0; d < Dim; d += 16)
            *reinterpret_cast<Line*>(a.out + bag * Dim + d) = sum[d / 16 % 4];
    }
}

/// Arguments: dim, ids a bag, 1 for Zipf.
void pooled_lookup(benchmark::State& state) {
    const int dim = static_cast<int>(state.range(0));
    const std::int64_t bag = state.range(1);
    const std::int64_t rows = (table_mib << 20U) / 4 / dim;
    const std::int64_t bags = 400'000 / bag;
    const std::int64_t ids = bags * bag;
    std::vector<shardwise::LocalRow> local;
    for (const std::int64_t id : shardwise_bench::make_ids(ids, rows, state.range(2) != 0))
        local.push_back(static_cast<shardwise::LocalRow>(id));
    const std::vector<std::int32_t> lengths(static_cast<std::size_t>(bags), static_cast<std::int32_t>(bag));
    shardwise::HugePageResource memory;
    shardwise::Buffer<float> out{memory};
    out.assign_zero(static_cast<std::size_t>(bags * dim));
    const shardwise::LookupArguments arguments{.table = table(dim, rows),
                                               .dim = dim,
                                               .bags = bags,
                                               .ids = ids,
                                               .lengths = bag == 1 ? nullptr : lengths.data(),
                                               .rows = local.data(),
                                               .weights = nullptr,
                                               .out = out.data()};
    Best kernel;
    Best best_ceiling;
    for ([[maybe_unused]] auto iteration : state) {
        const double time = shardwise_bench::seconds([&] { shardwise::pooled_lookup(arguments); });
        state.SetIterationTime(time);
        kernel.add(time);
        for (const int distance : {16, 24, 32, 48})
            best_ceiling.add(shardwise_bench::seconds([&] {
                if (dim == 16) ceiling<16>(arguments, distance);
                if (dim == 64) ceiling<64>(arguments, distance);
                if (dim == 128) ceiling<128>(arguments, distance);
            }));
    }
    const std::int64_t row_bytes = 4 * dim;
    shardwise_bench::report(state, ids * (row_bytes + 4) + bags * (row_bytes + (bag == 1 ? 0 : 4)), kernel,
                            best_ceiling);
}

BENCHMARK(pooled_lookup)
    ->ArgNames({"dim", "bag", "zipf"})
    ->ArgsProduct({{16, 64, 128}, {1, 20}, {0, 1}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
    table_mib = shardwise_bench::take_table_mib(argc, argv, table_mib);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
}
