// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// An all-to-all over the processes of an MPI job. The ceiling is MPI_Alltoallv of the same messages, from and to the
// same memory; in the same job, run by run. Bytes are those that leave a rank, summed over the ranks; rank 0 alone
// reports.
//
//   mpirun -n 2 bench_exchange_mpi [--quick=1] [--benchmark_filter=...] [--benchmark_format=json]

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "exchange.hpp"
#include "shardwise/comm/mpi.hpp"
#include "support.hpp"

namespace {

using shardwise_bench::AllToAll;
using shardwise_bench::Times;

/// The same messages by MPI_Alltoallv: nothing to oneself, as in a round.
class RawAllToAll {
  public:
    RawAllToAll(AllToAll& messages, int rank, int ranks, std::int64_t bytes)
        : send_{messages.sent(0)},
          receive_{messages.received(0)},
          counts_(static_cast<std::size_t>(ranks), static_cast<int>(bytes)) {
        for (int peer = 0; peer < ranks; ++peer) {
            from_.push_back(static_cast<int>(messages.sent(peer) - send_));
            to_.push_back(static_cast<int>(messages.received(peer) - receive_));
        }
        counts_[static_cast<std::size_t>(rank)] = 0;
    }
    void run() {
        MPI_Alltoallv(send_, counts_.data(), from_.data(), MPI_BYTE, receive_, counts_.data(), to_.data(), MPI_BYTE,
                      MPI_COMM_WORLD);
    }

  private:
    const std::byte* send_;
    std::byte* receive_;
    std::vector<int> counts_;
    std::vector<int> from_;
    std::vector<int> to_;
};

/// Seconds a repetition: between two barriers, on this rank.
template <class Run>
double timed(int repetitions, Run run) {
    run();
    MPI_Barrier(MPI_COMM_WORLD);
    const double time = shardwise_bench::seconds([&] {
        for (int i = 0; i < repetitions; ++i)
            run();
        MPI_Barrier(MPI_COMM_WORLD);
    });
    return time / repetitions;
}

/// Arguments: ranks, and bytes of each message, one a pair of ranks. Runs as often on every rank.
void exchange(benchmark::State& state, shardwise::MpiCommunicator& comm) {
    const int ranks = comm.size();
    const std::int64_t bytes = state.range(1);
    const int repetitions = shardwise_bench::repetitions_of(bytes);
    AllToAll mine{comm.rank(), ranks, bytes};
    RawAllToAll raw{mine, comm.rank(), ranks, bytes};
    Times kernel;
    Times ceiling;
    for ([[maybe_unused]] auto iteration : state) {
        const auto measure = [&](Times& times, auto run) {
            times.add(timed(repetitions, run));
            if (!mine.take()) throw shardwise::Mismatch{"another message arrived than was sent"};
        };
        const bool odd = kernel.all().size() % 2 != 0;  // neither is always the one that comes first
        if (!odd) measure(kernel, [&] { mine.run(comm); });
        measure(ceiling, [&] { raw.run(); });
        if (odd) measure(kernel, [&] { mine.run(comm); });
        state.SetIterationTime(kernel.all().back());
    }
    shardwise_bench::report(state, ranks * (ranks - 1) * bytes, kernel, ceiling);
    state.counters["raw_ms"] = ceiling.median() * 1e3;
}

}  // namespace

int main(int argc, char** argv) {
    return shardwise::run_mpi({}, [&](shardwise::MpiCommunicator& comm) {
        const bool quick = shardwise_bench::take_number(argc, argv, "--quick=", 0) != 0;
        if (comm.rank() != 0) static_cast<void>(shardwise_bench::take_argument(argc, argv, "--benchmark_out=", ""));
        const shardwise_bench::Output output{argc, argv,
                                             "time: the median exchange, every process sending each other one a "
                                             "message of so many bytes; GB/s of all messages.\n"
                                             "of_ceiling: the time of MPI_Alltoallv, over that time; 1 is as fast "
                                             "(quartiles of runs side by side). raw_ms: that of MPI_Alltoallv.",
                                             shardwise_bench::quick_help};
        benchmark::Initialize(&argc, argv);
        if (benchmark::ReportUnrecognizedArguments(argc, argv)) throw shardwise::BadInput{"see --help"};
        shardwise_bench::register_exchanges(
            "exchange_mpi", [&](benchmark::State& state) { exchange(state, comm); }, {comm.size()}, quick);
        if (!output.run(comm.rank() == 0)) throw shardwise::BadInput{shardwise_bench::nothing_matches};
    });
}
