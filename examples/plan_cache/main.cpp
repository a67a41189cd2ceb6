// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "options.hpp"
#include "output_files.hpp"
#include "replay.hpp"
#include "shardwise/checkpoint/row_plan_file.hpp"
#include "shardwise/core/error.hpp"
#include "sizing.hpp"

/// \file
/// How many rows of embedding tables to cache on every rank.

namespace {

using plan_cache::Options;

int run(const Options& o) {
    nlohmann::ordered_json json;
    if (!o.replay.empty()) {
        const plan_cache::Replay replay = plan_cache::replay(o);
        plan_cache::print(replay, o);
        json = plan_cache::to_json(replay, o);
    } else {
        const plan_cache::Sizing sizing = plan_cache::size_cache(o);
        plan_cache::print(sizing, o);
        if (!o.out.empty()) shardwise::write_row_plan(o.out, plan_cache::row_plan(sizing, o));
        if (!o.svg.empty()) output_files::write_text(o.svg, plan_cache::picture(sizing));
        json = plan_cache::to_json(sizing, o);
    }
    if (!o.json.empty()) output_files::write_text(o.json, json.dump(1) + "\n");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        std::string help;
        const std::optional<Options> options = plan_cache::parse_options(argc, argv, help);
        if (options) return run(*options);
        fmt::print("{}", help);
        return 0;
    } catch (const shardwise::Error& error) {
        std::fprintf(stderr, "plan_cache: %s\n", error.what());
        return error.exit_status();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "plan_cache: %s\n", error.what());
        return 3;
    }
}
