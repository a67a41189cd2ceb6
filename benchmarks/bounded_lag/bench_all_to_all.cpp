// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// BoundedAllToAllV over the processes of an MPI job, beside MPI_Alltoallv of the same blocks, the one to oneself
// included; in the same job, run by run. (Bounded lag, Figure 6)
//
//   slots     one-sided, in memory that the host's ranks share; k apart
//   windows   one-sided, over MPI_Put: every rank pretends to be a host of its own; k = 0
//   messages  slots over messages of a communicator; k = 0
//   fifo      k + 1 MPI_Ialltoallv under way, with as many receive buffers
//
// `wait` of BoundedAllToAllV shows blocks where they arrived, MPI_Alltoallv's lie in a receive buffer: each as its
// users get them. Both are written once by the sender's processor or MPI; nobody copies them again.
//
//   mpirun -n 2 bench_all_to_all [--quick=1] [--benchmark_filter=...] [--benchmark_format=json]

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <unistd.h>

#include "shardwise/comm/bounded_all_to_all.hpp"
#include "shardwise/comm/message_slots.hpp"
#include "shardwise/comm/mpi.hpp"
#include "shardwise/comm/mpi_slots.hpp"
#include "shardwise/comm/slot_counts.hpp"
#include "support.hpp"

namespace {

namespace sw = shardwise;
using shardwise_bench::Times;

/// The blocks of a rank, and what each exchange has to bring.
class Blocks {
  public:
    Blocks(int rank, int ranks, std::int64_t bytes)
        : ranks_{ranks}, bytes_{bytes}, send_(static_cast<std::size_t>(ranks * bytes)) {
        for (int peer = 0; peer < ranks; ++peer) {
            std::memset(send_.data() + peer * bytes, of(rank, peer), static_cast<std::size_t>(bytes));
            spans_.emplace_back(send_.data() + peer * bytes, static_cast<std::size_t>(bytes));
        }
    }
    [[nodiscard]] const std::vector<std::span<const std::byte>>& spans() const { return spans_; }
    [[nodiscard]] const std::byte* data() const { return send_.data(); }
    [[nodiscard]] std::int64_t bytes() const { return bytes_; }
    [[nodiscard]] int ranks() const { return ranks_; }
    /// \throws Mismatch unless a block has come from that rank
    void check(int rank, int from, const std::byte* block) const {
        for (std::int64_t i = 0; i < bytes_; ++i)
            if (block[i] != std::byte{static_cast<unsigned char>(of(from, rank))})
                throw sw::Mismatch{"another block arrived than was sent"};
    }

  private:
    [[nodiscard]] static int of(int from, int to) { return 1 + from * 16 + to; }
    int ranks_;
    std::int64_t bytes_;
    std::vector<std::byte> send_;
    std::vector<std::span<const std::byte>> spans_;
};

/// An exchange by MPI, with a receive buffer of its own.
class Raw {
  public:
    explicit Raw(const Blocks& blocks)
        : blocks_{&blocks},
          receive_(static_cast<std::size_t>(blocks.ranks() * blocks.bytes())),
          counts_(static_cast<std::size_t>(blocks.ranks()), static_cast<int>(blocks.bytes())) {
        for (int peer = 0; peer < blocks.ranks(); ++peer)
            places_.push_back(static_cast<int>(peer * blocks.bytes()));
    }
    void run() {
        MPI_Alltoallv(blocks_->data(), counts_.data(), places_.data(), MPI_BYTE, receive_.data(), counts_.data(),
                      places_.data(), MPI_BYTE, MPI_COMM_WORLD);
    }
    void start() {
        MPI_Ialltoallv(blocks_->data(), counts_.data(), places_.data(), MPI_BYTE, receive_.data(), counts_.data(),
                       places_.data(), MPI_BYTE, MPI_COMM_WORLD, &request_);
    }
    void wait() { MPI_Wait(&request_, MPI_STATUS_IGNORE); }
    void check(int rank) const {
        for (int peer = 0; peer < blocks_->ranks(); ++peer)
            blocks_->check(rank, peer, receive_.data() + peer * blocks_->bytes());
    }

  private:
    const Blocks* blocks_;
    std::vector<std::byte> receive_;
    std::vector<int> counts_;
    std::vector<int> places_;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

/// Many exchanges, k + 1 of them under way. \param start, wait  of the one with that number
template <class Start, class Wait>
void go_on(std::int64_t count, int k, Start start, Wait wait) {
    std::int64_t started = 0;
    for (std::int64_t waited = 0; waited < count; ++waited) {
        while (started < count && started - waited <= k)
            start(started++);
        wait(waited);
    }
}

/// How often a block of so many bytes is exchanged in a run: about 20 ms.
std::int64_t repetitions_of(std::int64_t bytes) {
    return std::clamp<std::int64_t>((std::int64_t{32} << 20) / (bytes + 16384), 1, 2000);
}

/// Whether slots and buffers of that size leave half of the memory free, as rank 0 sees it.
bool fits(std::int64_t bytes, int ranks, int slots) {
    const double have = static_cast<double>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    int good = static_cast<double>(bytes) * ranks * ranks * (slots + 2) < have / 2 ? 1 : 0;
    MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return good != 0;
}

struct Way {
    const char* name;
    int k;
};

class Bench {
  public:
    explicit Bench(sw::MpiCommunicator& comm) : comm_{&comm} {}

    /// Arguments: ranks, bytes of each block, exchanges one behind the other. Runs as often on every rank.
    void operator()(benchmark::State& state, const Way& way) {
        const int ranks = comm_->size();
        const std::int64_t bytes = state.range(1);
        const std::int64_t count = state.range(2);
        const std::string name = way.name;
        if (!fits(bytes, ranks, sw::exchange_slots(way.k)))
            return state.SkipWithError("takes more than half the memory");
        const Blocks blocks{comm_->rank(), ranks, bytes};
        Raw raw{blocks};
        std::unique_ptr<sw::MpiSlots> own;
        std::unique_ptr<sw::MpiCommunicator> below;
        std::unique_ptr<sw::MessageSlots> over;
        std::optional<sw::BoundedAllToAllV<std::byte>> exchange;
        std::deque<Raw> fifo;
        if (name == "messages") {
            below = std::make_unique<sw::MpiCommunicator>(sw::MpiOptions{.hosts = 1});
            over = std::make_unique<sw::MessageSlots>(*below);
            exchange.emplace(*over, way.k, bytes);
        } else if (name == "fifo") {
            for (int i = 0; i <= way.k; ++i)
                fifo.emplace_back(blocks);
        } else {
            own = std::make_unique<sw::MpiSlots>(sw::MpiOptions{.hosts = name == "windows" ? ranks : 1});
            exchange.emplace(*own, way.k, bytes);
        }
        const auto buffer = [&](std::int64_t number) -> Raw& {
            return fifo[static_cast<std::size_t>(number % (way.k + 1))];
        };
        const auto exchanges = [&](std::int64_t times, bool check) {
            if (!fifo.empty()) {
                go_on(
                    times, way.k, [&](std::int64_t i) { buffer(i).start(); },
                    [&](std::int64_t i) {
                        buffer(i).wait();
                        if (check) buffer(i).check(comm_->rank());
                    });
                return;
            }
            go_on(
                times, way.k, [&](std::int64_t) { exchange->start(blocks.spans()); },
                [&](std::int64_t) {
                    const auto arrived = exchange->wait();
                    for (int peer = 0; check && peer < ranks; ++peer)
                        blocks.check(comm_->rank(), peer, arrived[static_cast<std::size_t>(peer)].data());
                });
        };
        const auto run_raw = [&](bool check) {
            for (std::int64_t i = 0; i < count; ++i)
                raw.run();
            if (check) raw.check(comm_->rank());
        };
        const auto run = [&](bool check) { exchanges(count, check); };
        exchanges(sw::exchange_slots(way.k), true);  // all slots and buffers were touched
        run_raw(true);
        Times times;
        Times ceiling;
        for ([[maybe_unused]] auto iteration : state) {
            const bool odd = times.all().size() % 2 != 0;  // neither is always the one that comes first
            if (!odd) times.add(timed(run));
            ceiling.add(timed(run_raw));
            if (odd) times.add(timed(run));
            state.SetIterationTime(times.all().back());
        }
        shardwise_bench::report(state, ranks * (ranks - 1) * bytes * count, times, ceiling);
        const double calls = static_cast<double>(count);
        state.counters["us"] = times.median() * 1e6 / calls;
        state.counters["raw_us"] = ceiling.median() * 1e6 / calls;
        MPI_Barrier(MPI_COMM_WORLD);  // nobody frees slots that others still write
    }

  private:
    /// Of the slowest rank, between two barriers.
    template <class Run>
    static double timed(Run run) {
        MPI_Barrier(MPI_COMM_WORLD);
        double time = shardwise_bench::seconds([&] { run(false); });
        MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return time;
    }
    sw::MpiCommunicator* comm_;
};

void register_all(Bench bench, int ranks, bool quick) {
    static constexpr Way ways[] = {{"slots", 0}, {"windows", 0}, {"messages", 0}, {"fifo", 0}, {"slots", 1},
                                   {"slots", 2}, {"slots", 4},   {"fifo", 1},     {"fifo", 2}, {"fifo", 4}};
    const auto add = [&](const Way& way, const char* cut, std::int64_t bytes, std::int64_t count, int runs) {
        const std::string name = std::string{cut} + "/" + way.name + "/k:" + std::to_string(way.k);
        benchmark::RegisterBenchmark(name.c_str(), [bench, way](benchmark::State& state) mutable { bench(state, way); })
            ->ArgNames({"ranks", "bytes", "count"})
            ->Args({ranks, bytes, count})
            ->Iterations(quick ? 2 : runs)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
    };
    const std::int64_t largest = quick ? 4096 : std::int64_t{256} << 20;
    for (std::int64_t bytes = 1; bytes <= largest; bytes *= 4)
        for (const Way& way : ways) {
            const bool alone = std::string{way.name} != "slots" || way.k != 0;
            if (bytes > (std::int64_t{64} << 20) && alone) continue;
            add(way, "sizes", bytes, repetitions_of(bytes), bytes > (1 << 20) ? 7 : 15);
        }
    for (std::int64_t count = 1; count <= (quick ? 100 : 100'000); count *= 10)
        for (const Way& way : ways)
            if (way.k == 0) add(way, "counts", 32768, count, count >= 10'000 ? 5 : 15);
}

}  // namespace

int main(int argc, char** argv) {
    return sw::run_mpi({.hosts = 1}, [&](sw::MpiCommunicator& comm) {
        const bool quick = shardwise_bench::take_number(argc, argv, "--quick=", 0) != 0;
        if (comm.rank() != 0) static_cast<void>(shardwise_bench::take_argument(argc, argv, "--benchmark_out=", ""));
        const shardwise_bench::Output output{
            argc, argv,
            "time: the median run of all its exchanges, on the slowest rank; us: of one of them; raw_us: of "
            "MPI_Alltoallv.\n"
            "of_ceiling: the time of MPI_Alltoallv, over that time; 1 is as fast (quartiles of runs side by side).",
            shardwise_bench::quick_help};
        benchmark::Initialize(&argc, argv);
        if (benchmark::ReportUnrecognizedArguments(argc, argv)) throw sw::BadInput{"see --help"};
        register_all(Bench{comm}, comm.size(), quick);
        if (!output.run(comm.rank() == 0)) throw sw::BadInput{shardwise_bench::nothing_matches};
    });
}
