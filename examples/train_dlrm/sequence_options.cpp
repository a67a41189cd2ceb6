// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sequence_options.hpp"

#include <cstdint>
#include <limits>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "settings_json.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/data/csv_schema_file.hpp"

namespace train_dlrm {

void set_sequence_defaults(Options& o) {
    o.sequences.emplace();
    o.policies.sequences = true;
    o.policies.optimizer = "adam";
    o.dim = 32;
    o.batch = 128;
    o.learning_rate.base = 0.002F;
}

void add_sequence_data(CLI::App& app, Options& o) {
    const char* data = "Data";
    SequenceOptions& s = *o.sequences;
    app.add_option("--data", o.data,
                   "Files to train and to test on, plain or gzip: lines `user item [more columns]`, whole numbers, "
                   "those of a user in the order of time. The last item of each user is held out for the test. Unless "
                   "given, histories are generated")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->group(data);
    app.add_option("--schema", o.schema,
                   "What the columns of --data are, where they are CSV or TSV files of one's own: user, item and time "
                   "(JSON, see docs/csv.md)")
        ->type_name("FILE")
        ->default_str("")
        ->group(data);
    app.add_option("--history", s.history,
                   "Items before the next one that a sample has: the most recent ones, at most so many")
        ->group(data);
    app.add_option("--negatives", s.negatives, "Items a training sample that did not come next, drawn uniformly")
        ->group(data);
    app.add_option("--rows", s.rows,
                   "Rows of the table of items; every item is below. Unless given: as many as the items of --data "
                   "take, or 5000 generated ones")
        ->default_str("")
        ->group(data);
    app.add_option("--law", s.law,
                   "Law of generated items, instead of --rows and --zipf: how often each is drawn against the others, "
                   "as plan_rows --law takes it, such as zipf_mandelbrot:300000:1.1:100:1")
        ->type_name("LAW")
        ->default_str("")
        ->group(data);
    app.add_option("--users", s.users, "Generated users")->group(data);
    app.add_option("--length", s.length, "Items of a generated user, at most; at least half of it")->group(data);
}

void add_sequence_model(CLI::App& app, SequenceOptions& s) {
    const char* model = "Model";
    app.add_option("--pooling", s.pooling,
                   "What makes one vector of a history: attention (each candidate attends over it), transformer (a "
                   "Transformer block over it, and the mean of what comes out), or mean")
        ->group(model);
    app.add_option("--heads", s.heads, "Heads of --pooling attention and transformer; they divide --dim")->group(model);
    app.add_option("--blocks", s.blocks, "Blocks of --pooling transformer")->group(model);
}

void read_sequences(const CLI::App& app, Options& o) {
    SequenceOptions& s = *o.sequences;
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    const auto at_least = [](const char* flag, std::int64_t value, std::int64_t least) {
        if (value < least) throw sw::BadInput{fmt::format("{} {}: give at least {}", flag, value, least)};
    };
    const auto given = [&](const char* flag) { return app.get_option(flag)->count() != 0; };
    at_least("--history", s.history, 1);
    at_least("--negatives", s.negatives, 1);
    at_least("--heads", s.heads, 1);
    at_least("--blocks", s.blocks, 1);
    at_least("--users", s.users, 1);
    at_least("--length", s.length, 2);
    if (given("--rows")) at_least("--rows", s.rows, 1);
    for (const auto& [flag, value] : {std::pair{"--history", s.history}, std::pair{"--negatives", s.negatives}})
        if (value >= most / 2 || o.batch > most / 2 / (value + 1))
            throw sw::BadInput{
                fmt::format("{} {} with --batch {}: a rank's batch has at most {} ids", flag, value, o.batch, most)};
    if (s.pooling != "attention" && s.pooling != "transformer" && s.pooling != "mean")
        throw sw::BadInput{
            fmt::format("--pooling '{}': there is no such pooling; give attention, transformer or mean", s.pooling)};
    if (s.pooling == "mean" && given("--heads"))
        throw sw::BadInput{"--heads has no effect with --pooling mean: give attention or transformer, or leave it out"};
    if (s.pooling != "transformer" && given("--blocks"))
        throw sw::BadInput{"--blocks has no effect without --pooling transformer: give both, or leave it out"};
    if (s.pooling != "mean" && o.dim % s.heads != 0)
        throw sw::BadInput{fmt::format("--heads {} with --dim {}: the heads divide the columns", s.heads, o.dim)};
    if (o.policies.sharding == "mixed")
        throw sw::BadInput{"--sharding mixed has no effect on one table: give row, col, table, dp, flex or tiered"};
    for (const char* flag : {"--rows", "--zipf"})
        if (given("--law") && given(flag))
            throw sw::BadInput{fmt::format(
                "{} has no effect with --law {}: the law has its own; leave one of the two out", flag, s.law)};
    if (o.data.empty() && !given("--rows")) s.rows = 5000;
    if (!o.schema.empty()) {
        s.csv = std::make_shared<const sw::CsvHistorySchema>(sw::read_csv_history_schema(o.schema, s.rows));
        if (given("--rows") && s.csv->rows != s.rows)
            throw sw::BadInput{
                fmt::format("--rows has no effect: {} says the rows of the table; leave it out", o.schema)};
    }
    s.histories = make_histories(s, o.data, o.zipf, o.data_seed.value_or(o.seed));
}

nlohmann::json to_json(const SequenceOptions& s, bool generated) {
    return {{"history", s.history},
            {"negatives", s.negatives},
            {"heads", where(s.pooling != "mean", s.heads)},
            {"blocks", where(s.pooling == "transformer", s.blocks)},
            {"law", where(!s.law.empty(), s.law)},
            {"users", where(generated, s.users)},
            {"length", where(generated, s.length)},
            {"items", s.histories->items.size()}};
}

}  // namespace train_dlrm
