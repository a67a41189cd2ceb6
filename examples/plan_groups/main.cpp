// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "groups.hpp"
#include "options.hpp"
#include "output_files.hpp"
#include "shardwise/core/error.hpp"

/// \file
/// Into how many groups to cut a cluster, each of which holds every table.

int main(int argc, char** argv) {
    try {
        std::string help;
        const std::optional<plan_groups::Options> options = plan_groups::parse_options(argc, argv, help);
        if (!options) {
            fmt::print("{}", help);
            return 0;
        }
        const plan_groups::Plan plan = plan_groups::make_plan(*options);
        plan_groups::print(plan, *options);
        if (!options->svg.empty()) output_files::write_text(options->svg, plan_groups::picture(plan, *options));
        if (!options->json.empty())
            output_files::write_text(options->json, plan_groups::to_json(plan, *options).dump(1) + "\n");
        return 0;
    } catch (const shardwise::Error& error) {
        std::fprintf(stderr, "plan_groups: %s\n", error.what());
        return error.exit_status();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "plan_groups: %s\n", error.what());
        return 3;
    }
}
