// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tier_options.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "shardwise/checkpoint/profile_file.hpp"
#include "shardwise/checkpoint/row_plan_file.hpp"
#include "shardwise/core/error.hpp"

namespace train_dlrm {

void add_tier_options(CLI::App& app, Options& o, TierFlags& flags) {
    const char* group = "Rows by tier (--sharding tiered)";
    app.add_option("--plan", o.plan,
                   "File that says which rows are in which tier, as plan_rows --out writes it. Unless given, the "
                   "trainer plans by itself, as plan_rows --goal neutral does")
        ->type_name("FILE")
        ->group(group);
    app.add_option("--profile", o.profile,
                   "Access profile to plan from, as profile_rows --out writes it. Unless given, and without --plan: "
                   "the training data is read once more, before training, and profiled")
        ->type_name("FILE")
        ->group(group);
    app.add_option("--profile-out", o.profile_out,
                   "File for the access profile that the trainer counts itself, for plan_rows or --profile of later "
                   "runs")
        ->type_name("FILE")
        ->group(group);
    app.add_option("--tiers", flags.tiers, "Of the trainer's own plan: dp,flex,row, dp,row or flex,row")->group(group);
    app.add_option("--cut", flags.cut,
                   "Of the trainer's own plan, with dp and flex: rows go no further in dp when they take more memory "
                   "there than in row, or than in flex")
        ->group(group);
    app.add_option("--budget", flags.budget,
                   "Of the trainer's own plan: bytes that a rank may take above what it takes with all rows in row; "
                   "negative: below. Unless given: 0")
        ->type_name("BYTES")
        ->default_str("")
        ->group(group);
    app.add_option("--tune-cache", o.tune_cache,
                   "Instead of planning by formulas: time some steps with each of these numbers of rows in dp, the "
                   "most often used of all tables, and keep the fastest. With --tiers dp,row alone")
        ->delimiter(',')
        ->type_name("N,...")
        ->default_str("")
        ->group(group);
    app.add_flag("--hot-batches", o.hot_batches,
                 "Sort samples: those all of whose rows are in dp get batches of their own, which move no ids and no "
                 "vectors")
        ->group(group);
    app.add_option("--hot-batch", o.hot_batch, "Samples a rank of a hot batch. Unless given: --batch")
        ->type_name("N")
        ->default_str("")
        ->group(group);
    app.add_option("--hot-order", o.hot_order,
                   "spread: hot batches among the others, in proportion to their samples; first: before all others, "
                   "for which the data is read twice")
        ->group(group);
}

namespace {

bool given(const CLI::App& app, const char* flag) {
    return app.get_option(flag)->count() != 0;
}

/// How the trainer is to plan.
sw::FlexShardOptions parse_placing(const CLI::App& app, const TierFlags& flags) {
    sw::FlexShardOptions placing;
    placing.dp = flags.tiers == "dp,flex,row" || flags.tiers == "dp,row";
    placing.flex = flags.tiers == "dp,flex,row" || flags.tiers == "flex,row";
    if (!placing.dp && !placing.flex)
        throw sw::BadInput{fmt::format("--tiers '{}': give dp,flex,row or dp,row or flex,row", flags.tiers)};
    if (flags.cut != "row" && flags.cut != "flex")
        throw sw::BadInput{fmt::format("--cut '{}': give row or flex", flags.cut)};
    placing.cut = flags.cut == "row" ? sw::FlexShardCut::row : sw::FlexShardCut::flex;
    if (given(app, "--cut") && !(placing.dp && placing.flex))
        throw sw::BadInput{
            fmt::format("--cut has no effect with --tiers {}: it says where dp ends and flex begins", flags.tiers)};
    if (given(app, "--budget")) placing.budget = flags.budget;
    if (!(std::abs(flags.budget) <= 1e18))
        throw sw::BadInput{fmt::format("--budget {}: give a number of bytes", flags.budget)};
    if (!placing.dp && !(flags.budget > 0))
        throw sw::BadInput{
            fmt::format("--tiers flex,row with a budget of {} bytes: a row takes more memory in flex than in row, and "
                        "all would stay there; give --budget BYTES above 0",
                        flags.budget)};
    return placing;
}

/// \throws BadInput for sizes of caches that make no sense, and options beside them that have no effect
void check_tuning(const CLI::App& app, const Options& o) {
    if (o.tune_cache.empty()) return;
    for (const std::int64_t rows : o.tune_cache)
        if (rows < 1) throw sw::BadInput{fmt::format("--tune-cache {}: give at least 1 row", rows)};
    for (const char* flag : {"--cut", "--budget"})
        if (given(app, flag))
            throw sw::BadInput{fmt::format("{} has no effect with --tune-cache: it says how many rows dp has", flag)};
    if (given(app, "--tiers") && app.get_option("--tiers")->as<std::string>() != "dp,row")
        throw sw::BadInput{"--tune-cache is of tiers dp,row: leave --tiers out"};
    if (o.hot_batches)
        throw sw::BadInput{
            "--tune-cache with --hot-batches: steps of two kinds have no one time; tune the cache first, and give "
            "hot batches a plan of that size (plan_cache --cached)"};
}

/// \throws BadInput for options of hot batches that have no effect, or make no sense
void check_hot_batches(const CLI::App& app, const Options& o) {
    for (const char* flag : {"--hot-batch", "--hot-order"})
        if (given(app, flag) && !o.hot_batches)
            throw sw::BadInput{fmt::format("{} has no effect without --hot-batches", flag)};
    if (!o.hot_batches) return;
    if (given(app, "--hot-batch") && o.hot_batch < 1)
        throw sw::BadInput{fmt::format("--hot-batch {}: give at least 1", o.hot_batch)};
    if (o.hot_order != "spread" && o.hot_order != "first")
        throw sw::BadInput{fmt::format("--hot-order '{}': give spread or first", o.hot_order)};
    if (o.policies.sharding != "tiered")
        throw sw::BadInput{
            fmt::format("--hot-batches with --sharding {}: hot samples have rows of tier dp alone; give --sharding "
                        "tiered, or leave it out",
                        o.policies.sharding)};
    if (o.policies.tiers[0] != "dp")
        throw sw::BadInput{
            fmt::format("--hot-batches with tiers {}: hot samples have rows of tier dp alone; give tiers dp,row or "
                        "dp,flex,row, or leave it out",
                        fmt::join(o.policies.tiers, ","))};
}

/// \throws BadInput for tiers that there is no layer of
void check_tiers(const Options& o) {
    const std::vector<std::vector<std::string>> known{{"dp", "flex", "row"}, {"dp", "row"}, {"flex", "row"}};
    if (std::find(known.begin(), known.end(), o.policies.tiers) == known.end())
        throw sw::BadInput{fmt::format("--plan {}: its tiers are {}; give a plan of dp,flex,row or dp,row or flex,row",
                                       o.plan, fmt::join(o.policies.tiers, ","))};
}

}  // namespace

namespace {

void read_placing(const CLI::App& app, Options& o, const TierFlags& flags) {
    if (!o.plan.empty() && o.policies.sharding != "tiered")
        throw sw::BadInput{
            fmt::format("--plan {} says which rows are in which tier, and --sharding {} has none: give "
                        "--sharding tiered, or no plan",
                        o.plan, o.policies.sharding)};
    if (!o.plan.empty() && !o.profile.empty())
        throw sw::BadInput{
            fmt::format("--plan {} and --profile {}: the one says which rows are in which tier, and the other is to "
                        "plan that from; give one of them",
                        o.plan, o.profile)};
    for (const char* flag : {"--profile", "--profile-out", "--tiers", "--cut", "--budget", "--tune-cache"}) {
        if (!given(app, flag)) continue;
        if (o.policies.sharding != "tiered")
            throw sw::BadInput{
                fmt::format("{} has no effect with --sharding {}: it is for planning which rows are in which tier; "
                            "give --sharding tiered, or leave it out",
                            flag, o.policies.sharding)};
        if (!o.plan.empty())
            throw sw::BadInput{fmt::format(
                "{} has no effect with --plan {}: the plan is made; leave one of the two out", flag, o.plan)};
    }
    if (!o.profile.empty() && !o.profile_out.empty())
        throw sw::BadInput{fmt::format(
            "--profile-out has no effect with --profile {}: the trainer counts nothing itself; leave one of "
            "the two out",
            o.profile)};
    if (o.policies.sharding != "tiered") return;
    if (!o.plan.empty()) {
        o.row_plan = std::make_shared<const sw::RowPlan>(sw::read_row_plan(o.plan));
        o.policies.tiers = o.row_plan->tiers;
        check_tiers(o);
        return;
    }
    check_tuning(app, o);
    o.placing = parse_placing(app, flags);
    if (!o.tune_cache.empty()) o.placing.flex = false;
    o.policies.tiers.clear();
    if (o.placing.dp) o.policies.tiers.emplace_back("dp");
    if (o.placing.flex) o.policies.tiers.emplace_back("flex");
    o.policies.tiers.emplace_back("row");
    if (!o.profile.empty()) o.access = std::make_shared<const sw::AccessProfile>(sw::read_profile(o.profile));
}

}  // namespace

void read_tiers(const CLI::App& app, Options& o, const TierFlags& flags) {
    read_placing(app, o, flags);
    check_hot_batches(app, o);
}

void check_row_files(const Options& o) {
    try {
        if (o.access != nullptr) sw::require_tables(*o.access, tables_of(o));
        if (o.row_plan != nullptr) sw::require_tables(*o.row_plan, tables_of(o));
    } catch (const sw::BadInput& error) {
        const bool plan = o.row_plan != nullptr;
        throw sw::BadInput{
            fmt::format("{}: {}{}", plan ? o.plan : o.profile, error.what(),
                        plan ? " (plan_rows --profile keeps a profile's tables, --names names others)" : "")};
    }
}

nlohmann::json tiers_json(const Options& o) {
    const bool tiered = o.policies.sharding == "tiered";
    const bool plans = tiered && o.plan.empty();
    nlohmann::json json = {
        {"plan", o.plan}, {"profile", o.profile}, {"tiers", nullptr}, {"cut", nullptr}, {"budget", nullptr}};
    if (tiered) json["tiers"] = o.policies.tiers;
    json["tune_cache"] = o.tune_cache;
    json["hot_batch"] = o.hot_batches ? nlohmann::json(o.hot_batch == 0 ? o.batch : o.hot_batch) : nlohmann::json();
    json["hot_order"] = o.hot_batches ? nlohmann::json(o.hot_order) : nlohmann::json();
    if (plans) json["budget"] = o.placing.budget.value_or(0);
    if (plans && o.placing.dp && o.placing.flex) json["cut"] = o.placing.cut == sw::FlexShardCut::row ? "row" : "flex";
    return json;
}

}  // namespace train_dlrm
