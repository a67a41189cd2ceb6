// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The dot products of all pairs of a sample's vectors: DotInteraction beside one matrix product a sample, run by run.
// Few vectors are those of towers: a bottom MLP's and one a tower.
//
//   bench_interaction [--benchmark_filter=...] [--benchmark_format=json]

#include <algorithm>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "shardwise/dense/gemm.hpp"
#include "shardwise/dense/interaction.hpp"
#include "shardwise/plan/memory.hpp"
#include "support.hpp"

namespace {

namespace sw = shardwise;

/// Arguments: vectors a sample, elements of each.
void pairs(benchmark::State& state) {
    constexpr std::int64_t samples = 2048;
    const std::int64_t vectors = state.range(0);
    const std::int64_t dim = state.range(1);
    sw::MemoryAccount memory;
    sw::DotInteraction interaction{dim, vectors - 1, memory.work()};
    std::vector<float> all(static_cast<std::size_t>(samples * vectors * dim), 0.5F);
    std::vector<float> out(static_cast<std::size_t>(samples * interaction.outputs()));
    std::vector<float> products(static_cast<std::size_t>(vectors * vectors));
    const sw::MatrixView<const float> dense{all.data(), samples, dim};
    const sw::MatrixView<const float> features{all.data() + samples * dim, samples, (vectors - 1) * dim};
    shardwise_bench::Times ours;
    shardwise_bench::Times product;
    for ([[maybe_unused]] auto iteration : state) {
        const double time = shardwise_bench::seconds([&] {
            interaction.forward(dense, features, {out.data(), samples, interaction.outputs()});
        });
        state.SetIterationTime(time);
        ours.add(time);
        product.add(shardwise_bench::seconds([&] {
            for (std::int64_t s = 0; s < samples; ++s) {
                const sw::MatrixView<const float> one{all.data() + s * vectors * dim, vectors, dim};
                sw::gemm_nt(one, one, {products.data(), vectors, vectors});
                float* to = std::copy_n(one.data(), dim, out.data() + s * interaction.outputs());
                for (std::int64_t i = 1; i < vectors; ++i)
                    to = std::copy_n(products.data() + i * vectors, i, to);
            }
        }));
    }
    state.counters["median_ms"] = ours.median() * 1e3;
    state.counters["ns_a_sample"] = ours.median() / samples * 1e9;
    state.counters["product_over_ours"] = product.median() / ours.median();
}

}  // namespace

BENCHMARK(pairs)->ArgNames({"vectors", "dim"})->ArgsProduct({{3, 5, 9, 14, 27}, {8, 16, 32, 64, 128}})->UseManualTime();

int main(int argc, char** argv) {
    const shardwise_bench::Output output{
        argc, argv,
        "time: the median forward pass of 2048 samples. There is no ceiling.\n"
        "product_over_ours: the time of one matrix product a sample, over that time; above 1 it is faster.",
        "  none\n"};
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    return output.run() ? 0 : 2;
}
