// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "output_files.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/data/criteo_tables.hpp"
#include "train_dlrm/options.hpp"

namespace profile_rows {

namespace {

namespace sw = shardwise;

void check(const Options& o) {
    for (const std::int64_t rows : o.rows)
        if (rows < 1) throw sw::BadInput{fmt::format("--rows {}: give at least 1", rows)};
    if (o.form == Form::clicks) {
        if (o.rows.size() != 1 && o.rows.size() != train_dlrm::categories)
            throw sw::BadInput{fmt::format("--rows: {} numbers; give one for all features, or {}", o.rows.size(),
                                           train_dlrm::categories)};
    } else if (o.rows.size() > 1) {
        throw sw::BadInput{
            fmt::format("--rows: {} numbers for the one table of --{}; give one", o.rows.size(), name_of(o.form))};
    }
    for (const std::int64_t count : o.hottest)
        if (count < 1) throw sw::BadInput{fmt::format("--hottest {}: give at least 1", count)};
    for (const std::int64_t rows : o.caches)
        if (rows < 4) throw sw::BadInput{fmt::format("--cache {}: give at least 4 rows, one a quarter", rows)};
    if (o.split && *o.split < 1) throw sw::BadInput{fmt::format("--split {}: give at least 1 line", *o.split)};
    if (o.ranks < 1) throw sw::BadInput{fmt::format("--ranks {}: give at least 1", o.ranks)};
    for (const std::string* path : {&o.out, &o.svg, &o.json})
        if (!path->empty()) output_files::check_writable(*path, path == &o.out);
}

}  // namespace

const char* name_of(Form form) {
    return form == Form::clicks ? "data" : form == Form::trace ? "trace" : "sequences";
}

std::optional<Options> parse_options(int argc, const char* const* argv, std::string& text) {
    Options o;
    o.hottest = {100, 1000, 10000};
    std::vector<std::string> files[3];
    std::int64_t split = 0;
    CLI::App app{
        "Counts how often each row of each table is looked up, and in how many samples: an access profile, from which\n"
        "rows are placed by how often they are used. Shows what share of the look-ups the hottest rows take.\n"
        "Exit status: 0 done; 2 bad usage or bad input; 3 a peer failed or a deadline passed.",
        "profile_rows"};
    app.option_defaults()->always_capture_default();
    const char* input = "Input, one of these";
    app.add_option("--data", files[0],
                   "Click logs, plain or gzip, or numpy files, as of train_dlrm: 26 tables, a line is a sample")
        ->default_str("")
        ->group(input);
    app.add_option("--trace", files[1], "Files with a row number a line: one table, a line is a look-up and a sample")
        ->default_str("")
        ->group(input);
    app.add_option("--sequences", files[2],
                   "Files of lines 'user item [more columns]': one table of items, a line is a look-up and a sample")
        ->default_str("")
        ->group(input);
    app.add_option("--rows", o.rows,
                   "Rows of each table. Unless given: 5000 with --data, into which categories are hashed (26 numbers "
                   "with commas between them: of each), otherwise as many as there are, up to the largest number")
        ->delimiter(',')
        ->default_str("");
    app.add_option("--hottest", o.hottest,
                   "Coverage of so many rows, the most often looked up; of equal ones the smaller row number first")
        ->delimiter(',')
        ->default_str("100,1000,10000");
    auto* split_option =
        app.add_option("--split", split,
                       "Profile so many lines, and try the same rows on the lines behind them (coverage_after)")
            ->default_str("");
    app.add_option("--cache", o.caches,
                   "For each of these numbers of rows, the most often looked up of all tables: what share of samples "
                   "has no other row (they are hot), and a row of each quarter of them. The files are read once more; "
                   "with --split, the lines behind it are looked at")
        ->delimiter(',')
        ->type_name("N,...")
        ->default_str("");
    auto* counters = app.add_option("--counters", o.counters,
                                    "Count so many rows of a table at once: bounded memory, about 64 bytes each, and "
                                    "an error that is stated. Unless given: all rows, exactly")
                         ->default_str("");
    app.add_option("--ranks", o.ranks, "Threads that share the files");
    const char* output = "Output";
    app.add_option("--out", o.out, "File for the profile (safetensors); with --split, of the lines before")
        ->default_str("")
        ->group(output);
    app.add_option("--svg", o.svg, "File for a picture of the frequencies of rows, sorted (SVG)")
        ->default_str("")
        ->group(output);
    app.add_option("--json", o.json, "File for the report")->default_str("")->group(output);
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        text = app.help();
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        throw sw::BadInput{std::string{error.what()} + " (profile_rows --help shows all options)"};
    }
    int given = 0;
    for (const Form form : {Form::clicks, Form::trace, Form::sequences}) {
        std::vector<std::string>& names = files[static_cast<int>(form)];
        if (names.empty()) continue;
        ++given;
        o.form = form;
        o.files = std::move(names);
    }
    if (given != 1)
        throw sw::BadInput{
            fmt::format("{} of --data, --trace and --sequences {}: give one of them (profile_rows --help shows all "
                        "options)",
                        given == 0 ? "none" : "several", given == 0 ? "is given" : "are given")};
    if (o.form == Form::clicks && o.rows.empty()) o.rows = {5000};
    if (split_option->count() != 0) o.split = split;
    if (counters->count() != 0 && o.counters < 1)
        throw sw::BadInput{
            fmt::format("--counters {}: give at least 1, or leave it out to count every row", o.counters)};
    check(o);
    return o;
}

}  // namespace profile_rows
