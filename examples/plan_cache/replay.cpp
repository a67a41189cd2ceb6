// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "replay.hpp"

#include <algorithm>
#include <cstdint>
#include <unordered_set>

#include <fmt/format.h>

#include "shardwise/core/jagged.hpp"
#include "shardwise/data/row_trace.hpp"

namespace plan_cache {

namespace {

std::vector<std::int64_t> read_trace(const std::string& file) {
    sw::RowTraceReader reader{{.files = {file}, .slice = {.batch = 1 << 16, .rank = 0, .ranks = 1}}};
    std::vector<std::int64_t> trace;
    for (sw::JaggedBatch<std::int64_t> batch; reader.next(batch);)
        trace.insert(trace.end(), batch.values.begin(), batch.values.end());
    return trace;
}

}  // namespace

std::size_t Replay::unpredicted() const {
    return static_cast<std::size_t>(
        std::count_if(hits.begin(), hits.end(), [](const sw::CacheHits& of) { return !of.predicts(); }));
}

Replay replay(const Options& o) {
    const std::vector<std::int64_t> trace = read_trace(o.replay);
    Replay r{.lookups = trace.size(),
             .rows = std::ssize(std::unordered_set<std::int64_t>(trace.begin(), trace.end())),
             .hits = sw::replay_caches(trace, o.sizes, o.seed),
             .windows = std::nullopt};
    if (o.batch != 0) r.windows = sw::distinct_in_windows(trace, o.batch, o.seed);
    return r;
}

void print(const Replay& r, const Options& o) {
    fmt::print("{}: {} look-ups of {} rows\n\n", o.replay, r.lookups, r.rows);
    fmt::print("{:<16} {:>12} {:>24} {:>24} {:>10}\n", "% of look-ups", "hottest rows", "of the first half, over",
               "the same of look-ups", "rows used");
    fmt::print("{:<16} {:>12} {:>24} {:>24} {:>10}\n", "  cached rows", "of all", "the second half", "in random order",
               "last (LRU)");
    for (const sw::CacheHits& of : r.hits)
        fmt::print("  {:<14} {:>12.2f} {:>24.2f} {:>24.2f} {:>10.2f}\n", of.size, 100 * of.in_sample,
                   100 * of.second_half, 100 * of.shuffled, 100 * of.lru);
    if (r.unpredicted() != 0)
        fmt::print(
            "\nThe first half does not predict the second: at {} of {} sizes its hottest rows hit less than half as "
            "often there\nas they would if time played no part. A static cache does not fit this data.\n",
            r.unpredicted(), r.hits.size());
    if (r.windows)
        fmt::print(
            "\n{} windows of {} look-ups have {:.1f} distinct rows; in random order {:.1f}, expected U = {:.1f}: {}\n",
            r.windows->windows, o.batch, r.windows->in_order, r.windows->shuffled, r.windows->expected,
            r.windows->in_order < 0.9 * r.windows->expected
                ? "neighbouring look-ups repeat rows, so batches in this order coalesce better than U says"
                : "look-ups are as good as independent");
}

nlohmann::ordered_json to_json(const Replay& r, const Options& o) {
    nlohmann::ordered_json hits = nlohmann::ordered_json::array();
    for (const sw::CacheHits& of : r.hits)
        hits.push_back({{"size", of.size},
                        {"in_sample", of.in_sample},
                        {"second_half", of.second_half},
                        {"second_half_shuffled", of.shuffled},
                        {"lru", of.lru},
                        {"predicts", of.predicts()}});
    nlohmann::ordered_json windows;
    if (r.windows)
        windows = {{"count", r.windows->windows},
                   {"expected", r.windows->expected},
                   {"in_order", r.windows->in_order},
                   {"shuffled", r.windows->shuffled}};
    return {{"config",
             {{"replay", o.replay},
              {"sizes", o.sizes},
              {"batch", o.batch == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(o.batch)},
              {"seed", o.seed}}},
            {"lookups", r.lookups},
            {"rows", r.rows},
            {"replay", hits},
            {"static_cache_fits", r.unpredicted() == 0},
            {"windows", windows}};
}

}  // namespace plan_cache
