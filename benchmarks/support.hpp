// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "shardwise/data/zipf.hpp"

/// \file
/// What the benchmarks share: sizes, ids, and times of a kernel beside those of its ceiling.

namespace shardwise_bench {

/// Takes an argument such as `--table_mib=8` out of the others.
/// \param flag  such as `--table_mib=` \returns what follows the flag; `standard` where it is not there
inline std::string_view take_argument(int& argc, char** argv, std::string_view flag, std::string_view standard) {
    std::string_view value = standard;
    int kept = 1;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument{argv[i]};
        if (argument.starts_with(flag)) {
            value = argument.substr(flag.size());
        } else {
            argv[kept++] = argv[i];
        }
    }
    argc = kept;
    return value;
}

/// Takes a whole number out of the arguments. \returns it; `standard` where it is not there
inline std::int64_t take_number(int& argc, char** argv, std::string_view flag, std::int64_t standard) {
    const std::string_view text = take_argument(argc, argv, flag, "");
    std::from_chars(text.data(), text.data() + text.size(), standard);
    return standard;
}

/// Takes `--table_mib=N`, the size of a table, out of the arguments; `standard` when it is not there.
inline std::int64_t take_table_mib(int& argc, char** argv, std::int64_t standard) {
    return take_number(argc, argv, "--table_mib=", standard);
}

/// `count` ids of a table of `rows` rows: uniform, or Zipf with exponent 1.05, the hot rows spread over the table.
inline std::vector<std::int64_t> make_ids(std::int64_t count, std::int64_t rows, bool zipf) {
    struct Uniform {
        std::mt19937_64 engine{1};
        double uniform() { return static_cast<double>(engine() >> 11U) * 0x1p-53; }
    };
    Uniform random;
    const shardwise::Zipf draw{rows, 1.05};
    std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
    for (std::int64_t& id : ids)
        id = zipf ? static_cast<std::int64_t>(static_cast<std::uint64_t>(draw(random)) * 0x9e3779b1U %
                                              static_cast<std::uint64_t>(rows))
                  : static_cast<std::int64_t>(random.engine() % static_cast<std::uint64_t>(rows));
    return ids;
}

/// Seconds that `run` takes.
template <class Run>
double seconds(Run run) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    benchmark::ClobberMemory();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The fastest of several runs.
class Best {
  public:
    void add(double time) { best_ = std::min(best_, time); }
    [[nodiscard]] double get() const { return best_; }

  private:
    double best_ = std::numeric_limits<double>::infinity();
};

/// Reports the bytes that a run moves, and the best ceiling's time over the best run's.
inline void report(benchmark::State& state, std::int64_t bytes, const Best& kernel, const Best& ceiling) {
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * bytes);
    state.counters["ceiling_ratio"] = ceiling.get() / kernel.get();
}

/// Sixteen floats at a time: the compiler's vectors, without its care about the order of sums.
using Line = float __attribute__((vector_size(64), aligned(4), may_alias));

inline void prefetch(const float* row, int dim, int write) {
    for (int d = 0; d < dim; d += 16) {
        if (write != 0) {
            __builtin_prefetch(row + d, 1, 3);
        } else {
            __builtin_prefetch(row + d, 0, 3);
        }
    }
}

}  // namespace shardwise_bench
