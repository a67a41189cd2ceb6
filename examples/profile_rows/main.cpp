// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "count.hpp"
#include "options.hpp"
#include "output_files.hpp"
#include "picture.hpp"
#include "report.hpp"
#include "shardwise/checkpoint/profile_file.hpp"
#include "shardwise/core/error.hpp"

/// \file
/// How often each row is looked up: profiles click logs, traces of rows and histories.

namespace {

namespace sw = shardwise;

int run(const profile_rows::Options& o) {
    const profile_rows::Profiles profiles = profile_rows::count_rows(o);
    fmt::print("{}", profile_rows::to_table(profiles, o));
    if (!o.out.empty()) sw::write_profile(o.out, profiles.before);
    if (!o.svg.empty())
        output_files::write_text(
            o.svg, profile_rows::picture(
                       profiles.before, fmt::format("Frequencies of rows, sorted: {} samples, {:.4g} look-ups a sample",
                                                    profiles.before.samples, sw::lookups_per_sample(profiles.before))));
    if (!o.json.empty()) output_files::write_text(o.json, profile_rows::to_json(profiles, o).dump(1) + "\n");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        std::string help;
        const std::optional<profile_rows::Options> options = profile_rows::parse_options(argc, argv, help);
        if (options) return run(*options);
        fmt::print("{}", help);
        return 0;
    } catch (const sw::Error& error) {
        std::fprintf(stderr, "profile_rows: %s\n", error.what());
        return error.exit_status();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "profile_rows: %s\n", error.what());
        return 3;
    }
}
