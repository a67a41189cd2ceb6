// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tune_cache.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "shardwise/core/error.hpp"
#include "shardwise/planning/coverage.hpp"
#include "shardwise/planning/expected_touches.hpp"
#include "shardwise/planning/row_plans.hpp"
#include "shardwise/planning/workloads.hpp"

namespace train_dlrm {

sw::RowPlan cache_plan(const sw::AccessProfile& profile, std::int64_t rows, std::int64_t batch,
                       const sw::Topology& topology) {
    const std::vector<sw::TableRow> hottest = sw::hottest_rows(profile, rows);
    if (std::ssize(hottest) < rows)
        throw sw::BadInput{
            fmt::format("--tune-cache {}: the profile saw {} rows; give at most so many", rows, hottest.size())};
    std::vector<std::vector<std::int64_t>> tiers(profile.tables.size(), {0, 0});
    for (const sw::TableRow& row : hottest)
        ++tiers[static_cast<std::size_t>(row.table)][0];
    sw::RowPlan plan = sw::plan_by_frequency(profile, {"dp", "row"}, tiers);
    sw::expect_touches(plan, sw::use_of(profile), batch, topology);
    return plan;
}

Options tune_cache(const Options& options, sw::CommunicatorRef comm,
                   const std::function<double(const Options&)>& step_seconds) {
    if (options.tune_cache.empty()) return options;
    constexpr int rounds = 3;  // in turns, as machines are not equally fast all the time
    const std::size_t sizes = options.tune_cache.size();
    std::vector<std::vector<double>> seconds(sizes);
    std::vector<std::shared_ptr<const sw::RowPlan>> plans;
    for (const std::int64_t rows : options.tune_cache)
        plans.push_back(std::make_shared<const sw::RowPlan>(
            cache_plan(*options.access, rows, options.batch, group_topology(options, comm.topology()))));
    for (int round = 0; round < rounds; ++round)
        for (std::size_t i = 0; i < sizes; ++i) {
            Options o = options;
            o.row_plan = plans[i];
            seconds[i].push_back(step_seconds(o));
        }
    Options o = options;
    o.access = nullptr;
    std::size_t best = 0;
    for (std::size_t i = 0; i < sizes; ++i) {
        std::sort(seconds[i].begin(), seconds[i].end());
        o.tuned.push_back({.rows = options.tune_cache[i], .step_seconds = seconds[i][rounds / 2]});
        if (o.tuned[i].step_seconds < o.tuned[best].step_seconds) best = i;
        if (comm.rank() == 0)
            fmt::print("cache of {} rows: {:.3f} ms a step\n", o.tuned[i].rows, 1e3 * o.tuned[i].step_seconds);
    }
    o.row_plan = plans[best];
    if (comm.rank() == 0) fmt::print("--tune-cache: {} rows\n", o.tuned[best].rows);
    std::fflush(stdout);
    return o;
}

}  // namespace train_dlrm
