// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

/// \file
/// What a benchmark prints: a table for people, with one time a row; JSON is Google Benchmark's own.

namespace shardwise_bench {

/// Says nothing: what ranks other than 0 report.
class Silent final : public benchmark::BenchmarkReporter {
    bool ReportContext(const Context& /*context*/) override { return true; }
    void ReportRuns(const std::vector<Run>& /*report*/) override {}
};

/// A row a benchmark: the median time of a run, GB/s, what of the ceiling's speed that is, then all other counters.
class Table final : public benchmark::BenchmarkReporter {
  public:
    /// \param meaning  of the time and of the ceiling, a sentence or two
    explicit Table(std::string meaning) : meaning_{std::move(meaning)} {}

    bool ReportContext(const Context& context) override {
        std::printf("%s\n%-*s %12s %9s  %-22s %s\n", meaning_.c_str(), width(context), "", "time", "GB/s", "of_ceiling",
                    "more");
        name_width_ = width(context);
        return true;
    }
    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs) {
            std::printf("%-*s", name_width_, name_of(run).c_str());
            if (run.error_occurred) {
                std::printf(" ERROR OCCURRED: %s\n", run.error_message.c_str());
                continue;
            }
            std::printf(" %12s %9s  %-22s", time_text(seconds_of(run)).c_str(), number(run, "GB_per_s").c_str(),
                        ceiling_text(run).c_str());
            for (const auto& [name, counter] : run.counters)
                if (std::find(std::begin(columns), std::end(columns), name) == std::end(columns))
                    std::printf(" %s=%.4g", name.c_str(), counter.value);
            std::printf("\n");
        }
        std::fflush(stdout);
    }

  private:
    static constexpr std::string_view columns[] = {"median_ms", "GB_per_s", "of_ceiling", "of_ceiling_low",
                                                   "of_ceiling_high"};

    static int width(const Context& context) { return static_cast<int>(context.name_field_width); }
    /// Without how often it ran.
    static std::string name_of(const Run& run) {
        return run.run_name.function_name + (run.run_name.args.empty() ? "" : "/" + run.run_name.args);
    }
    static double value(const Run& run, const char* name) {
        const auto found = run.counters.find(name);
        return found == run.counters.end() ? -1.0 : found->second.value;
    }
    /// The median; the mean where a benchmark does not say it.
    static double seconds_of(const Run& run) {
        const double median = value(run, "median_ms");
        return median >= 0 ? 1e-3 * median
                           : run.real_accumulated_time /
                                 static_cast<double>(std::max<benchmark::IterationCount>(1, run.iterations));
    }
    static std::string text(const char* format, double a, double b = 0, double c = 0) {
        char characters[64];
        std::snprintf(characters, sizeof characters, format, a, b, c);
        return characters;
    }
    static std::string number(const Run& run, const char* name) {
        return value(run, name) < 0 ? "" : text("%.2f", value(run, name));
    }
    static std::string time_text(double seconds) {
        return seconds < 1e-6   ? text("%.1f ns", 1e9 * seconds)
               : seconds < 1e-3 ? text("%.2f us", 1e6 * seconds)
               : seconds < 1    ? text("%.3f ms", 1e3 * seconds)
                                : text("%.3f s", seconds);
    }
    static std::string ceiling_text(const Run& run) {
        if (value(run, "of_ceiling") < 0) return "";
        return text("%.2f (%.2f to %.2f)", value(run, "of_ceiling"), value(run, "of_ceiling_low"),
                    value(run, "of_ceiling_high"));
    }

    std::string meaning_;
    int name_width_ = 0;
};

/// What a program says where Output::run() has nothing to run.
inline constexpr const char* nothing_matches = "--benchmark_filter: nothing matches it; see --benchmark_list_tests";

/// Runs what is registered, and prints a Table where the command line asks for no other format.
class Output {
  public:
    /// Before benchmark::Initialize(), which takes the arguments out. With --help it prints what the table means and
    /// the benchmark's own options; Initialize() prints Google Benchmark's behind them, and ends the process.
    /// \param meaning  as of Table \param options  of the benchmark itself, a line each
    Output(int argc, char** argv, std::string meaning, const std::string& options) : meaning_{std::move(meaning)} {
        for (int i = 1; i < argc; ++i) {
            const std::string_view argument{argv[i]};
            if (argument.starts_with("--benchmark_format=") && argument != "--benchmark_format=console") table_ = false;
            if (argument == "--help")
                std::printf("%s\n\nOptions of its own:\n%s\nOptions of Google Benchmark: ", meaning_.c_str(),
                            options.c_str());
        }
    }
    /// \param reports  whether this process is the one that prints \returns whether there was something to run
    [[nodiscard]] bool run(bool reports = true) const {
        Silent silent;
        Table table{meaning_};
        if (!reports) return benchmark::RunSpecifiedBenchmarks(&silent) != 0;
        return (table_ ? benchmark::RunSpecifiedBenchmarks(&table) : benchmark::RunSpecifiedBenchmarks()) != 0;
    }

  private:
    std::string meaning_;
    bool table_ = true;
};

}  // namespace shardwise_bench
