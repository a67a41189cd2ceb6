// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A training step of the model of examples/train_dlrm, on ranks that are threads of this process: 13 dense features, 26
// tables, one Zipf id each, 2048 samples a rank, RowwiseAdagrad; the ids of the next batch travel ahead. A step is
// timed by the slowest rank, and split as `train_dlrm --json` splits it (mean over ranks): compute, exchange (and what
// of it is exposed: waiting) and the sum of dense gradients. Batches lie in memory.
//
//   bench_step [--rows=N] [--sharding=row] [--quick=1] [--benchmark_filter=...] [--benchmark_format=json]

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "model.hpp"
#include "options.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/data/generator.hpp"
#include "support.hpp"

namespace {

using shardwise_bench::Times;
using train_dlrm::Model;

std::int64_t rows = 100'000;  // a table
std::string sharding;

/// Where a step's seconds went on one rank: in all, in exchanges, of these where nothing was computed meanwhile, and in
/// the sum of dense gradients.
struct Parts {
    double total;
    double exchange;
    double exposed;
    double reduction;
};

/// Runs `count` steps on one rank. \returns each but the first two, which allocate
std::vector<Parts> run_steps(const train_dlrm::Options& options, shardwise::CommunicatorRef comm, std::int64_t count) {
    Model model{options, comm};
    shardwise::ClickGenerator generator{{.rows = std::vector<std::int64_t>(train_dlrm::categories, rows),
                                         .dense_columns = train_dlrm::dense_features,
                                         .slice = {.batch = options.batch, .rank = comm.rank(), .ranks = comm.size()}}};
    std::array<shardwise::ClickBatch, 4> batches;
    for (auto& batch : batches)
        generator.next(batch);
    const std::int64_t global_samples = options.batch * comm.size();

    std::vector<Parts> steps;
    model.start(batches[0]);
    for (std::size_t step = 0; step < static_cast<std::size_t>(count) + 2; ++step) {
        const shardwise::ClickBatch& batch = batches[step % batches.size()];
        const train_dlrm::LayerSeconds before = model.layer_seconds();
        const double reduction = model.reduction_seconds();
        const double total = shardwise_bench::seconds([&] {
            model.start(batches[(step + 1) % batches.size()]);
            const std::span<const float> logits = model.forward(batch);
            benchmark::DoNotOptimize(model.learn(batch, logits, {.world = global_samples, .group = global_samples}));
        });
        train_dlrm::LayerSeconds now = model.layer_seconds();
        now -= before;
        steps.push_back({total, now.exchange, now.exposed, model.reduction_seconds() - reduction});
    }
    model.drop();
    steps.erase(steps.begin(), steps.begin() + 2);
    return steps;
}

/// Arguments: ranks, dim, and how sums are taken: 0 Tree and single products, 1 WideTree and products in blocks (what
/// train_dlrm does unless told otherwise), 2 WideTree and wide products.
void step(benchmark::State& state) {
    const int ranks = static_cast<int>(state.range(0));
    train_dlrm::Options options;
    options.ranks = ranks;
    options.batch = 2048;
    options.rows = {rows};
    options.dim = static_cast<int>(state.range(1));
    options.bottom = {512, 256, 64, state.range(1)};
    options.top = {512, 256, 1};
    options.policies.sharding = sharding;
    options.policies.order = state.range(2) != 0 ? "wide_tree" : "tree";
    options.policies.precision = state.range(2) == 2 ? "wide" : "";

    shardwise::ThreadWorld world{shardwise::Topology{.hosts = 1, .ranks_per_host = ranks}};
    std::vector<std::vector<Parts>> parts(static_cast<std::size_t>(ranks));
    const auto count = static_cast<std::int64_t>(state.max_iterations);
    world.run([&](shardwise::ThreadCommunicator& comm) {
        parts[static_cast<std::size_t>(comm.rank())] = run_steps(options, comm, count);
    });

    Times total;
    Times compute;
    Times exchange;
    Times exposed;
    Times reduction;
    std::size_t at = 0;
    for ([[maybe_unused]] auto iteration : state) {
        Parts sum{};
        double slowest = 0.0;
        for (const auto& rank : parts) {
            slowest = std::max(slowest, rank[at].total);
            sum.total += rank[at].total / ranks;
            sum.exchange += rank[at].exchange / ranks;
            sum.exposed += rank[at].exposed / ranks;
            sum.reduction += rank[at].reduction / ranks;
        }
        ++at;
        state.SetIterationTime(slowest);
        total.add(slowest);
        compute.add(sum.total - sum.exchange - sum.reduction);
        exchange.add(sum.exchange);
        exposed.add(sum.exposed);
        reduction.add(sum.reduction);
    }
    state.SetItemsProcessed(count * options.batch * ranks);
    const auto milliseconds = [&](const char* name, double time) { state.counters[name] = time * 1e3; };
    milliseconds("median_ms", total.median());
    milliseconds("low_ms", total.quantile(0.25));
    milliseconds("high_ms", total.quantile(0.75));
    milliseconds("compute_ms", compute.median());
    milliseconds("exchange_ms", exchange.median());
    milliseconds("exposed_exchange_ms", exposed.median());
    milliseconds("dense_reduction_ms", reduction.median());
}

}  // namespace

int main(int argc, char** argv) {
    rows = shardwise_bench::take_number(argc, argv, "--rows=", rows);
    sharding = shardwise_bench::take_argument(argc, argv, "--sharding=", "row");
    const bool quick = shardwise_bench::take_number(argc, argv, "--quick=", 0) != 0;
    const shardwise_bench::Output output{argc, argv,
                                         "time: the median training step of the slowest rank; low_ms, high_ms: "
                                         "quartiles. The parts are means of ranks.\n"
                                         "sums: of dense products in float (0), in blocks (1, the default of "
                                         "train_dlrm), in double (2).",
                                         "  --rows=N          rows of each table (" + std::to_string(rows) +
                                             ")\n  --sharding=NAME   where rows are, as train_dlrm takes it (row)\n" +
                                             shardwise_bench::quick_help};
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    for (const int ranks : {1, 2})
        for (const int dim : {16, 64, 128})
            for (const int sums : {0, 1, 2})
                benchmark::RegisterBenchmark("step", step)
                    ->ArgNames({"ranks", "dim", "sums"})
                    ->Args({ranks, dim, sums})
                    ->Iterations(quick ? 2 : 30)
                    ->UseManualTime()
                    ->Unit(benchmark::kMillisecond);
    return output.run() ? 0 : 2;
}
