// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The pooled lookup of the host, alone and as the forward pass of a layer on one rank, on 8 tables and 8192 samples
// unless told otherwise. Its ceiling reads the same rows and writes as large an output to the same place, with huge
// pages and the best of several prefetch distances, in the same process, run by run.
//
//   bench_lookup [--tables=N] [--rows=N] [--samples=N] [--quick=1] [--ceiling=0] [--benchmark_filter=...]
//                [--benchmark_format=json]

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/prefetch.hpp"
#include "shardwise/embedding/kernels/lookup.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/sharding/table.hpp"
#include "support.hpp"

namespace {

using shardwise_bench::Line;
using shardwise_bench::line_floats;
using shardwise_bench::Shape;
using shardwise_bench::Times;
using shardwise_bench::TimesAhead;

shardwise_bench::Sizes sizes;
bool with_ceiling = true;  // without: only the kernel, again and again, with whatever caches it leaves itself

/// All tables of one dim, kept from benchmark to benchmark.
const float* tables(int dim) {
    static int last = 0;
    static shardwise::HugePageResource memory;
    static shardwise::Buffer<float> weights;
    if (dim != last) {
        weights.release();
        weights.on(memory).resize(static_cast<std::size_t>(sizes.tables * sizes.rows * dim));
        for (std::size_t i = 0; i < weights.size(); ++i)
            weights[i] = static_cast<float>(i & 1023U) * 0.001F;
        last = dim;
    }
    return weights.data();
}

/// Reads each row once and, if `Write`, writes each output once; sums all rows of a bag into a few registers.
template <int Dim, bool Write, bool InTurns>
void read_rows(const shardwise::LookupArguments& a, const shardwise_bench::Ahead& ahead) {
    const float* now = a.table;
    const float* next = a.table;
    const auto row = [&](std::int64_t of) { return now + static_cast<std::int64_t>(a.rows[of]) * Dim; };
    std::int64_t i = 0;
    Line all{};
    for (std::int64_t bag = 0; bag < a.bags; ++bag) {
        Line sum[4] = {};
        for (const std::int64_t end = i + (a.lengths == nullptr ? 1 : a.lengths[bag]); i < end; ++i) {
            shardwise_bench::prefetch(ahead, i, a.ids, Dim, row);
            const float* const from = row(i);
            for (int d = 0; d < Dim; d += line_floats)
                sum[d / line_floats % 4] += *reinterpret_cast<const Line*>(from + d);
            if constexpr (InTurns) {
                now = next;
                next = a.table + shardwise::zero_after(from + Dim - 1);
            }
        }
        if constexpr (Write) {
            for (int d = 0; d < Dim; d += line_floats)
                *reinterpret_cast<Line*>(a.out + bag * Dim + d) = sum[d / line_floats % 4];
        } else {
            all += sum[0] + sum[1] + sum[2] + sum[3];
        }
    }
    if constexpr (!Write) {
        benchmark::DoNotOptimize(&all);
        benchmark::ClobberMemory();
    }
}

template <int Dim, bool Write>
void read_rows(const shardwise::LookupArguments& a, const shardwise_bench::Ahead& ahead) {
    if (ahead.in_turns) return read_rows<Dim, Write, true>(a, ahead);
    read_rows<Dim, Write, false>(a, ahead);
}

template <bool Write>
double time_of_reading(const std::vector<shardwise::LookupArguments>& arguments, const shardwise_bench::Ahead& ahead) {
    return shardwise_bench::seconds([&] {
        for (const auto& a : arguments) {
            if (a.dim == 16) read_rows<16, Write>(a, ahead);
            if (a.dim == 64) read_rows<64, Write>(a, ahead);
            if (a.dim == 128) read_rows<128, Write>(a, ahead);
        }
    });
}

/// What the kernel and its ceiling read and write, a table each.
struct Problem {
    Problem(const Shape& shape, const std::vector<const float*>& of)
        : lengths(static_cast<std::size_t>(shape.samples), shape.bag),
          local(static_cast<std::size_t>(shape.tables * shape.ids())) {
        const auto batch = shape.batch();
        for (std::size_t i = 0; i < local.size(); ++i)
            local[i] = static_cast<shardwise::LocalRow>(batch.values[i]);
        for (int t = 0; t < shape.tables; ++t)
            arguments.push_back({.table = of[static_cast<std::size_t>(t)],
                                 .dim = shape.dim,
                                 .bags = shape.samples,
                                 .ids = shape.ids(),
                                 .lengths = shape.bag == 1 ? nullptr : lengths.data(),
                                 .rows = local.data() + t * shape.ids(),
                                 .weights = nullptr,
                                 .out = nullptr});
    }
    /// Where outputs go, table after table.
    void write_to(float* out) {
        for (auto& a : arguments) {
            a.out = out;
            out += a.bags * a.dim;
        }
    }
    std::vector<std::int32_t> lengths;
    std::vector<shardwise::LocalRow> local;
    std::vector<shardwise::LookupArguments> arguments;
};

std::int64_t bytes_of(const Shape& shape) {
    const std::int64_t row = 4 * shape.dim;
    return shape.tables * (shape.ids() * (row + 4) + shape.samples * (row + (shape.bag == 1 ? 0 : 4)));
}

void lookup(benchmark::State& state) {
    const Shape shape{state, sizes};
    std::vector<const float*> of;
    for (int t = 0; t < shape.tables; ++t)
        of.push_back(tables(shape.dim) + t * shape.rows * shape.dim);
    Problem problem{shape, of};
    shardwise::HugePageResource memory;
    shardwise::Buffer<float> out{memory};
    out.assign_zero(static_cast<std::size_t>(shape.samples * shape.width()));
    problem.write_to(out.data());
    Times kernel;
    TimesAhead ceiling;
    TimesAhead bare;
    const auto run = [&] {
        for (const auto& a : problem.arguments)
            shardwise::pooled_lookup(a);
    };
    for ([[maybe_unused]] auto iteration : state) {
        run();  // before all that is compared, so that each finds the same in the caches
        const double time = shardwise_bench::seconds(run);
        state.SetIterationTime(time);
        kernel.add(time);
        if (!with_ceiling) continue;
        ceiling.add([&](const auto& ahead) {
            run();
            return time_of_reading<true>(problem.arguments, ahead);
        });
    }
    // Behind all others: it writes nothing, and what a kernel then writes was not in the caches.
    for (std::size_t i = 0; with_ceiling && i < kernel.all().size(); ++i)
        bare.add([&](const auto& ahead) { return time_of_reading<false>(problem.arguments, ahead); });
    shardwise_bench::report(state, bytes_of(shape), kernel, ceiling.best());
    if (with_ceiling)
        state.counters["bare_GB_per_s"] =
            static_cast<double>(shape.tables * shape.ids() * 4 * shape.dim) / bare.best().median() * 1e-9;
}

/// From the user's 64-bit ids to the output matrix: ids checked, rows looked up, features put side by side.
void forward(benchmark::State& state) {
    using Layer = shardwise::EmbeddingLayer<shardwise::Sharding<shardwise::Table>>;
    const Shape shape{state, sizes};
    const auto batch = shape.batch();
    shardwise::ThreadWorld world{shardwise::Topology{}};
    world.run([&](shardwise::ThreadCommunicator& comm) {
        Layer layer{comm, shape.configs()};
        std::vector<const float*> of;
        layer.for_each_shard([&](const shardwise::ShardView& shard, const auto&) { of.push_back(shard.weights); });
        Problem problem{shape, of};
        const auto run = [&] { return layer.forward(batch.view()); };
        static_cast<void>(run());  // allocates what a step needs
        Times kernel;
        TimesAhead ceiling;
        for ([[maybe_unused]] auto iteration : state) {
            static_cast<void>(run());  // before all that is compared, so that each finds the same in the caches
            const double time = shardwise_bench::seconds([&] { benchmark::DoNotOptimize(run().data()); });
            state.SetIterationTime(time);
            kernel.add(time);
            if (!with_ceiling) continue;
            ceiling.add([&](const auto& ahead) {
                problem.write_to(const_cast<float*>(run().data()));  // over what is not looked at
                return time_of_reading<true>(problem.arguments, ahead);
            });
        }
        shardwise_bench::report(state, bytes_of(shape), kernel, ceiling.best());
    });
}

}  // namespace

int main(int argc, char** argv) {
    sizes = shardwise_bench::take_sizes(argc, argv);
    const bool quick = shardwise_bench::take_number(argc, argv, "--quick=", 0) != 0;
    with_ceiling = shardwise_bench::take_number(argc, argv, "--ceiling=", 1) != 0;
    const shardwise_bench::Output output{
        argc, argv,
        "time: the median run of all tables' lookups (" + sizes.text() +
            "); forward: of a layer's forward pass over them.\n"
            "GB/s: rows read, outputs written, and 4 bytes for each id and length.\n"
            "of_ceiling: the time of a bare loop that reads and sums the same rows and writes as much, over that time; "
            "1 is as fast, more is faster (quartiles of runs side by side: the ratio of medians may lie outside).\n"
            "bare_GB_per_s: that loop where it writes nothing.",
        shardwise_bench::sizes_help() + "  --ceiling=0   the kernel alone, without the bare loops (1)\n" +
            shardwise_bench::quick_help};
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    shardwise_bench::register_shapes("lookup", lookup, quick);
    shardwise_bench::register_shapes("forward", forward, quick);
    return output.run() ? 0 : 2;
}
