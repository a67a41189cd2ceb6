// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "figures.hpp"
#include "options.hpp"
#include "output_files.hpp"
#include "result.hpp"
#include "shardwise/checkpoint/row_plan_file.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/sharding/row_plan.hpp"

/// \file
/// Which rows of embedding tables to replicate, by how often each is looked up.

namespace {

using plan_rows::Options;

int run(const Options& o) {
    for (const std::string* path : {&o.json, &o.svg, &o.out})
        if (!path->empty()) output_files::check_writable(*path, path == &o.out);
    const plan_rows::Result result = plan_rows::plan(o);
    plan_rows::print(result, o);
    if (!o.out.empty()) {
        shardwise::RowPlan rows = plan_rows::row_plan(result, o);
        for (shardwise::TableRowPlan& table : rows.tables)
            table.reduction = o.reduction;
        shardwise::write_row_plan(o.out, rows);
    }
    if (!o.json.empty()) output_files::write_text(o.json, plan_rows::to_json(result, o).dump(1) + "\n");
    if (!o.svg.empty()) output_files::write_text(o.svg, plan_rows::figures(result, o));
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
