// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The backward plan of a layer on one rank: gradients grouped by row, folded, and the fused RowwiseAdagrad, on 8 tables
// and 8192 samples unless told otherwise. Its ceiling reads and writes each touched row and its moment once, reads each
// bag's gradient once, and sorts the same ids by radix; in the same process, run by run.
//
//   bench_update [--tables=N] [--rows=N] [--samples=N] [--quick=1] [--ceiling=0] [--check=0] [--benchmark_filter=...]
//                [--benchmark_format=json]

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/core/buffer.hpp"
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
bool check = true;         // gradients for numbers that are not finite
bool with_ceiling = true;  // without: only forward and backward, again and again

using Keys = std::vector<std::uint64_t>;

/// A stable radix sort of (row << 32 | position) by row, with as few passes of at most 11 bits as the rows need.
void radix_sort(Keys& keys, Keys& spare, std::int64_t of) {
    const auto bits = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(of - 1)));
    const unsigned digits = (bits + 10) / 11;
    const unsigned width = digits == 0 ? 0 : (bits + digits - 1) / digits;
    const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
    std::array<std::array<std::uint32_t, 2048>, 3> offsets{};
    for (const std::uint64_t key : keys)
        for (unsigned digit = 0; digit < digits; ++digit)
            ++offsets[digit][key >> (32U + digit * width) & mask];
    for (unsigned digit = 0; digit < digits; ++digit) {
        std::uint32_t sum = 0;
        for (std::uint32_t& o : offsets[digit])
            sum += std::exchange(o, sum);
        for (const std::uint64_t key : keys)
            spare[offsets[digit][key >> (32U + digit * width) & mask]++] = key;
        keys.swap(spare);
    }
}

/// What the ceiling reads and writes of one table.
struct Ceiling {
    float* weights;
    float* moments;
    const std::int64_t* ids;
    const float* gradient;  // (samples, dim)
    Keys keys;
    Keys spare;

    void sort() {
        for (std::size_t i = 0; i < keys.size(); ++i)
            keys[i] = static_cast<std::uint64_t>(ids[i]) << 32U | i;
        radix_sort(keys, spare, sizes.rows);
    }
    void read_gradient(int dim) const {
        Line sum[16 / line_floats] = {};
        for (std::int64_t i = 0; i < sizes.samples * dim; i += 16)
            for (int d = 0; d < 16; d += line_floats)
                sum[d / line_floats] += *reinterpret_cast<const Line*>(gradient + i + d);
        benchmark::DoNotOptimize(&sum);
        benchmark::ClobberMemory();
    }
    /// The touched rows, once each, in place of the spare keys. \returns how many
    std::size_t find_distinct() {
        std::size_t distinct = 0;
        for (const std::uint64_t key : keys)
            if (distinct == 0 || spare[distinct - 1] != key >> 32U) spare[distinct++] = key >> 32U;
        return distinct;
    }
    void update_rows(std::size_t distinct, int dim, const shardwise_bench::Ahead& ahead) const {
        const Line change = Line{} + 1e-9F;
        const auto rows = static_cast<std::int64_t>(distinct);
        const auto of = [&](std::int64_t i) { return static_cast<std::int64_t>(spare[static_cast<std::size_t>(i)]); };
        for (std::int64_t i = 0; i < rows; ++i) {
            shardwise_bench::prefetch(ahead, i, rows, dim, [&](std::int64_t at) { return weights + of(at) * dim; });
            shardwise_bench::prefetch(ahead, i, rows, 1, [&](std::int64_t at) { return moments + of(at); });
            const std::int64_t row = of(i);
            moments[row] += change[0];
            for (int d = 0; d < dim; d += line_floats)
                *reinterpret_cast<Line*>(weights + row * dim + d) += change;
        }
    }
};

void update(benchmark::State& state) {
    using Layer = shardwise::EmbeddingLayer<shardwise::Sharding<shardwise::Table>,
                                            shardwise::Optimizer<shardwise::RowwiseAdagrad<>>>;
    const Shape shape{state, sizes};
    const auto batch = shape.batch();
    shardwise::HugePageResource memory;
    shardwise::Buffer<float> gradient{memory};
    gradient.resize(static_cast<std::size_t>(shape.samples * shape.width()));
    std::fill_n(gradient.data(), gradient.size(), 1e-6F);

    shardwise::ThreadWorld world{shardwise::Topology{}};
    world.run([&](shardwise::ThreadCommunicator& comm) {
        Layer layer{comm, shape.configs(), {.check_gradients = check}};
        std::vector<Ceiling> ceilings;
        const auto ids = static_cast<std::size_t>(shape.ids());
        layer.for_each_shard([&](const shardwise::ShardView& shard, const auto&) {
            const std::size_t t = ceilings.size();
            ceilings.push_back({.weights = shard.weights,
                                .moments = shard.row_state,
                                .ids = batch.values.data() + t * ids,
                                .gradient = gradient.data() + static_cast<std::int64_t>(t) * shape.samples * shape.dim,
                                .keys = Keys(ids),
                                .spare = Keys(ids)});
        });
        std::int64_t distinct = 0;
        for (Ceiling& ceiling : ceilings) {
            ceiling.sort();
            distinct += static_cast<std::int64_t>(ceiling.find_distinct());
        }
        const shardwise::MatrixView<const float> view{gradient.data(), shape.samples, shape.width()};
        static_cast<void>(layer.forward(batch.view()));
        layer.backward(view);  // allocates what a step needs
        Times kernel;
        Times step;  // forward and backward
        Times others;
        Times sorting;
        TimesAhead bare{shardwise_bench::plain_prefetches};
        for ([[maybe_unused]] auto iteration : state) {
            // everything that is timed comes behind a step and a forward pass, with what these leave in the caches
            double lookup = 0.0;
            const auto timed = [&](auto run) {
                static_cast<void>(layer.forward(batch.view()));
                layer.backward(view);
                lookup = shardwise_bench::seconds([&] { static_cast<void>(layer.forward(batch.view())); });
                return shardwise_bench::seconds(run);
            };
            const double time = timed([&] { layer.backward(view); });
            state.SetIterationTime(time);
            kernel.add(time);
            step.add(lookup + time);
            if (!with_ceiling) continue;
            double sort = 0.0;
            for (Ceiling& c : ceilings)
                sort += shardwise_bench::seconds([&] { c.sort(); });
            std::vector<std::size_t> touched;
            const double rest = timed([&] {
                for (Ceiling& c : ceilings) {
                    touched.push_back(c.find_distinct());
                    c.read_gradient(shape.dim);
                }
            });
            bare.add([&](const auto& ahead) {
                return timed([&] {
                    for (std::size_t t = 0; t < ceilings.size(); ++t)
                        ceilings[t].update_rows(touched[t], shape.dim, ahead);
                });
            });
            others.add(sort + rest);
            sorting.add(sort);
        }
        Times ceiling;
        for (std::size_t i = 0; i < others.all().size(); ++i)
            ceiling.add(others.all()[i] + bare.best().all()[i]);
        const std::int64_t row = 4 * shape.dim;
        shardwise_bench::report(state, distinct * 2 * (row + 4) + shape.samples * shape.tables * row, kernel, ceiling);
        state.counters["distinct"] = static_cast<double>(distinct);
        state.counters["step_ms"] = step.median() * 1e3;
        if (!with_ceiling) return;
        state.counters["sort_ms"] = sorting.median() * 1e3;
        state.counters["bare_GB_per_s"] = static_cast<double>(distinct * 2 * (row + 4)) / bare.best().median() * 1e-9;
    });
}

}  // namespace

int main(int argc, char** argv) {
    sizes = shardwise_bench::take_sizes(argc, argv);
    const bool quick = shardwise_bench::take_number(argc, argv, "--quick=", 0) != 0;
    check = shardwise_bench::take_number(argc, argv, "--check=", 1) != 0;
    with_ceiling = shardwise_bench::take_number(argc, argv, "--ceiling=", 1) != 0;
    const shardwise_bench::Output output{
        argc, argv,
        "time: the median backward pass (" + sizes.text() +
            "): gradients grouped by row, summed, RowwiseAdagrad.\n"
            "GB/s: each touched row and its moment read and written, and gradients read, once each.\n"
            "of_ceiling: the time of a bare loop that sorts the ids, and reads and writes each touched row once, over "
            "that time; 1 is as fast, more is faster (quartiles of runs side by side: the ratio of medians may lie "
            "outside).\nbare_GB_per_s: that loop without the sort; step_ms: forward and backward.",
        shardwise_bench::sizes_help() +
            "  --ceiling=0   the update alone, without the bare loops (1)\n"
            "  --check=0     without the look for gradients that are not finite (1)\n" +
            shardwise_bench::quick_help};
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    shardwise_bench::register_shapes("update", update, quick);
    return output.run() ? 0 : 2;
}
