// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "place_rows.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "data.hpp"
#include "reading_progress.hpp"
#include "rows_report.hpp"
#include "shardwise/checkpoint/profile_file.hpp"
#include "shardwise/comm/collectives.hpp"
#include "shardwise/planning/access_counter.hpp"
#include "shardwise/planning/merge_ranks.hpp"
#include "shardwise/planning/row_plans.hpp"
#include "tune_cache.hpp"

namespace train_dlrm {

namespace {

/// What can be read once only, as a pipe, is not read for a profile.
void check_readable_twice(const std::vector<std::string>& files) {
    for (const std::string& file : files) {
        std::error_code ignored;
        if (std::filesystem::exists(file, ignored) && !std::filesystem::is_regular_file(file, ignored))
            throw sw::BadInput{
                fmt::format("{} is no regular file, and --sharding tiered reads the data once more, to profile it: "
                            "give --profile FILE or --plan FILE, or a regular file",
                            file)};
    }
}

void count_samples(const Options& o, sw::CommunicatorRef comm, sw::AccessCounter& counter) {
    check_readable_twice(o.data);
    const auto data = training_data(o, comm.rank(), comm.size());
    const bool first = comm.rank() == 0;
    ReadingProgress progress{first ? estimate_samples(o) / comm.size() : 0, first, comm.size(),
                             "profiling the training data: "};
    while (const sw::ClickBatch* batch = data->next()) {
        counter.add(batch->ids.view());
        progress.samples(counter.samples());
    }
    progress.done();
}

/// What all ranks' training data looks up in one pass; kept in a file where that is asked for. Collective.
sw::AccessProfile profile_training_data(const Options& o, sw::CommunicatorRef comm) {
    sw::AccessCounter counter{tables_of(o)};
    std::string wrong;
    try {
        count_samples(o, comm, counter);
    } catch (const sw::BadInput& error) {
        wrong = error.what();
    }
    sw::agree_on_input(comm, wrong);
    sw::AccessProfile profile = sw::merged_across_ranks(comm, counter.profile());
    if (o.profile_out.empty()) return profile;
    try {
        if (comm.rank() == 0) sw::write_profile(o.profile_out, profile);
    } catch (const sw::BadInput& error) {
        wrong = error.what();
    }
    sw::agree_on_input(comm, wrong);
    return profile;
}

void say(const Options& o) {
    const RowsReport rows = rows_of(*o.row_plan);
    std::string tiers;
    for (const RowTier& tier : rows.tiers)
        tiers += fmt::format("{}{} {} rows, {:.2f} % of the look-ups", tiers.empty() ? "" : "; ", tier.name, tier.rows,
                             tier.expected.value_or(0));
    fmt::print("rows placed by {}: {}\n", o.profile.empty() ? "a profile of the training data" : o.profile, tiers);
    std::fflush(stdout);
}

}  // namespace

Options place_rows(const Options& options, sw::CommunicatorRef comm) {
    if (options.policies.sharding != "tiered" || options.row_plan != nullptr) return options;
    Options o = options;
    const sw::Scaling scaling{.topology = group_topology(o, comm.topology()), .batch = o.batch};
    const auto plan = [&](const sw::AccessProfile& profile) {
        const std::vector<int> dims(profile.tables.size(), o.dim);
        return sw::plan_profile(profile, dims, scaling, sw::paper_row_memory(scaling), o.placing,
                                scaling.topology.ranks());
    };
    if (o.access == nullptr) o.access = std::make_shared<const sw::AccessProfile>(profile_training_data(o, comm));
    if (!o.tune_cache.empty()) {
        for (const std::int64_t rows : o.tune_cache)  // is wrong before anything is timed
            o.row_plan = std::make_shared<const sw::RowPlan>(
                cache_plan(*o.access, rows, o.batch, group_topology(o, comm.topology())));
        return o;
    }
    o.row_plan = std::make_shared<const sw::RowPlan>(plan(*o.access));
    o.access = nullptr;
    o.policies.tiers = o.row_plan->tiers;
    if (comm.rank() == 0) say(o);
    return o;
}

}  // namespace train_dlrm
