// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include <mpi.h>

/// \file
/// Sends the rounds that exchange_schedule wrote, with garbage in them, and prints how long each took: over MPI, or
/// over the simulated network of SimGrid's SMPI. Plain MPI, so that nothing but the messages takes time.
///
///     replay FILE pair|post [REPETITIONS [ALL-REDUCE BYTES]]
///
/// pair: one partner after the other, as collectives that work pair by pair: partners are those whose number differs in
/// the same bits, where the ranks are a power of two, else the next rank, the one after it, and so on. post: everything
/// at once, as the library over MPI.

namespace {

struct Round {
    std::string kind;
    std::vector<long long> out;  // (rank): bytes to send
    std::vector<long long> in;
};

[[noreturn]] void stop(const std::string& why) {
    std::fprintf(stderr, "replay: %s\n", why.c_str());
    MPI_Abort(MPI_COMM_WORLD, 2);
    std::abort();
}

std::vector<Round> read(const char* path, int rank, int ranks) {
    std::ifstream file{path};
    int written = 0;
    int count = 0;
    if (!(file >> written >> count)) stop(std::string{path} + ": cannot be read, or is no schedule");
    if (written != ranks)
        stop(std::string{path} + " is for " + std::to_string(written) + " ranks, and there are " +
             std::to_string(ranks) + ": start as many");
    std::vector<Round> rounds(static_cast<std::size_t>(count));
    for (Round& round : rounds) {
        file >> round.kind;
        for (int from = 0; from < ranks; ++from)
            for (int to = 0; to < ranks; ++to) {
                long long bytes = 0;
                if (!(file >> bytes) || bytes < 0 || bytes > 2147483647)
                    stop(std::string{path} + ": a number of bytes is missing, or not below 2^31");
                if (from == rank) round.out.push_back(to == rank ? 0 : bytes);
                if (to == rank) round.in.push_back(from == rank ? 0 : bytes);
            }
    }
    return rounds;
}

// Memory that SMPI neither fills nor copies; elsewhere ordinary memory.
char* exchanged(long long bytes) {
    const auto size = static_cast<std::size_t>(std::max(bytes, 1LL));
#ifdef SMPI_SHARED_MALLOC
    return static_cast<char*>(SMPI_SHARED_MALLOC(size));
#else
    auto* memory = static_cast<char*>(std::malloc(size));
    if (memory == nullptr) stop("no memory for " + std::to_string(bytes) + " bytes of messages");
    std::memset(memory, 1, size);
    return memory;
#endif
}
void release(char* memory) {
#ifdef SMPI_SHARED_MALLOC
    SMPI_SHARED_FREE(memory);
#else
    std::free(memory);
#endif
}

// All ranks leave at one moment of the simulated clock; over real MPI, as near to each other as a barrier brings them.
double meet() {
    MPI_Barrier(MPI_COMM_WORLD);
#ifdef SMPI_SHARED_MALLOC
    double mine = MPI_Wtime() + 0.01;
    double start = 0;
    MPI_Allreduce(&mine, &start, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const double left = start - MPI_Wtime();
    timespec nap{.tv_sec = 0, .tv_nsec = static_cast<long>(1e9 * left)};
    nanosleep(&nap, nullptr);
#endif
    return MPI_Wtime();
}

class Replay {
  public:
    Replay(int rank, int ranks, bool post) : rank_{rank}, ranks_{ranks}, post_{post} {}

    // Seconds that the slowest rank takes for a round.
    double run(const Round& round) {
        long long sent = 0;  // at a time
        long long received = 0;
        for (int r = 0; r < ranks_; ++r) {
            const long long out_bytes = round.out[static_cast<std::size_t>(r)];
            const long long in_bytes = round.in[static_cast<std::size_t>(r)];
            sent = post_ ? sent + out_bytes : std::max(sent, out_bytes);
            received = post_ ? received + in_bytes : std::max(received, in_bytes);
        }
        char* const out = exchanged(sent);
        char* const in = exchanged(received);
        char* out_at = out;
        char* in_at = in;
        const double begin = meet();
        requests_.clear();
        for (int i = 1; i < ranks_; ++i) {
            const bool paired = (ranks_ & (ranks_ - 1)) == 0;
            const int to = paired ? rank_ ^ i : (rank_ + i) % ranks_;
            const int from = paired ? rank_ ^ i : (rank_ - i + ranks_) % ranks_;
            const auto out_bytes = static_cast<int>(round.out[static_cast<std::size_t>(to)]);
            const auto in_bytes = static_cast<int>(round.in[static_cast<std::size_t>(from)]);
            if (in_bytes != 0) MPI_Irecv(in_at, in_bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, next());
            if (out_bytes != 0) MPI_Isend(out_at, out_bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD, next());
            if (post_) {
                in_at += in_bytes;
                out_at += out_bytes;
            } else {
                wait();
            }
        }
        wait();
        const double seconds = slowest(MPI_Wtime() - begin);
        release(out);
        release(in);
        return seconds;
    }
    double all_reduce(long long bytes) {
        const auto count = static_cast<int>(bytes / 4);
        char* const from = exchanged(bytes);
        char* const to = exchanged(bytes);
        const double begin = meet();
        MPI_Allreduce(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        const double seconds = slowest(MPI_Wtime() - begin);
        release(from);
        release(to);
        return seconds;
    }

  private:
    MPI_Request* next() {
        requests_.reserve(2 * static_cast<std::size_t>(ranks_));  // pointers into it stay
        requests_.push_back(MPI_REQUEST_NULL);
        return &requests_.back();
    }
    void wait() {
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        requests_.clear();
    }
    static double slowest(double mine) {
        double most = 0;
        MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return most;
    }

    int rank_;
    int ranks_;
    bool post_;
    std::vector<MPI_Request> requests_;
};

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const std::string order = argc > 2 ? argv[2] : "";
    if (argc < 3 || argc > 5 || (order != "pair" && order != "post"))
        stop("usage: replay FILE pair|post [REPETITIONS [ALL-REDUCE BYTES]]");
    const int repetitions = argc > 3 ? std::atoi(argv[3]) : 1;
    const long long reduced = argc > 4 ? std::atoll(argv[4]) : 0;
    if (repetitions < 1 || reduced < 0) stop("give at least one repetition, and bytes of an all-reduce or none");
    const std::vector<Round> rounds = read(argv[1], rank, ranks);
    Replay replay{rank, ranks, order == "post"};
    std::string text;
    for (const Round& round : rounds) {
        std::vector<double> seconds;
        for (int i = 0; i < repetitions; ++i)
            seconds.push_back(replay.run(round));
        text += round.kind + " " + std::to_string(1e6 * median(seconds)) + "\n";
    }
    if (reduced != 0) {
        std::vector<double> seconds;
        for (int i = 0; i < repetitions; ++i)
            seconds.push_back(replay.all_reduce(reduced));
        text += "reduction " + std::to_string(1e6 * median(seconds)) + "\n";
    }
    if (rank == 0) std::fputs(text.c_str(), stdout);
    MPI_Finalize();
    return 0;
}
