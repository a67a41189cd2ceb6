// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// An all-to-all, and the sum of a vector along the tree, over ranks that are threads of this process. The ceiling of
// the all-to-all copies the same messages, from and to the same memory, with as many threads as there are cores, by
// memcpy or past the caches, whatever is faster; in the same process, run by run. Bytes are those that leave a rank,
// summed over the ranks.
//
//   bench_exchange [--quick=1] [--benchmark_filter=...] [--benchmark_format=json]

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "exchange.hpp"
#include "shardwise/comm/all_reduce.hpp"
#include "shardwise/comm/copy_message.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "support.hpp"

namespace {

using shardwise_bench::AllToAll;
using shardwise_bench::Times;

/// Seconds a repetition: between two barriers, on rank 0.
template <class Run>
double timed(shardwise::ThreadCommunicator& comm, int repetitions, Run run) {
    run();
    shardwise::barrier(comm);
    const double time = shardwise_bench::seconds([&] {
        for (int i = 0; i < repetitions; ++i)
            run();
        shardwise::barrier(comm);
    });
    return time / repetitions;
}

/// Seconds that the cores together take to copy all messages with `copy`.
template <class Copy>
double copy_time(std::deque<AllToAll>& messages, std::size_t bytes, int repetitions, Copy copy_one) {
    const int ranks = static_cast<int>(messages.size());
    const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, ranks);
    std::barrier<> line{threads};
    std::vector<double> times(static_cast<std::size_t>(threads));
    std::vector<std::thread> crew;
    for (int t = 0; t < threads; ++t)
        crew.emplace_back([&, t] {
            const auto copy = [&] {
                for (int to = t; to < ranks; to += threads)
                    for (int from = 0; from < ranks; ++from)
                        if (from != to)
                            copy_one(messages[static_cast<std::size_t>(to)].received(from),
                                     messages[static_cast<std::size_t>(from)].sent(to), bytes);
                benchmark::ClobberMemory();
            };
            copy();
            line.arrive_and_wait();
            times[static_cast<std::size_t>(t)] = shardwise_bench::seconds([&] {
                for (int i = 0; i < repetitions; ++i)
                    copy();
            });
        });
    for (auto& thread : crew)
        thread.join();
    return *std::max_element(times.begin(), times.end()) / repetitions;
}

/// Arguments: ranks, and bytes of each message, one a pair of ranks.
void exchange(benchmark::State& state) {
    const int ranks = static_cast<int>(state.range(0));
    const std::int64_t bytes = state.range(1);
    const int repetitions = shardwise_bench::repetitions_of(bytes);
    shardwise::ThreadWorld world{shardwise::Topology{.hosts = 1, .ranks_per_host = ranks}};
    std::deque<AllToAll> messages;
    for (int rank = 0; rank < ranks; ++rank)
        messages.emplace_back(rank, ranks, bytes);
    Times kernel;
    Times ceiling;
    for ([[maybe_unused]] auto iteration : state) {
        double time = 0.0;
        world.run([&](shardwise::ThreadCommunicator& comm) {
            const AllToAll& mine = messages[static_cast<std::size_t>(comm.rank())];
            const double seconds = timed(comm, repetitions, [&] { mine.run(comm); });
            if (comm.rank() == 0) time = seconds;
        });
        for (AllToAll& mine : messages)
            if (!mine.take()) state.SkipWithError("another message arrived than was sent");
        state.SetIterationTime(time);
        kernel.add(time);
        const auto size = static_cast<std::size_t>(bytes);
        ceiling.add(std::min(copy_time(messages, size, repetitions, std::memcpy),
                             copy_time(messages, size, repetitions, shardwise::detail::copy_message)));
    }
    shardwise_bench::report(state, ranks * (ranks - 1) * bytes, kernel, ceiling);
}

/// Over 2 hosts of 2 ranks. Argument: bytes of each rank's vector.
void tree_all_reduce(benchmark::State& state) {
    const auto count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
    constexpr int ranks = 4;
    shardwise::ThreadWorld world{shardwise::Topology{.hosts = 2, .ranks_per_host = 2}};
    Times times;
    for ([[maybe_unused]] auto iteration : state) {
        double time = 0.0;
        world.run([&](shardwise::ThreadCommunicator& comm) {
            std::vector<float> values(count, 1e-9F);
            shardwise::TreeAllReduce all_reduce{comm};
            const double mine = timed(comm, 16, [&] { all_reduce(values); });
            if (comm.rank() == 0) time = mine;
        });
        state.SetIterationTime(time);
        times.add(time);
    }
    // Every rank sends half of its vector inside its host twice, and a quarter across hosts twice.
    shardwise_bench::report(state, ranks * state.range(0) * 3 / 2, times, {});
}
BENCHMARK(tree_all_reduce)
    ->ArgName("bytes")
    ->RangeMultiplier(8)
    ->Range(4 << 10, 16 << 20)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace

int main(int argc, char** argv) {
    const bool quick = shardwise_bench::take_number(argc, argv, "--quick=", 0) != 0;
    const shardwise_bench::Output output{
        argc, argv,
        "time: the median exchange, every thread sending each other one a message of so many bytes; GB/s of all "
        "messages.\n"
        "of_ceiling: the time that as many copies take on all cores, over that time; 1 is as fast (quartiles of "
        "runs side by side).",
        shardwise_bench::quick_help};
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    shardwise_bench::register_exchanges("exchange", exchange, {2, 4}, quick);
    return output.run() ? 0 : 2;
}
