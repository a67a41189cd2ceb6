// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A flush of an all-to-all, and the sum of a vector along the tree, over 4 ranks that are threads of this process (2
// hosts of 2). The flush's ceiling copies the same messages once each, with as many threads as there are cores (4 at
// most); bytes are those that leave a rank, summed over the ranks.
//
//   bench_exchange [--benchmark_filter=...] [--benchmark_format=json]

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "shardwise/comm/all_reduce.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "support.hpp"

namespace {

using shardwise_bench::Times;

constexpr int ranks = 4;
constexpr int repetitions = 16;

shardwise::ThreadWorld make_world() {
    return shardwise::ThreadWorld{shardwise::Topology{.hosts = 2, .ranks_per_host = 2}};
}

/// Seconds a repetition: between two barriers, on rank 0.
template <class Run>
double timed(shardwise::ThreadCommunicator& comm, Run run) {
    run();
    shardwise::barrier(comm);
    const double time = shardwise_bench::seconds([&] {
        for (int i = 0; i < repetitions; ++i)
            run();
        shardwise::barrier(comm);
    });
    return time / repetitions;
}

/// Seconds that the cores together take to copy `messages` messages.
double copy_time(std::int64_t messages, std::size_t bytes) {
    const int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, unsigned{ranks}));
    std::barrier<> line{threads};
    std::vector<double> times(static_cast<std::size_t>(threads));
    std::vector<std::thread> crew;
    for (int t = 0; t < threads; ++t)
        crew.emplace_back([&, t] {
            const std::vector<std::byte> from(bytes, std::byte{1});
            std::vector<std::byte> to(bytes);
            line.arrive_and_wait();
            times[static_cast<std::size_t>(t)] = shardwise_bench::seconds([&] {
                for (int i = 0; i < repetitions; ++i)
                    for (std::int64_t m = t; m < messages; m += threads) {
                        std::memcpy(to.data(), from.data(), bytes);
                        benchmark::DoNotOptimize(to.data());
                        benchmark::ClobberMemory();
                    }
            });
        });
    for (auto& thread : crew)
        thread.join();
    return *std::max_element(times.begin(), times.end()) / repetitions;
}

/// Argument: bytes of each message, one a pair of ranks.
void flush(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    auto world = make_world();
    Times kernel;
    Times ceiling;
    for ([[maybe_unused]] auto iteration : state) {
        double time = 0.0;
        world.run([&](shardwise::ThreadCommunicator& comm) {
            const std::vector<std::byte> send(bytes, std::byte{1});
            std::vector<shardwise::Buffer<std::byte>> receive(ranks);
            std::vector<shardwise::OutMessage> out;
            std::vector<shardwise::InMessage> in;
            for (int peer = 0; peer < ranks; ++peer) {
                if (peer == comm.rank()) continue;
                out.push_back({.to = peer, .bytes = send, .payload = static_cast<std::int64_t>(bytes)});
                in.push_back({.from = peer,
                              .into = &receive[static_cast<std::size_t>(peer)],
                              .expected = static_cast<std::int64_t>(bytes)});
            }
            const double mine = timed(comm, [&] { comm.wait(comm.post({.step = "flush", .flight = 0}, out, in)); });
            if (comm.rank() == 0) time = mine;
        });
        state.SetIterationTime(time);
        kernel.add(time);
        ceiling.add(copy_time(ranks * (ranks - 1), bytes));
    }
    shardwise_bench::report(state, ranks * (ranks - 1) * state.range(0), kernel, ceiling);
}
BENCHMARK(flush)
    ->ArgName("bytes")
    ->RangeMultiplier(8)
    ->Range(64, 4 << 20)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

/// Argument: bytes of each rank's vector.
void tree_all_reduce(benchmark::State& state) {
    const auto count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
    auto world = make_world();
    for ([[maybe_unused]] auto iteration : state) {
        double time = 0.0;
        world.run([&](shardwise::ThreadCommunicator& comm) {
            std::vector<float> values(count, 1e-9F);
            shardwise::TreeAllReduce all_reduce{comm};
            const double mine = timed(comm, [&] { all_reduce(values); });
            if (comm.rank() == 0) time = mine;
        });
        state.SetIterationTime(time);
    }
    // Every rank sends half of its vector inside its host twice, and a quarter across hosts twice.
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * ranks * state.range(0) * 3 / 2);
}
BENCHMARK(tree_all_reduce)
    ->ArgName("bytes")
    ->RangeMultiplier(8)
    ->Range(4 << 10, 16 << 20)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
