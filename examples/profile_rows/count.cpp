// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "count.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/data/row_trace.hpp"
#include "shardwise/planning/access_counter.hpp"
#include "shardwise/planning/cached_samples.hpp"
#include "shardwise/planning/merge_ranks.hpp"
#include "train_dlrm/data.hpp"
#include "train_dlrm/options.hpp"
#include "train_dlrm/reading_progress.hpp"
#include "train_dlrm/stopwatch.hpp"

namespace profile_rows {

namespace {

namespace sw = shardwise;
using Batch = sw::JaggedBatch<std::int64_t>;

constexpr std::int64_t samples_at_once = 4096;
constexpr std::int64_t any_rows =
    std::numeric_limits<std::int64_t>::max();  // of a table that is as large as the files take

/// What the readers of train_dlrm are to read.
train_dlrm::Options clicks_of(const Options& o) {
    train_dlrm::Options clicks;
    clicks.data = o.files;
    clicks.batch = samples_at_once;
    if (!o.rows.empty()) clicks.rows = o.rows;
    return clicks;
}

std::vector<sw::TableConfig> tables_of(const Options& o) {
    if (o.form == Form::clicks) return train_dlrm::tables_of(clicks_of(o));
    sw::TableConfig table;
    table.name = o.form == Form::trace ? "trace" : "item";
    table.rows = o.rows.empty() ? any_rows : o.rows.front();
    return {table};
}

/// Files that can be read again and again; pipes cannot.
bool are_regular(const std::vector<std::string>& files) {
    return std::all_of(files.begin(), files.end(), [](const std::string& file) {
        std::error_code ignored;
        return std::filesystem::is_regular_file(file, ignored);
    });
}

/// Samples of the files, an estimate; 0 where there is no telling.
double expected_samples(const Options& o) {
    return are_regular(o.files) ? train_dlrm::estimate_samples(clicks_of(o)) : 0;
}

/// One rank's part of the files, whatever they are.
struct Input {
    std::function<const Batch*()> next;       ///< null at the end
    std::function<std::int64_t()> rows_seen;  ///< one more than the largest row so far; null where sizes are given
};

Input open(const Options& o, int rank) {
    if (o.form == Form::clicks) {
        const std::shared_ptr<train_dlrm::Loader> loader = train_dlrm::training_data(clicks_of(o), rank, o.ranks);
        return {.next =
                    [loader] {
                        const sw::ClickBatch* batch = loader->next();
                        return batch == nullptr ? nullptr : &batch->ids;
                    },
                .rows_seen = {}};
    }
    const auto reader = std::make_shared<sw::RowTraceReader>(
        sw::RowTraceOptions{.files = o.files,
                            .form = o.form == Form::trace ? sw::TraceForm::rows : sw::TraceForm::sequences,
                            .rows = o.rows.empty() ? 0 : o.rows.front(),
                            .slice = {.batch = samples_at_once, .rank = rank, .ranks = o.ranks}});
    return {
        .next = [reader, batch = std::make_shared<Batch>()] { return reader->next(*batch) ? batch.get() : nullptr; },
        .rows_seen = [reader] { return reader->rows_seen(); }};
}

/// Counts this rank's samples: those in front of the split, and the others. \returns Input::rows_seen
std::int64_t count_mine(const Options& o, int rank, sw::AccessCounter& before, sw::AccessCounter& after) {
    const Input input = open(o, rank);
    train_dlrm::ReadingProgress progress{rank == 0 ? expected_samples(o) / o.ranks : 0, rank == 0, o.ranks};
    std::int64_t first = rank * samples_at_once;  // number of the batch's first sample among all
    std::int64_t mine = 0;
    while (const Batch* batch = input.next()) {
        const std::int64_t in_front = std::clamp<std::int64_t>(
            o.split.value_or(std::numeric_limits<std::int64_t>::max()) - first, 0, batch->samples);
        before.add(batch->view(), 0, in_front);
        if (in_front != batch->samples) after.add(batch->view(), in_front, batch->samples);
        first += samples_at_once * o.ranks;
        progress.samples(mine += batch->samples);
    }
    progress.done();
    return input.rows_seen ? input.rows_seen() : 0;
}

/// Looks at this rank's samples once more: all, or those behind the split.
void look_at_mine(const Options& o, int rank, std::vector<sw::CachedSamples>& caches) {
    const Input input = open(o, rank);
    train_dlrm::ReadingProgress progress{rank == 0 ? expected_samples(o) / o.ranks : 0, rank == 0, o.ranks,
                                         "use of caches: "};
    std::int64_t first = rank * samples_at_once;
    std::int64_t mine = 0;
    while (const Batch* batch = input.next()) {
        const std::int64_t from = std::clamp<std::int64_t>(o.split.value_or(0) - first, 0, batch->samples);
        for (sw::CachedSamples& cache : caches)
            cache.add(batch->view(), from, batch->samples);
        first += samples_at_once * o.ranks;
        progress.samples(mine += batch->samples);
    }
    progress.done();
}

/// What caches of --cache are to all ranks' samples. Collective.
std::vector<CacheUse> use_caches(const Options& o, sw::ThreadCommunicator& comm, const sw::AccessProfile& profile) {
    std::vector<sw::TableConfig> tables = tables_of(o);
    for (std::size_t t = 0; t < tables.size(); ++t)
        tables[t].rows = profile.tables[t].rows;
    std::vector<sw::CachedSamples> caches;
    for (const std::int64_t rows : o.caches)
        caches.emplace_back(profile, tables, rows);
    if (!caches.empty()) look_at_mine(o, comm.rank(), caches);
    std::vector<CacheUse> all;
    for (std::size_t i = 0; i < caches.size(); ++i) {
        std::vector<std::int64_t> mine{caches[i].touching().begin(), caches[i].touching().end()};
        mine.insert(mine.end(), {caches[i].samples(), caches[i].hot()});
        std::vector<std::int64_t> sum(mine.size());
        for (const auto& theirs : sw::all_gather_v<std::int64_t>(comm, mine))
            std::transform(sum.begin(), sum.end(), theirs.begin(), sum.begin(), std::plus{});
        all.push_back({.rows = o.caches[i],
                       .samples = sum[sum.size() - 2],
                       .hot = sum.back(),
                       .quarters = {sum.begin(), sum.end() - 2}});
    }
    return all;
}

/// Gives the table whose size was not given as many rows as the files have.
void fit_rows(sw::AccessProfile& profile, std::int64_t rows) {
    for (sw::TableAccess& table : profile.tables)
        if (table.rows == any_rows) table.rows = rows;
}

}  // namespace

Profiles count_rows(const Options& o) {
    const auto start = train_dlrm::Clock::now();
    const std::vector<sw::TableConfig> tables = tables_of(o);
    for (const std::string& file : o.files)
        if (!o.caches.empty() && std::filesystem::exists(file) && !are_regular({file}))
            throw sw::BadInput{
                fmt::format("{} is no regular file, and --cache reads it twice: leave --cache out", file)};
    for (const std::string& file : o.files)
        if (o.ranks > 1 && std::filesystem::exists(file) && !are_regular({file}))
            throw sw::BadInput{
                fmt::format("{} is no regular file, and is read once: leave --ranks {} out", file, o.ranks)};
    Profiles profiles;
    sw::ThreadWorld world{
        sw::ThreadWorldOptions{.topology = sw::Topology::of(o.ranks, 1), .deadline = std::chrono::hours{24}}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const sw::CountingOptions counting{.counters = o.counters};
        sw::AccessCounter before{tables, counting};
        sw::AccessCounter after{tables, counting};
        std::string wrong;
        std::int64_t rows = 0;
        try {
            rows = count_mine(o, comm.rank(), before, after);
        } catch (const sw::BadInput& error) {
            wrong = error.what();
        }
        sw::agree_on_input(comm, wrong);
        sw::AccessProfile sum = sw::merged_across_ranks(comm, before.profile());
        std::optional<sw::AccessProfile> rest;
        if (o.split) rest = sw::merged_across_ranks(comm, after.profile());
        for (const auto& theirs : sw::all_gather_v<std::int64_t>(comm, std::span<const std::int64_t>{&rows, 1}))
            rows = std::max(rows, theirs[0]);
        fit_rows(sum, rows);
        if (rest) fit_rows(*rest, rows);
        std::vector<CacheUse> caches = use_caches(o, comm, sum);
        if (comm.rank() == 0)
            profiles = {.before = std::move(sum), .after = std::move(rest), .caches = std::move(caches)};
    });
    if (profiles.after && profiles.after->samples == 0)
        throw sw::BadInput{fmt::format("--split {}: there are {} lines, and none behind the split; give less", *o.split,
                                       profiles.before.samples)};
    profiles.seconds = train_dlrm::seconds_since(start);
    return profiles;
}

}  // namespace profile_rows
