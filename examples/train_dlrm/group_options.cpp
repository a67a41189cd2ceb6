// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group_options.hpp"

#include <charconv>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "settings_json.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/topology/replica_groups.hpp"

namespace train_dlrm {

namespace {

sw::BadInput no_such_choice(const char* flag, const std::string& text, const char* choices) {
    return sw::BadInput{fmt::format("{} '{}': give {}", flag, text, choices)};
}

float parse_scale(const std::string& text, int groups) {
    float scale = 0;
    const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), scale);
    if (status != std::errc{} || stop != text.data() + text.size() || !(scale > 0) ||
        !(scale <= static_cast<float>(groups)))
        throw sw::BadInput{fmt::format(
            "--moment-scale '{}': give groups, or a number above 0 and at most {}, that of groups", text, groups)};
    return scale;
}

}  // namespace

void add_group_options(CLI::App& app, Options&, GroupFlags& flags) {
    const char* groups = "Replica groups";
    app.add_option("--groups", flags.groups,
                   "Groups of ranks that each hold every table (M): exchanges stay inside a group, and the copies of "
                   "each row become their mean behind the step")
        ->group(groups);
    app.add_option("--group-placement", flags.placement,
                   "Which ranks make a group: across (whole hosts, or an equal part of one) or inside (every M-th "
                   "rank: the copies of a row lie on one host)")
        ->group(groups);
    app.add_option("--sync-every", flags.sync_every,
                   "Steps from one sync of the copies to the next. Tests and saves in between sync first")
        ->group(groups);
    app.add_option("--sync", flags.sync, "Rows that a sync moves: touched (by any group, since the last one) or all")
        ->group(groups);
    app.add_flag("--sync-overlap,!--no-sync-overlap", flags.sync_overlap,
                 "A sync goes on behind the sum of dense gradients and the next bottom MLP, or ends before them; the "
                 "same results either way")
        ->group(groups);
    app.add_option("--moment-scale", flags.moment_scale,
                   "What moments of rows are divided by before their root is taken (c): a number up to that of groups, "
                   "or groups, that number")
        ->group(groups);
}

void read_groups(const CLI::App& app, Options& o, const GroupFlags& flags) {
    const auto given = [&](const char* flag) { return app.get_option(flag)->count() != 0; };
    if (flags.groups < 1) throw sw::BadInput{fmt::format("--groups {}: give at least 1", flags.groups)};
    for (const char* flag : {"--group-placement", "--sync-every", "--sync", "--sync-overlap", "--moment-scale"})
        if (flags.groups == 1 && given(flag))
            throw sw::BadInput{fmt::format(
                "{} without --groups has no effect: give both, or leave it out",
                std::string_view{flag} != "--sync-overlap" || flags.sync_overlap ? flag : "--no-sync-overlap")};
    o.groups.count = flags.groups;
    if (flags.groups == 1) return;
    using Placement = sw::GroupPlacement;
    if (flags.placement != "across" && flags.placement != "inside")
        throw no_such_choice("--group-placement", flags.placement, "across or inside");
    if (flags.sync != "touched" && flags.sync != "all") throw no_such_choice("--sync", flags.sync, "touched or all");
    if (flags.sync_every < 1) throw sw::BadInput{fmt::format("--sync-every {}: give at least 1", flags.sync_every)};
    o.groups.placement = flags.placement == "across" ? Placement::across_hosts : Placement::inside_hosts;
    o.groups.sync_every = flags.sync_every;
    o.groups.rows = flags.sync == "touched" ? sw::SyncRows::touched : sw::SyncRows::all;
    o.sync_overlap = flags.sync_overlap;
    if (flags.moment_scale != "groups") o.moment_scale = parse_scale(flags.moment_scale, flags.groups);
    if (o.policies.optimizer == "sgd" && given("--moment-scale"))
        throw sw::BadInput{"--moment-scale with --optimizer sgd has no effect: sgd has no moments; leave it out"};
}

sw::Topology group_topology(const Options& o, const sw::Topology& world) {
    return sw::replica_groups(world, o.groups.count, o.groups.placement.value_or(sw::GroupPlacement::across_hosts))
        .inside_group();
}

nlohmann::json groups_json(const Options& o) {
    const sw::GroupOptions& g = o.groups;
    const bool several = g.count > 1;
    const bool has_moments = o.policies.optimizer != "sgd";
    return {{"groups", g.count},
            {"group_placement", several ? nlohmann::json(sw::name_of(*g.placement)) : nlohmann::json()},
            {"sync_every", several ? nlohmann::json(*g.sync_every) : nlohmann::json()},
            {"sync", several ? nlohmann::json(sw::name_of(*g.rows)) : nlohmann::json()},
            {"sync_overlap", several ? nlohmann::json(o.sync_overlap) : nlohmann::json()},
            {"moment_scale",
             where(several && has_moments, as_given(o.moment_scale.value_or(static_cast<float>(g.count))))}};
}

}  // namespace train_dlrm
