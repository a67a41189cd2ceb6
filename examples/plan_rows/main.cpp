// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "figures.hpp"
#include "options.hpp"
#include "result.hpp"
#include "shardwise/checkpoint/row_plan_file.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/sharding/row_plan.hpp"

/// \file
/// Which rows of embedding tables to replicate, by how often each is looked up.

namespace {

using plan_rows::Options;

/// Asks, before the work begins, whether a file can be written, and makes none. \throws BadInput when it cannot
void check_writable(const std::string& path) {
    if (path.empty()) return;
    const std::filesystem::path folder = std::filesystem::path{path}.parent_path();
    std::error_code ignored;
    const bool there = access(path.c_str(), F_OK) == 0;
    if (access(there            ? path.c_str()
               : folder.empty() ? "."
                                : folder.c_str(),
               W_OK) != 0 ||
        std::filesystem::is_directory(path, ignored))
        throw shardwise::BadInput{path + ": cannot be written"};
}

void write(const std::string& path, const std::string& text) {
    if (!(std::ofstream{path} << text).flush()) throw shardwise::BadInput{path + ": cannot be written"};
}

int run(const Options& o) {
    check_writable(o.json);
    check_writable(o.svg);
    check_writable(o.out);
    const plan_rows::Result result = plan_rows::plan(o);
    plan_rows::print(result, o);
    if (!o.out.empty()) {
        shardwise::RowPlan rows = plan_rows::row_plan(result, o);
        for (shardwise::TableRowPlan& table : rows.tables)
            table.reduction = o.reduction;
        shardwise::write_row_plan(o.out, rows);
    }
    if (!o.json.empty()) write(o.json, plan_rows::to_json(result, o).dump(1) + "\n");
    if (!o.svg.empty()) write(o.svg, plan_rows::figures(result, o));
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
