// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "shardwise/planning/access_profile.hpp"
#include "shardwise/planning/coverage.hpp"

namespace profile_rows {

namespace {

namespace sw = shardwise;

/// Of one table, or of all together.
struct Line {
    std::string name;
    std::int64_t rows = 0;
    std::int64_t seen = 0;
    std::int64_t lookups = 0;
    std::int64_t error = 0;
    double lookups_per_sample = 0;
    std::vector<double> coverage;        ///< (hottest): percent
    std::vector<double> coverage_after;  ///< the same rows, in the samples behind the split
};

/// Percent of the look-ups of `of`, a table or a profile, for each number of hottest rows.
template <class Row, class Of>
std::vector<double> percents(const std::vector<std::int64_t>& hottest, const std::vector<Row>& rows, const Of& of) {
    std::vector<double> all;
    for (const std::int64_t count : hottest) {
        const auto first = static_cast<std::size_t>(std::min<std::int64_t>(count, std::ssize(rows)));
        all.push_back(100 * sw::coverage_of(std::span<const Row>{rows}.first(first), of));
    }
    return all;
}

/// Each table, and all of them last.
std::vector<Line> lines_of(const Profiles& profiles, const Options& o) {
    const sw::AccessProfile& profile = profiles.before;
    const std::int64_t most = *std::max_element(o.hottest.begin(), o.hottest.end());
    std::vector<Line> lines;
    Line all;
    all.name = "all";
    for (std::size_t t = 0; t != profile.tables.size(); ++t) {
        const sw::TableAccess& table = profile.tables[t];
        Line& line = lines.emplace_back();
        line.name = table.name;
        line.rows = table.rows;
        line.seen = std::ssize(table.seen);
        line.lookups = table.lookups;
        line.error = table.error;
        line.lookups_per_sample = sw::lookups_per_sample(table, profile.samples);
        const std::vector<std::int64_t> rows = sw::hottest_rows(table, most);
        line.coverage = percents(o.hottest, rows, table);
        if (profiles.after) line.coverage_after = percents(o.hottest, rows, profiles.after->tables[t]);
        all.rows += line.rows;
        all.seen += line.seen;
        all.lookups += line.lookups;
        all.error = std::max(all.error, line.error);
    }
    all.lookups_per_sample = sw::lookups_per_sample(profile);
    const std::vector<sw::TableRow> rows = sw::hottest_rows(profile, most);
    all.coverage = percents(o.hottest, rows, profile);
    if (profiles.after) all.coverage_after = percents(o.hottest, rows, *profiles.after);
    lines.push_back(all);
    return lines;
}

nlohmann::json line_json(const Line& line) {
    nlohmann::json json = {{"rows", line.rows},       {"rows_seen", line.seen},
                           {"lookups", line.lookups}, {"lookups_per_sample", line.lookups_per_sample},
                           {"error", line.error},     {"coverage", line.coverage}};
    if (!line.coverage_after.empty()) json["coverage_after"] = line.coverage_after;
    return json;
}

}  // namespace

nlohmann::json to_json(const Profiles& profiles, const Options& o) {
    const std::vector<Line> lines = lines_of(profiles, o);
    nlohmann::json json = line_json(lines.back());
    json["tables"] = nlohmann::json::array();
    for (const Line& line : std::span{lines}.first(lines.size() - 1)) {
        json["tables"].push_back(line_json(line));
        json["tables"].back()["name"] = line.name;
    }
    const std::int64_t after = profiles.after ? profiles.after->samples : 0;
    json["hottest"] = o.hottest;
    json["samples"] = profiles.before.samples;
    json["samples_after"] = profiles.after ? nlohmann::json(after) : nlohmann::json();
    json["samples_per_second"] =
        static_cast<double>(profiles.before.samples + after) / std::max(profiles.seconds, 1e-9);
    json["cache"] = nlohmann::json::array();
    for (const CacheUse& cache : profiles.caches) {
        const auto share = [&](std::int64_t samples) {
            return static_cast<double>(samples) / static_cast<double>(std::max<std::int64_t>(1, cache.samples));
        };
        nlohmann::json quarters = nlohmann::json::array();
        for (const std::int64_t samples : cache.quarters)
            quarters.push_back(share(samples));
        json["cache"].push_back({{"rows", cache.rows},
                                 {"samples", cache.samples},
                                 {"hot_share", share(cache.hot)},
                                 {"quarters", quarters}});
    }
    json["config"] = {{name_of(o.form), o.files}, {"rows", o.rows},
                      {"hottest", o.hottest},     {"split", o.split ? nlohmann::json(*o.split) : nlohmann::json()},
                      {"counters", o.counters},   {"ranks", o.ranks},
                      {"cache", o.caches}};
    return json;
}

std::string to_table(const Profiles& profiles, const Options& o) {
    const std::vector<Line> lines = lines_of(profiles, o);
    const std::int64_t error = lines.back().error;
    std::string text = fmt::format("{} samples", profiles.before.samples);
    if (profiles.after) text += fmt::format(", then {} on which the same rows are tried", profiles.after->samples);
    text += error == 0 ? "; counts are exact\n"
                       : fmt::format("; counts and coverage may be too low: a row's look-ups by at most {}\n", error);
    text += fmt::format("{:<8}{:>14}{:>12}{:>14}{:>12}{}", "table", "rows", "seen", "look-ups", "a sample",
                        error == 0 ? "" : fmt::format("{:>10}", "error"));
    for (const std::int64_t count : o.hottest)
        text += fmt::format("{:>18}", fmt::format("hottest {}", count));
    text += "\n";
    for (const Line& line : std::span{lines}.first(lines.size() == 2 ? 1 : lines.size())) {  // one table is all
        text += fmt::format("{:<8}{:>14}{:>12}{:>14}{:>12.4f}{}", line.name, line.rows, line.seen, line.lookups,
                            line.lookups_per_sample, error == 0 ? "" : fmt::format("{:>10}", line.error));
        for (std::size_t i = 0; i != line.coverage.size(); ++i)
            text +=
                fmt::format("{:>18}", line.coverage_after.empty()
                                          ? fmt::format("{:.2f} %", line.coverage[i])
                                          : fmt::format("{:.2f}, {:.2f} %", line.coverage[i], line.coverage_after[i]));
        text += "\n";
    }
    if (profiles.caches.empty()) return text;
    text += fmt::format("\n{:<16}{:>14}{:>44}\n", "cached rows", "hot samples", "samples with a row of each quarter");
    for (const CacheUse& cache : profiles.caches) {
        const auto percent = [&](std::int64_t samples) {
            return fmt::format("{:.2f} %", 100 * static_cast<double>(samples) /
                                               static_cast<double>(std::max<std::int64_t>(1, cache.samples)));
        };
        text += fmt::format("{:<16}{:>14}", cache.rows, percent(cache.hot));
        for (const std::int64_t samples : cache.quarters)
            text += fmt::format("{:>11}", percent(samples));
        text += "\n";
    }
    return text;
}

}  // namespace profile_rows
