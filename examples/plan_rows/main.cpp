// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "figures.hpp"
#include "options.hpp"
#include "result.hpp"
#include "shardwise/core/error.hpp"

/// \file
/// Which rows of embedding tables to replicate, by how often each is looked up.

namespace {

using plan_rows::Options;

/// Opens a file for writing before the work begins. \throws BadInput when it cannot be written
std::optional<std::ofstream> writable(const std::string& path) {
    if (path.empty()) return std::nullopt;
    std::ofstream file{path};
    if (!file) throw shardwise::BadInput{path + ": cannot be written"};
    return file;
}

void write(std::optional<std::ofstream>& file, const std::string& path, const std::string& text) {
    if (file && !(*file << text).flush()) throw shardwise::BadInput{path + ": cannot be written"};
}

int run(const Options& o) {
    const plan_rows::Result result = plan_rows::plan(o);
    std::optional<std::ofstream> json = writable(o.json);
    std::optional<std::ofstream> svg = writable(o.svg);
    plan_rows::print(result, o);
    if (json) write(json, o.json, plan_rows::to_json(result, o).dump(1) + "\n");
    if (svg) write(svg, o.svg, plan_rows::figures(result, o));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        std::string help;
        const std::optional<Options> options = plan_rows::parse_options(argc, argv, help);
        if (options) return run(*options);
        fmt::print("{}", help);
        return 0;
    } catch (const shardwise::Error& error) {
        std::fprintf(stderr, "plan_rows: %s\n", error.what());
        return error.exit_status();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "plan_rows: %s\n", error.what());
        return 3;
    }
}
