// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The backward plan of a layer on one rank: gradients grouped by row, folded, and the fused RowwiseAdagrad. Its ceiling
// reads and writes each touched row and its moment once, reads each bag's gradient once, and sorts the same ids by
// radix.
//
//   bench_update [--table_mib=N] [--benchmark_filter=...] [--benchmark_format=json]

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/sharding/table.hpp"
#include "support.hpp"

namespace {

using shardwise_bench::Best;
using shardwise_bench::Line;

std::int64_t table_mib = 1024;

/// A stable radix sort of (row << 32 | position) by row, with as few passes of 11 bits as the rows need.
void radix_sort(std::vector<std::uint64_t>& keys, std::vector<std::uint64_t>& spare, std::int64_t rows) {
    for (unsigned shift = 0; rows >> shift > 0; shift += 11) {
        std::array<std::uint32_t, 2048> offset{};
        for (const std::uint64_t key : keys)
            ++offset[key >> (32 + shift) & 2047U];
        std::uint32_t sum = 0;
        for (std::uint32_t& o : offset)
            sum += std::exchange(o, sum);
        for (const std::uint64_t key : keys)
            spare[offset[key >> (32 + shift) & 2047U]++] = key;
        keys.swap(spare);
    }
}

/// What the ceiling reads and writes.
struct Ceiling {
    float* weights;
    float* moments;
    int dim;
    std::int64_t rows;
    const std::vector<std::int64_t>* ids;
    const float* gradient;
    std::int64_t bags;
    std::vector<std::uint64_t> keys;
    std::vector<std::uint64_t> spare;

    void run() {
        for (std::size_t i = 0; i < keys.size(); ++i)
            keys[i] = static_cast<std::uint64_t>((*ids)[i]) << 32U | i;
        radix_sort(keys, spare, rows);
        Line sum{};
        for (std::int64_t i = 0; i < bags * dim; i += 16)
            sum += *reinterpret_cast<const Line*>(gradient + i);
        std::size_t distinct = 0;  // in place: the sorted rows once each
        for (const std::uint64_t key : keys)
            if (distinct == 0 || spare[distinct - 1] != key >> 32U) spare[distinct++] = key >> 32U;
        for (std::size_t i = 0; i < distinct; ++i) {
            if (i + 16 < distinct) {
                const auto ahead = static_cast<std::int64_t>(spare[i + 16]);
                shardwise_bench::prefetch(weights + ahead * dim, dim, 1);
                __builtin_prefetch(moments + ahead, 1, 3);
            }
            const auto row = static_cast<std::int64_t>(spare[i]);
            moments[row] += sum[0];
            for (int d = 0; d < dim; d += 16)
                *reinterpret_cast<Line*>(weights + row * dim + d) += sum;
        }
    }
};

/// Arguments: dim, ids a bag, 1 for Zipf.
void update(benchmark::State& state) {
    using Layer = shardwise::EmbeddingLayer<shardwise::Sharding<shardwise::Table>,
                                            shardwise::Optimizer<shardwise::RowwiseAdagrad<>>>;
    const int dim = static_cast<int>(state.range(0));
    const std::int64_t bag = state.range(1);
    const std::int64_t rows = (table_mib << 20U) / 4 / dim;
    const std::int64_t bags = 200'000 / bag;
    shardwise::JaggedBatch<std::int64_t> batch;
    batch.samples = bags;
    batch.features = 1;
    batch.values = shardwise_bench::make_ids(bags * bag, rows, state.range(2) != 0);
    if (bag != 1) batch.lengths.assign(static_cast<std::size_t>(bags), static_cast<std::int32_t>(bag));
    std::vector<std::int64_t> distinct = batch.values;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    shardwise::HugePageResource memory;
    shardwise::Buffer<float> gradient{memory};
    gradient.resize(static_cast<std::size_t>(bags * dim));
    std::fill_n(gradient.data(), gradient.size(), 1e-6F);

    shardwise::ThreadWorld world{shardwise::Topology{}};
    world.run([&](shardwise::ThreadCommunicator& comm) {
        Layer layer{comm, {{.name = "table", .rows = rows, .dim = dim, .features = {}, .sharding = ""}}};
        Ceiling ceiling{.weights = nullptr,
                        .moments = nullptr,
                        .dim = dim,
                        .rows = rows,
                        .ids = &batch.values,
                        .gradient = gradient.data(),
                        .bags = bags,
                        .keys = std::vector<std::uint64_t>(batch.values.size()),
                        .spare = std::vector<std::uint64_t>(batch.values.size())};
        layer.for_each_shard([&](const shardwise::ShardView& shard, const auto&) {
            ceiling.weights = shard.weights;
            ceiling.moments = shard.row_state;
        });
        const shardwise::MatrixView<const float> view{gradient.data(), bags, dim};
        static_cast<void>(layer.forward(batch.view()));
        layer.backward(view);  // allocates what a step needs
        Best kernel;
        Best best_ceiling;
        for ([[maybe_unused]] auto iteration : state) {
            static_cast<void>(layer.forward(batch.view()));
            const double time = shardwise_bench::seconds([&] { layer.backward(view); });
            state.SetIterationTime(time);
            kernel.add(time);
            best_ceiling.add(shardwise_bench::seconds([&] { ceiling.run(); }));
        }
        const std::int64_t row_bytes = 4 * dim;
        shardwise_bench::report(state,
                                static_cast<std::int64_t>(distinct.size()) * 2 * (row_bytes + 4) + bags * row_bytes,
                                kernel, best_ceiling);
        state.counters["distinct"] = static_cast<double>(distinct.size());
    });
}

BENCHMARK(update)
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
