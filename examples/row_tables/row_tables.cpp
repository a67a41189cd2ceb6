// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "row_tables.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "shardwise/checkpoint/profile_file.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/planning/row_law.hpp"

namespace row_tables {

namespace {

sw::RowDistribution read_file(const std::string& file) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    const bool terminal = isatty(STDERR_FILENO) != 0;
    double shown = 0;
    const auto progress = [&](std::int64_t lines, double share) {
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        if (seconds - shown < (shown == 0 || !terminal ? 2.0 : 0.2)) return;
        shown = seconds;
        fmt::print(stderr, "{}{}: {:.1f} million lines, {:.2g} million a second{}{}", terminal ? "\r" : "", file,
                   1e-6 * static_cast<double>(lines), 1e-6 * static_cast<double>(lines) / seconds,
                   share > 0 ? fmt::format(", {:.0f} s left ", seconds * (1 - share) / share) : "",
                   terminal ? "" : "\n");
    };
    sw::RowDistribution distribution = sw::read_row_distribution(file, progress);
    if (shown > 0 && terminal) fmt::print(stderr, "\n");
    return distribution;
}

}  // namespace

void add_options(CLI::App& app, Options& options, const std::vector<int>& dims) {
    options.dims = dims;
    app.add_option("--distribution", options.distributions,
                   "Files of how often rows are looked up, each a table: lines `rows p`, in any order, say that so "
                   "many rows have p look-ups a sample each")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name("FILE")
        ->default_str("");
    app.add_option(
           "--law", options.laws,
           "The same as a law of p by a row's rank i = 1 to E, a table; may be given again. "
           "slopes:E:n1:n2:n3:p1:s0:s1:s2:s3 is a power law in pieces: min(1, p1 (i/n1)^-s0) up to n1, then exponent "
           "s1 up to n2, s2 up to n3, s3 up to E. zipf_mandelbrot:E:s:q:c is min(1, c/(i+q)^s). zipf:E[:s[:L]] "
           "(i^-s), exponential:E:scale[:L] (e^(-i/scale)) and half_normal:E:scale[:L] (e^(-(i/scale)^2)) are scaled "
           "to L look-ups a sample; s and L are 1 where left out")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false)
        ->type_name("LAW")
        ->default_str("");
    app.add_option("--profile", options.profile,
                   "Access profile of all tables, as profile_rows --out writes it, instead of --distribution and --law")
        ->type_name("FILE");
    app.add_option("--names", options.names,
                   "Names of the tables of --distribution and --law, one each, as the model has them that is given "
                   "the plan. Unless given, the file or the law")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("NAME,...")
        ->default_str("");
    app.add_option("--dim", options.dims, "Elements of a row: one number, or one a table with commas between them")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("N,...")
        ->default_str(fmt::format("{}", fmt::join(dims, ",")));
}

void finish(Options& options) {
    const std::size_t others = options.distributions.size() + options.laws.size();
    if (options.profile.empty() && others == 0)
        throw sw::BadInput{
            "no table to plan for: give --distribution FILE or --law LAW, one a table, or --profile FILE"};
    if (!options.profile.empty() && others != 0)
        throw sw::BadInput{"--profile has all tables: give no --distribution and no --law beside it"};
    if (!options.profile.empty() && !options.names.empty())
        throw sw::BadInput{"--names has no effect with --profile: the profile names its tables"};
    if (!options.names.empty() && options.names.size() != others)
        throw sw::BadInput{fmt::format("--names {}: {} names for {} tables; give one a table, files before laws",
                                       fmt::join(options.names, ","), options.names.size(), others)};
    std::set<std::string> known;
    for (const std::string& name : options.names)
        if (name.empty() || !known.insert(name).second)
            throw sw::BadInput{
                fmt::format("--names {}: '{}' is empty or stands twice; give each table a name of its own",
                            fmt::join(options.names, ","), name)};
    if (!options.profile.empty()) options.access = sw::read_profile(options.profile);
    const std::size_t tables = options.profile.empty() ? others : options.access.tables.size();
    if (tables == 0) throw sw::BadInput{fmt::format("{}: a profile of no table", options.profile)};
    if (options.dims.size() > 1 && options.dims.size() != tables)
        throw sw::BadInput{fmt::format("--dim {}: {} numbers for {} tables; give one, or one a table",
                                       fmt::join(options.dims, ","), options.dims.size(), tables)};
    for (const int dim : options.dims)
        if (dim < 1) throw sw::BadInput{fmt::format("--dim {}: give at least 1", dim)};
    options.dims.resize(tables, options.dims.empty() ? 1 : options.dims.front());
}

std::vector<Table> read(const Options& options) {
    std::vector<Table> tables;
    const auto name = [&](const std::string& unless_given) {
        return options.names.empty() ? unless_given : options.names[tables.size()];
    };
    for (const std::string& file : options.distributions)
        tables.push_back({.name = name(file), .distribution = read_file(file), .law = false});
    for (const std::string& law : options.laws)
        tables.push_back({.name = name(law), .distribution = sw::row_law(law), .law = true});
    return tables;
}

}  // namespace row_tables
