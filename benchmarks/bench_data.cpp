// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The sources of batches, on one core, out of the page cache. Beside each reader, in the same process: its files read
// in blocks and searched for ends of lines, or copied. `of_ceiling` is that time over the reader's.
//
//   bench_data [--file=criteo.tsv] [--mib=N] [--benchmark_filter=...] [--benchmark_format=json]

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <zlib.h>

#include "shardwise/data/batch.hpp"
#include "shardwise/data/criteo.hpp"
#include "shardwise/data/csv_reader.hpp"
#include "shardwise/data/csv_schema.hpp"
#include "shardwise/data/generator.hpp"
#include "shardwise/data/numpy_criteo.hpp"
#include "support.hpp"

namespace {

using shardwise_bench::Times;

constexpr std::int64_t batch = 2048;
constexpr std::int64_t table_rows = 1'000'000;
constexpr std::size_t block = std::size_t{256} << 10U;

/// Click logs such as Criteo's: integers of one to five digits, a fifth of them missing, and categories of eight.
std::string made_lines() {
    std::mt19937_64 random{1};
    std::string text;
    for (int line = 0; line != 10'000; ++line) {
        text += random() % 4 == 0 ? '1' : '0';
        for (int i = 0; i != 13; ++i) {
            text += '\t';
            if (random() % 5 != 0) text += fmt::format("{}", random() % 100'000 >> random() % 16);
        }
        for (int f = 0; f != 26; ++f) {
            text += '\t';
            if (random() % 8 != 0) text += fmt::format("{:08x}", static_cast<std::uint32_t>(random()));
        }
        text += '\n';
    }
    return text;
}

/// Clicks as Avazu's: an identity, a label, an hour and 21 categories, numbers and hexadecimal ones of eight.
std::string made_csv(bool quoted) {
    std::mt19937_64 random{1};
    std::string text;
    for (int line = 0; line != 10'000; ++line) {
        text += fmt::format("{},{},141021{:02}", random(), random() % 6 == 0 ? 1 : 0, line * 24 / 10'000);
        for (int f = 0; f != 21; ++f) {
            const std::uint64_t value = random() % 100'000 >> random() % 16;
            const std::string category =
                f % 2 == 0 ? fmt::format("{:08x}", value * 2654435761U & 0xffffffff) : fmt::format("{}", value);
            text += quoted ? ",\"" + category + "\"" : "," + category;
        }
        text += '\n';
    }
    return text;
}

shardwise::CsvSchema csv_schema() {
    shardwise::CsvSchema schema{
        .format = {.header = false, .ignore = {{.number = 1}}}, .label = {.column = {.number = 2}}, .rows = table_rows};
    for (int column = 3; column != 25; ++column)
        schema.categorical.emplace_back().column.number = column;
    schema.categorical[0].time.form = "%y%m%d%H";
    return schema;
}

/// The files that are read, in a folder that goes with the program.
class Files {
  public:
    /// \param lines  click logs, repeated until they are `bytes` long
    Files(const std::string& lines, std::int64_t bytes) {
        std::string pattern = (std::filesystem::temp_directory_path() / "bench_data_XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error{"no temporary folder"};
        folder_ = pattern;
        std::ofstream plain{tsv(), std::ios::binary};
        gzFile packed = gzopen(gzip().c_str(), "wb6");
        for (std::int64_t written = 0; written < bytes; written += static_cast<std::int64_t>(lines.size())) {
            plain << lines;
            // A gzip of a tenth: unpacking takes that much longer.
            if (written < bytes / 10 && gzwrite(packed, lines.data(), static_cast<unsigned>(lines.size())) == 0)
                throw std::runtime_error{"gzip failed"};
        }
        gzclose(packed);
        for (const bool quoted : {false, true}) {
            std::ofstream csv_file{csv(quoted), std::ios::binary};
            const std::string records = made_csv(quoted);
            for (std::int64_t written = 0; written < bytes; written += static_cast<std::int64_t>(records.size()))
                csv_file << records;
        }

        const auto samples = bytes / 160;
        std::mt19937_64 random{1};
        std::vector<float> dense(static_cast<std::size_t>(samples * 13));
        std::vector<std::int32_t> sparse(static_cast<std::size_t>(samples * 26));
        std::vector<std::int32_t> labels(static_cast<std::size_t>(samples));
        for (float& x : dense)
            x = static_cast<float>(random() % 1000) * 0.01F;
        for (std::int32_t& x : sparse)
            x = static_cast<std::int32_t>(random());
        for (std::int32_t& x : labels)
            x = static_cast<std::int32_t>(random() % 2);
        write_npy(day().dense, "<f4", samples, 13, dense.data());
        write_npy(day().sparse, "<i4", samples, 26, sparse.data());
        write_npy(day().labels, "<i4", samples, 1, labels.data());
    }
    Files(const Files&) = delete;
    Files& operator=(const Files&) = delete;
    ~Files() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    [[nodiscard]] std::string tsv() const { return folder_ + "/clicks.tsv"; }
    [[nodiscard]] std::string gzip() const { return folder_ + "/clicks.tsv.gz"; }
    [[nodiscard]] std::string csv(bool quoted) const { return folder_ + (quoted ? "/quoted.csv" : "/plain.csv"); }
    [[nodiscard]] shardwise::NumpyCriteoDay day() const {
        return {.dense = folder_ + "/day_0_dense.npy",
                .sparse = folder_ + "/day_0_sparse.npy",
                .labels = folder_ + "/day_0_labels.npy"};
    }

  private:
    static void write_npy(const std::string& path, const std::string& dtype, std::int64_t rows, std::int64_t columns,
                          const void* data) {
        const std::string header = fmt::format(
            "{:<117}\n",
            fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}", dtype, rows, columns));
        std::ofstream file{path, std::ios::binary};
        file.write("\x93NUMPY\x01\0v\0", 10);
        file << header;
        file.write(static_cast<const char*>(data), rows * columns * 4);
    }

    std::string folder_;
};

const Files* files = nullptr;

/// Reads a file in blocks. \returns how often `\n` is in it, where `search` says so
std::int64_t scan(const std::string& path, bool search) {
    static std::vector<char> memory(block);
    std::int64_t lines = 0;
    std::FILE* file = std::fopen(path.c_str(), "rb");
    std::setvbuf(file, nullptr, _IONBF, 0);
    for (std::size_t count = 0; (count = std::fread(memory.data(), 1, block, file)) != 0;) {
        const char* const end = memory.data() + count;
        for (const char* at = memory.data(); search && at != end; ++lines) {
            at = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
            if (at == nullptr) break;
            ++at;
        }
    }
    std::fclose(file);
    return lines;
}

/// Seconds of a core that `run` takes on this thread, whoever else has the core in between.
template <class Run>
double core_seconds(Run run) {
    const auto now = [] {
        std::timespec time{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
    const double begin = now();
    run();
    benchmark::ClobberMemory();
    return now() - begin;
}

/// Reads a source to its end, again and again, and in turns `ceiling`. Times are those of the core.
template <class Source, class Ceiling>
void drain(benchmark::State& state, Source source, std::int64_t bytes, Ceiling ceiling) {
    shardwise::ClickBatch clicks;
    std::int64_t samples = 0;
    Times kernel;
    Times ceiling_times;
    for ([[maybe_unused]] auto iteration : state) {
        source.rewind();
        samples = 0;
        const double time = core_seconds([&] {
            while (source.next(clicks))
                samples += clicks.samples();
        });
        state.SetIterationTime(time);
        kernel.add(time);
        ceiling_times.add(core_seconds(ceiling));
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * samples);
    shardwise_bench::report(state, bytes, kernel, ceiling_times);
    state.counters["best_GB_per_s"] = static_cast<double>(bytes) / kernel.quantile(0.0) * 1e-9;
    state.counters["ceiling_GB_per_s"] = static_cast<double>(bytes) / ceiling_times.median() * 1e-9;
}

std::int64_t size_of(const std::string& path) {
    return static_cast<std::int64_t>(std::filesystem::file_size(path));
}

/// Argument: ranks that share the file; the first one's batches are parsed, lines of the others are skipped.
void criteo_tsv(benchmark::State& state) {
    const std::string path = files->tsv();
    drain(state,
          shardwise::CriteoReader{{.files = {path},
                                   .rows = {table_rows},
                                   .slice = {.batch = batch, .rank = 0, .ranks = static_cast<int>(state.range(0))},
                                   .block_bytes = block}},
          size_of(path), [&] { benchmark::DoNotOptimize(scan(path, true)); });
}

/// Bytes are those that come out of zlib; the ceiling is zlib alone.
void criteo_gzip(benchmark::State& state) {
    const std::string path = files->gzip();
    static std::vector<char> memory(block);
    std::int64_t bytes = 0;
    const auto unpack = [&] {
        bytes = 0;
        gzFile packed = gzopen(path.c_str(), "rb");
        gzbuffer(packed, block);
        for (int count = 0; (count = gzread(packed, memory.data(), static_cast<unsigned>(block))) > 0;)
            bytes += count;
        gzclose(packed);
    };
    unpack();
    drain(state,
          shardwise::CriteoReader{
              {.files = {path}, .rows = {table_rows}, .slice = {.batch = batch}, .block_bytes = block}},
          bytes, unpack);
}

/// Arguments: whether categories have quotes, and ranks, as of criteo_tsv.
void csv(benchmark::State& state) {
    const std::string path = files->csv(state.range(0) != 0);
    drain(state,
          shardwise::CsvReader{{.files = {path},
                                .schema = csv_schema(),
                                .slice = {.batch = batch, .rank = 0, .ranks = static_cast<int>(state.range(1))},
                                .block_bytes = block}},
          size_of(path), [&] { benchmark::DoNotOptimize(scan(path, true)); });
}

/// The ceiling reads the files and does nothing with them.
void numpy(benchmark::State& state) {
    const shardwise::NumpyCriteoDay day = files->day();
    drain(state, shardwise::NumpyCriteoReader{{.days = {day}, .rows = {table_rows}, .slice = {.batch = batch}}},
          size_of(day.dense) + size_of(day.sparse) + size_of(day.labels), [&] {
              for (const std::string& path : {day.dense, day.sparse, day.labels})
                  benchmark::DoNotOptimize(scan(path, false));
          });
}

/// Argument: the largest bag; 1 for one id a bag. There is no file: the ceiling writes as many bytes as batches have.
void generator(benchmark::State& state) {
    const auto bag = static_cast<std::int32_t>(state.range(0));
    shardwise::GeneratorOptions options;
    options.rows.assign(26, table_rows);
    options.bags = {bag == 1 ? shardwise::BagSizes::single() : shardwise::BagSizes::up_to(bag)};
    options.samples = 8 * batch;
    options.slice = {.batch = batch};
    const auto ids = static_cast<std::int64_t>(26 * options.bags[0].mean());
    const std::int64_t bytes = options.samples * (4 + 13 * 4 + ids * 8 + (bag == 1 ? 0 : 26 * 4));
    std::vector<char> memory(static_cast<std::size_t>(bytes / 8));
    drain(state, shardwise::ClickGenerator{options}, bytes, [&] {
        for (int b = 0; b != 8; ++b) {
            std::memset(memory.data(), b, memory.size());
            benchmark::DoNotOptimize(memory.data());
        }
    });
}

BENCHMARK(criteo_tsv)->ArgName("ranks")->Arg(1)->Arg(4)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(criteo_gzip)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(csv)
    ->ArgNames({"quoted", "ranks"})
    ->Args({0, 1})
    ->Args({1, 1})
    ->Args({0, 4})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(numpy)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(generator)->ArgName("bag")->Arg(1)->Arg(10)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
    const std::string file{shardwise_bench::take_argument(argc, argv, "--file=", "")};
    const std::int64_t mib = std::max<std::int64_t>(1, shardwise_bench::take_number(argc, argv, "--mib=", 64));
    const shardwise_bench::Output output{argc, argv,
                                         "time: the median pass over the data, of the core that reads it.\n"
                                         "of_ceiling: the time of a pass that does what cannot be left out (search for "
                                         "ends of lines, unpack, read, or write), "
                                         "over that time; 1 is as fast (quartiles of runs side by side).",
                                         "  --file=FILE   click logs to read; without, they are made up\n"
                                         "  --mib=N       of data to read, each way (64)\n"};
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    std::string lines = made_lines();
    if (!file.empty()) {
        std::ifstream input{file, std::ios::binary};
        lines.assign(std::istreambuf_iterator<char>{input}, {});
        if (lines.empty() || lines.back() != '\n') {
            std::cerr << file << ": no click logs\n";
            return 2;
        }
    }
    const Files made{lines, mib << 20U};
    files = &made;
    return output.run() ? 0 : 2;
}
