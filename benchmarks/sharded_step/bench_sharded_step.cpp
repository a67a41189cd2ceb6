// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A training step of embedding tables alone, over the processes of an MPI job: forward from a batch of ids, backward
// from a given gradient with the fused RowwiseAdagrad. 26 tables of 100,000 rows and 64 columns, 2048 samples a rank,
// unless told otherwise; rows of every table on all ranks, or whole tables on one each. A step begins behind a barrier,
// and is timed by the slowest rank; rank 0 alone reports.
//
//   mpirun -n 2 bench_sharded_step [--tables=N] [--rows=N] [--samples=N] [--dim=N] [--quick=1] [--benchmark_filter=...]
//                                  [--benchmark_format=json]

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "shardwise/comm/mpi.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "support.hpp"

namespace {

using shardwise_bench::Sizes;
using shardwise_bench::Times;

/// What all ranks step through in turn.
constexpr int batches = 4;

/// One rank's layer, and what it is given.
class Rank {
  public:
    Rank(shardwise::MpiCommunicator& comm, const Sizes& sizes, int dim, const std::string& sharding, int bag, bool zipf)
        : layer_{shardwise::make_layer(comm, tables_of(sizes, dim), {.shardings = {sharding}})} {
        for (int i = 0; i < batches; ++i) {
            shardwise::JaggedBatch<std::int64_t>& made = batches_.emplace_back();
            made.samples = sizes.samples;
            made.features = sizes.tables;
            made.values = shardwise_bench::make_ids(sizes.tables * sizes.samples * bag, sizes.rows, zipf,
                                                    static_cast<std::uint64_t>(1 + comm.rank() * batches + i));
            if (bag != 1) made.lengths.assign(static_cast<std::size_t>(sizes.tables * sizes.samples), bag);
        }
        gradient_.resize(static_cast<std::size_t>(sizes.samples * layer_->width()));
        std::fill_n(gradient_.data(), gradient_.size(), 1e-6F);
        learnt_ = {gradient_.data(), sizes.samples, layer_->width()};
    }

    void step() {
        benchmark::DoNotOptimize(layer_->forward(batches_[next_++ % batches]));
        layer_->backward({.pooled = learnt_});
    }

  private:
    static std::vector<shardwise::TableConfig> tables_of(const Sizes& sizes, int dim) {
        std::vector<shardwise::TableConfig> all;
        for (int t = 0; t < sizes.tables; ++t)
            all.push_back({.name = std::to_string(t), .rows = sizes.rows, .dim = dim, .features = {}, .sharding = ""});
        return all;
    }

    std::unique_ptr<shardwise::LayerBase> layer_;
    std::vector<shardwise::JaggedBatch<std::int64_t>> batches_;
    shardwise::HugePageResource memory_;
    shardwise::Buffer<float> gradient_{memory_};  // (samples, width)
    shardwise::MatrixView<const float> learnt_;
    std::size_t next_ = 0;
};

/// Seconds of a step: behind a barrier, of the slowest rank.
double step_of_all(Rank& rank) {
    MPI_Barrier(MPI_COMM_WORLD);
    double time = shardwise_bench::seconds([&] { rank.step(); });
    MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return time;
}

/// Arguments: ranks, ids a bag, 1 for Zipf. Runs as often on every rank.
void sharded_step(benchmark::State& state, shardwise::MpiCommunicator& comm, const Sizes& sizes, int dim,
                  const std::string& sharding) {
    Rank rank{comm, sizes, dim, sharding, static_cast<int>(state.range(1)), state.range(2) != 0};
    for (int i = 0; i < batches; ++i)  // allocates what a step needs
        step_of_all(rank);
    Times times;
    for ([[maybe_unused]] auto iteration : state) {
        times.add(step_of_all(rank));
        state.SetIterationTime(times.all().back());
    }
    state.counters["median_ms"] = times.median() * 1e3;
    state.counters["low_ms"] = times.quantile(0.25) * 1e3;
    state.counters["high_ms"] = times.quantile(0.75) * 1e3;
}

}  // namespace

int main(int argc, char** argv) {
    return shardwise::run_mpi({}, [&](shardwise::MpiCommunicator& comm) {
        const Sizes standard{.tables = 26, .rows = 100'000, .samples = 2048};
        const Sizes sizes = shardwise_bench::take_sizes(argc, argv, standard);
        const auto dim = static_cast<int>(shardwise_bench::take_number(argc, argv, "--dim=", 64));
        const bool quick = shardwise_bench::take_number(argc, argv, "--quick=", 0) != 0;
        if (comm.rank() != 0) static_cast<void>(shardwise_bench::take_argument(argc, argv, "--benchmark_out=", ""));
        const shardwise_bench::Output output{
            argc, argv,
            "time: the median step, forward and backward, of the slowest rank (" + sizes.text() + " a rank, " +
                std::to_string(dim) + " columns); low_ms, high_ms: quartiles.",
            shardwise_bench::sizes_help(standard) + "  --dim=N       columns (64)\n" + shardwise_bench::quick_help};
        benchmark::Initialize(&argc, argv);
        if (benchmark::ReportUnrecognizedArguments(argc, argv)) throw shardwise::BadInput{"see --help"};
        for (const char* sharding : {"row", "table"})
            for (const int bag : {1, 10})
                for (const int zipf : {0, 1})
                    benchmark::RegisterBenchmark(
                        (std::string{"sharded_step/"} + sharding).c_str(),
                        [&, sharding](benchmark::State& state) { sharded_step(state, comm, sizes, dim, sharding); })
                        ->ArgNames({"ranks", "bag", "zipf"})
                        ->Args({comm.size(), bag, zipf})
                        ->Iterations(quick ? 2 : 40)
                        ->UseManualTime()
                        ->Unit(benchmark::kMillisecond);
        if (!output.run(comm.rank() == 0)) throw shardwise::BadInput{shardwise_bench::nothing_matches};
    });
}
