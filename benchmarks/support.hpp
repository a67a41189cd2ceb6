// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "output.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/data/zipf.hpp"
#include "shardwise/embedding/kernels/row_sum.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// What the benchmarks share: sizes, ids, and times of a kernel beside those of its ceiling.

namespace shardwise_bench {

/// Takes an argument such as `--rows=8` out of the others.
/// \param flag  such as `--rows=` \returns what follows the flag; `standard` where it is not there
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

/// Takes a whole number out of the arguments. \returns it; `standard` where it is not there. Ends the process with
/// status 2 where something else is.
inline std::int64_t take_number(int& argc, char** argv, std::string_view flag, std::int64_t standard) {
    const std::string given{take_argument(argc, argv, flag, std::to_string(standard))};
    std::int64_t number = 0;
    const auto [end, wrong] = std::from_chars(given.data(), given.data() + given.size(), number);
    if (wrong == std::errc{} && end == given.data() + given.size()) return number;
    std::fprintf(stderr, "%.*s%s: give a whole number, such as %lld\n", static_cast<int>(flag.size()), flag.data(),
                 given.c_str(), static_cast<long long>(standard));
    std::exit(2);
}

/// `count` ids of a table of `rows` rows: uniform, or Zipf with exponent 1.05, the hot rows spread over the table.
inline std::vector<std::int64_t> make_ids(std::int64_t count, std::int64_t rows, bool zipf, std::uint64_t seed = 1) {
    struct Uniform {
        std::mt19937_64 engine;
        double uniform() { return static_cast<double>(engine() >> 11U) * 0x1p-53; }
    };
    Uniform random{std::mt19937_64{seed}};
    const shardwise::Zipf draw{rows, 1.05};
    std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
    for (std::int64_t& id : ids)
        id = zipf ? static_cast<std::int64_t>(static_cast<std::uint64_t>(draw(random)) * 0x9e3779b1U %
                                              static_cast<std::uint64_t>(rows))
                  : static_cast<std::int64_t>(random.engine() % static_cast<std::uint64_t>(rows));
    return ids;
}

/// How much there is in all shapes of a run.
struct Sizes {
    int tables = 8;
    std::int64_t rows = 1'000'000;  // a table
    std::int64_t samples = 8192;

    [[nodiscard]] std::string text() const {
        return std::to_string(tables) + " tables of " + std::to_string(rows) + " rows, " + std::to_string(samples) +
               " samples";
    }
};

/// What --help says of take_sizes().
inline std::string sizes_help(const Sizes& sizes = {}) {
    return "  --tables=N    tables (" + std::to_string(sizes.tables) + ")\n  --rows=N      rows of each (" +
           std::to_string(sizes.rows) + ")\n  --samples=N   samples of a batch, on each rank (" +
           std::to_string(sizes.samples) + ")\n";
}
inline constexpr const char* quick_help = "  --quick=1     two runs of each, to see that it works (0)\n";

/// Takes `--tables=`, `--rows=` and `--samples=` out of the arguments; JSON has them in its context.
inline Sizes take_sizes(int& argc, char** argv, Sizes sizes = {}) {
    sizes.tables = static_cast<int>(take_number(argc, argv, "--tables=", sizes.tables));
    sizes.rows = take_number(argc, argv, "--rows=", sizes.rows);
    sizes.samples = take_number(argc, argv, "--samples=", sizes.samples);
    if (sizes.tables < 1 || sizes.rows < 1 || sizes.samples < 1) {
        std::fprintf(stderr, "%s: give at least 1 of each\n", sizes.text().c_str());
        std::exit(2);
    }
    benchmark::AddCustomContext("tables", std::to_string(sizes.tables));
    benchmark::AddCustomContext("rows", std::to_string(sizes.rows));
    benchmark::AddCustomContext("samples", std::to_string(sizes.samples));
    return sizes;
}

/// What lookup and update are measured on: tables of one dim, `bag` ids a sample and table.
struct Shape : Sizes {
    int dim;
    int bag;
    bool zipf;

    /// Arguments of a benchmark: dim, ids a bag, 1 for Zipf.
    Shape(const benchmark::State& state, const Sizes& sizes)
        : Sizes{sizes},
          dim{static_cast<int>(state.range(0))},
          bag{static_cast<int>(state.range(1))},
          zipf{state.range(2) != 0} {}

    [[nodiscard]] std::int64_t ids() const { return samples * bag; }  // a table
    [[nodiscard]] int width() const { return tables * dim; }
    [[nodiscard]] std::vector<shardwise::TableConfig> configs() const {
        std::vector<shardwise::TableConfig> all;
        for (int t = 0; t < tables; ++t)
            all.push_back({.name = std::to_string(t), .rows = rows, .dim = dim, .features = {}, .sharding = ""});
        return all;
    }
    [[nodiscard]] shardwise::JaggedBatch<std::int64_t> batch() const {
        shardwise::JaggedBatch<std::int64_t> made;
        made.samples = samples;
        made.features = tables;
        made.values = make_ids(tables * ids(), rows, zipf);
        if (bag != 1) made.lengths.assign(static_cast<std::size_t>(tables * samples), bag);
        return made;
    }
};

/// The shapes, each in as many runs as fill a few seconds; two runs where `quick`.
template <class Run>
void register_shapes(const char* name, Run run, bool quick) {
    for (const int dim : {16, 64, 128})
        for (const int bag : {1, 20, 100})
            for (const int zipf : {0, 1})
                benchmark::RegisterBenchmark(name, run)
                    ->ArgNames({"dim", "bag", "zipf"})
                    ->Args({dim, bag, zipf})
                    ->Iterations(quick ? 2 : std::clamp(10'000 / (bag * dim), 7, 49))
                    ->UseManualTime()
                    ->Unit(benchmark::kMillisecond);
}

/// Seconds that `run` takes.
template <class Run>
double seconds(Run run) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    benchmark::ClobberMemory();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Times of one thing, run after run.
class Times {
  public:
    void add(double time) { all_.push_back(time); }
    /// The quantile q of all times, 0 without any.
    [[nodiscard]] double quantile(double q) const {
        if (all_.empty()) return 0.0;
        std::vector<double> sorted = all_;
        std::sort(sorted.begin(), sorted.end());
        return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
    }
    [[nodiscard]] double median() const { return quantile(0.5); }
    [[nodiscard]] const std::vector<double>& all() const { return all_; }

  private:
    std::vector<double> all_;
};

/// Reports the median run, the bytes that it moves a second, and what of the ceiling's speed that is: the median
/// ceiling's time over the median run's, with the quartiles of the ratios of runs that were made one behind the other.
/// Without any ceiling, only the run.
inline void report(benchmark::State& state, std::int64_t bytes, const Times& kernel, const Times& ceiling) {
    state.counters["median_ms"] = kernel.median() * 1e3;
    state.counters["GB_per_s"] = static_cast<double>(bytes) / kernel.median() * 1e-9;
    if (ceiling.all().empty()) return;
    Times ratios;
    for (std::size_t i = 0; i < kernel.all().size(); ++i)
        ratios.add(ceiling.all()[i] / kernel.all()[i]);
    state.counters["of_ceiling"] = ceiling.median() / kernel.median();
    state.counters["of_ceiling_low"] = ratios.quantile(0.25);
    state.counters["of_ceiling_high"] = ratios.quantile(0.75);
}

/// A register of floats at a time: the compiler's vectors, without its care about the order of sums.
using Line = shardwise::detail::Floats;
inline constexpr int line_floats = shardwise::detail::register_floats;

/// How a ceiling prefetches: rows ahead, and into which cache; how many ahead once more into the first (0: not); and
/// whether what it reads and asks for waits for the row read two before.
struct Ahead {
    std::int64_t rows;
    bool second_cache;
    std::int64_t near = 0;
    bool in_turns = false;
};
/// Ceilings are measured with all of these, run by run, and the one with the best median counts; those of updates with
/// the first `plain_prefetches`.
inline constexpr Ahead prefetches[] = {{8, false},      {24, false},          {24, true},
                                       {48, true},      {96, true},           {96, true, 20},
                                       {256, true, 20}, {96, true, 12, true}, {256, true, 12, true}};
inline constexpr std::size_t plain_prefetches = 7;
static_assert(!prefetches[plain_prefetches - 1].in_turns && prefetches[plain_prefetches].in_turns);

/// Times by kind of prefetch, of the first `kinds`.
class TimesAhead {
  public:
    explicit TimesAhead(std::size_t kinds = std::size(prefetches)) : times_(kinds) {}
    /// Adds what `time(prefetch)` says of each kind.
    template <class Time>
    void add(Time time) {
        for (std::size_t i = 0; i < times_.size(); ++i)
            times_[i].add(time(prefetches[i]));
    }
    [[nodiscard]] const Times& best() const {
        return *std::min_element(times_.begin(), times_.end(),
                                 [](const Times& a, const Times& b) { return a.median() < b.median(); });
    }

  private:
    std::vector<Times> times_;
};

/// Asks for the lines of the rows that `ahead` says, `at` being the one that is read now. `row(i)`: where row i is.
template <class Row>
[[gnu::always_inline]] inline void prefetch(const Ahead& ahead, std::int64_t at, std::int64_t rows, int dim, Row row) {
    asm volatile("");  // see shardwise/core/prefetch.hpp
    const std::int64_t later = at + ahead.rows;
    for (int d = 0; later < rows && d < dim; d += 16) {
        if (ahead.second_cache) {
            __builtin_prefetch(row(later) + d, 0, 2);
        } else {
            __builtin_prefetch(row(later) + d, 0, 3);
        }
    }
    if (ahead.near > 0 && at + ahead.near < rows) __builtin_prefetch(row(at + ahead.near), 0, 3);
}

}  // namespace shardwise_bench
