// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "groups.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "shardwise/core/error.hpp"
#include "shardwise/planning/table_balance.hpp"
#include "shardwise/planning/workloads.hpp"
#include "svg_plot.hpp"

namespace plan_groups {

namespace {

using nlohmann::ordered_json;

std::string placement_of(const sw::GroupOptions& groups) {
    return groups.placement ? sw::name_of(*groups.placement) : "-";
}

/// "4 across", and how often copies are synced.
std::string name_of(const sw::GroupOptions& groups) {
    if (groups.count == 1) return "1";
    return fmt::format("{} {}{}", groups.count, placement_of(groups),
                       groups.sync_every == 1 ? "" : fmt::format(", every {}", *groups.sync_every));
}

std::string size_text(double bytes) {
    const std::array<std::pair<double, const char*>, 3> units{{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}}};
    for (const auto& [size, unit] : units)
        if (bytes >= size) return fmt::format("{:.4g} {}", bytes / size, unit);
    return fmt::format("{:.0f} B", bytes);
}

/// Tables of the options with loads, and what they are used for.
sw::Workload read_tables(const Options& o, std::vector<sw::TableConfig>& tables) {
    sw::Workload workload;
    if (!o.tables.profile.empty()) {
        for (std::size_t t = 0; t < o.tables.access.tables.size(); ++t)
            tables.push_back({.name = o.tables.access.tables[t].name,
                              .rows = o.tables.access.tables[t].rows,
                              .dim = o.tables.dims[t]});
        workload = sw::workload_of(o.tables.access, tables, o.batch);
    } else {
        std::vector<sw::RowDistribution> laws;
        for (row_tables::Table& table : row_tables::read(o.tables)) {
            const std::string name = fmt::format("{}: {}", tables.size() + 1, table.name);
            tables.push_back({.name = o.tables.names.empty() ? name : table.name,
                              .rows = table.distribution.rows(),
                              .dim = o.tables.dims[tables.size()]});
            laws.push_back(std::move(table.distribution));
        }
        workload = sw::workload_of(laws, tables, o.batch);
    }
    sw::set_loads(tables, workload);
    return workload;
}

/// Says how far it is, where that takes a while.
class Progress {
  public:
    explicit Progress(std::size_t all) : all_{all} {}
    void done(std::size_t number) {
        const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
        if (seconds < 1) return;
        fmt::print(stderr, "{}{} of {} ways, {:.1f} s each, {:.0f} s left{}", terminal_ ? "\r" : "", number, all_,
                   seconds / static_cast<double>(number),
                   seconds / static_cast<double>(number) * static_cast<double>(all_ - number), terminal_ ? " " : "\n");
        std::fflush(stderr);
        shown_ = true;
    }
    void end() const {
        if (shown_ && terminal_) fmt::print(stderr, "\r\x1b[2K");
    }

  private:
    using Clock = std::chrono::steady_clock;
    std::size_t all_;
    Clock::time_point start_ = Clock::now();
    bool terminal_ = isatty(STDERR_FILENO) != 0;
    bool shown_ = false;
};

std::vector<Balance> balance_of(const Plan& plan, const sw::DrawGroups& draw) {
    std::vector<Balance> all;
    std::set<int> seen;
    for (const sw::GroupChoice& choice : plan.choices) {
        if (!choice.refused.empty() || !seen.insert(choice.groups.count).second) continue;
        const sw::LayerBlueprint layer = draw(choice.groups);
        if (!layer.traits().shardings[0].together) return {};
        const sw::PlacedBlocks greedy = sw::blocks_of(layer.parts()[0].placement, layer.tables());
        Balance one{.groups = choice.groups.count, .greedy = sw::imbalance_of(greedy), .best = {}};
        if (const auto best = sw::best_placement(greedy)) one.best = sw::imbalance_of(*best);
        all.push_back(one);
    }
    return all;
}

}  // namespace

Plan make_plan(const Options& o) {
    Plan plan;
    const sw::Workload workload = read_tables(o, plan.tables);
    const sw::KnownPolicies known = policies();
    const sw::DrawGroups draw = [&](const sw::GroupOptions& groups) {
        return sw::draw_layer(o.topology, plan.tables, o.names, {.groups = groups}, known);
    };
    const double one_group = sw::table_bytes(draw({}));
    Progress progress{o.ways.size()};
    for (const sw::GroupOptions& way : o.ways) {
        plan.choices.push_back(sw::weigh_groups(draw, way, workload, o.setting, one_group));
        progress.done(plan.choices.size());
    }
    progress.end();
    if (std::all_of(plan.choices.begin(), plan.choices.end(),
                    [](const sw::GroupChoice& c) { return !c.refused.empty(); }))
        throw sw::BadInput{plan.choices.front().refused};
    plan.best = sw::best_groups(plan.choices);
    plan.balance = balance_of(plan, draw);
    return plan;
}

void print(const Plan& plan, const Options& o) {
    const int ranks = o.topology.ranks();
    std::int64_t rows = 0;
    for (const sw::TableConfig& table : plan.tables)
        rows += table.rows;
    fmt::print("{} table{} of {} rows on {} hosts of {} ranks, {} samples a rank, {}\n\n", plan.tables.size(),
               plan.tables.size() == 1 ? "" : "s", rows, o.topology.hosts, o.topology.ranks_per_host, o.batch,
               o.names.shardings[0]);
    std::size_t width = std::string{"groups"}.size();  // of the first column
    for (const sw::GroupChoice& c : plan.choices)
        width = std::max(width, name_of(c.groups).size());
    fmt::print("{:<{}} {:>5} | {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} | {:>9} {:>8} {:>8} {:>6} {:>7} {:>9}\n", "groups",
               width, "ranks", "tables", "moments", "flights", "syncs", "peak", "mean", "imbalance", "look-ups",
               "exchange", "sync", "step ms", "samples/s");
    for (std::size_t i = 0; i < plan.choices.size(); ++i) {
        const sw::GroupChoice& c = plan.choices[i];
        fmt::print("{:<{}} ", name_of(c.groups), width);
        if (!c.refused.empty()) {
            fmt::print("not possible: {}\n", c.refused);
            continue;
        }
        const auto ms = [](double seconds) { return fmt::format("{:.3f}", 1e3 * seconds); };
        fmt::print("{:>5} | {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} | {:>9.2f} {:>8} {:>8} {:>6} {:>7} {:>9.0f}{}\n",
                   ranks / c.groups.count, size_text(c.peak.tables), size_text(c.peak.moments),
                   size_text(c.peak.flights), size_text(c.peak.syncs), size_text(c.peak.total()),
                   size_text(c.mean_bytes), c.step.imbalance, ms(c.step.lookup * c.step.imbalance), ms(c.step.exchange),
                   ms(c.step.sync), ms(c.step.total()), static_cast<double>(o.batch * ranks) / c.step.total(),
                   !c.fits          ? "  does not fit"
                   : plan.best == i ? "  <- best"
                                    : "");
    }
    fmt::print(
        "\nMemory is of the rank that needs most, with {} of its own beside the layer; times are milliseconds, "
        "{:.3f} of compute in each step.\n",
        size_text(o.setting.other_bytes), 1e3 * o.setting.compute);
    if (!plan.best) fmt::print("No number of groups fits into {} a rank.\n", size_text(o.setting.room.value_or(0)));
    for (const Balance& b : plan.balance)
        fmt::print("{}{} group{}: the most loaded rank has {:.3f} times the mean as placed{}\n",
                   &b == plan.balance.data() ? "\nPlacement by load\n  " : "  ", b.groups, b.groups == 1 ? "" : "s",
                   b.greedy,
                   b.best ? fmt::format(", {:.3f} at best: a gap of {:.1f} %", *b.best, 100 * (b.greedy / *b.best - 1))
                          : "; the best is not known, there are too many blocks to try");
}

ordered_json to_json(const Plan& plan, const Options& o) {
    ordered_json choices = ordered_json::array();
    for (const sw::GroupChoice& c : plan.choices) {
        ordered_json& one = choices.emplace_back(ordered_json{
            {"groups", c.groups.count},
            {"group_placement", c.groups.placement ? ordered_json(placement_of(c.groups)) : ordered_json()},
            {"sync_every", c.groups.sync_every ? ordered_json(*c.groups.sync_every) : ordered_json()},
            {"refused", c.refused.empty() ? ordered_json() : ordered_json(c.refused)}});
        if (!c.refused.empty()) continue;
        one.update({{"memory",
                     {{"tables", c.peak.tables},
                      {"moments", c.peak.moments},
                      {"flights", c.peak.flights},
                      {"syncs", c.peak.syncs},
                      {"other", c.peak.other},
                      {"peak", c.peak.total()},
                      {"mean", c.mean_bytes},
                      {"overhead", c.overhead}}},
                    {"fits", c.fits},
                    {"imbalance", c.step.imbalance},
                    {"seconds",
                     {{"compute", c.step.compute},
                      {"lookup", c.step.lookup * c.step.imbalance},
                      {"exchange", c.step.exchange},
                      {"sync", c.step.sync},
                      {"step", c.step.total()}}},
                    {"samples_per_second", static_cast<double>(o.batch * o.topology.ranks()) / c.step.total()}});
    }
    ordered_json balance = ordered_json::array();
    for (const Balance& b : plan.balance)
        balance.push_back(
            {{"groups", b.groups}, {"greedy", b.greedy}, {"best", b.best ? ordered_json(*b.best) : ordered_json()}});
    return {{"config",
             {{"hosts", o.topology.hosts},
              {"ranks_per_host", o.topology.ranks_per_host},
              {"batch", o.batch},
              {"sharding", o.names.shardings[0]},
              {"collective", o.names.collective},
              {"optimizer", o.names.optimizer},
              {"compute", o.setting.compute},
              {"lookup_rate", o.setting.lookup_rate},
              {"memory", o.setting.room ? ordered_json(*o.setting.room) : ordered_json()},
              {"other_memory", o.setting.other_bytes}}},
            {"choices", choices},
            {"best", plan.best ? ordered_json(*plan.best) : ordered_json()},
            {"balance", balance}};
}

std::string picture(const Plan& plan, const Options& o) {
    using svg_plot::Panel;
    struct Part {
        std::string name;
        const char* colour;
    };
    std::vector<const sw::GroupChoice*> drawn;
    for (const sw::GroupChoice& c : plan.choices)
        if (c.refused.empty()) drawn.push_back(&c);
    /// Bars side by side, one a way, of parts on top of each other.
    const auto panel_of = [&](double left, const std::string& title, const std::string& name, double unit,
                              const std::vector<Part>& parts, auto values_of, double level, bool legend_left) {
        double most = level;
        for (const sw::GroupChoice* c : drawn) {
            const std::vector<double> values = values_of(*c);
            double sum = 0;
            for (const double value : values)
                sum += value / unit;
            most = std::max(most, sum);
        }
        Panel panel{left,
                    {.low = 0, .high = static_cast<double>(drawn.size()), .logarithmic = false, .numbered = false},
                    {.low = 0, .high = 1.15 * most},
                    title,
                    "",
                    name};
        for (std::size_t i = 0; i < drawn.size(); ++i) {
            const std::vector<double> values = values_of(*drawn[i]);
            double below = 0;
            const double x = static_cast<double>(i);
            for (std::size_t p = 0; p < parts.size(); ++p) {
                panel.bar(x + 0.15, x + 0.85, below, below + values[p] / unit, parts[p].colour);
                below += values[p] / unit;
            }
            panel.text(panel.at_x(x + 0.5), Panel::top + Panel::height + 16, name_of(drawn[i]->groups), "middle", 10);
            if (!drawn[i]->fits)
                panel.text(panel.at_x(x + 0.5), panel.at_y(below) - 6, "does not fit", "middle", 9, "#a01c5c");
        }
        if (level > 0) panel.level(level);
        for (std::size_t p = 0; p < parts.size(); ++p)
            panel.text(legend_left ? left + 8 : left + Panel::width - 8,
                       Panel::top + 16 + 14 * static_cast<double>(parts.size() - 1 - p), parts[p].name,
                       legend_left ? "start" : "end", 11, parts[p].colour);
        return panel.svg();
    };
    const double room = o.setting.room.value_or(0);
    double peak = room;
    for (const sw::GroupChoice* c : drawn)
        peak = std::max(peak, c->peak.total());
    const double unit = peak >= 1e9 ? 1e9 : 1e6;
    return svg_plot::picture(
        600 + Panel::width + 30, Panel::top + Panel::height + 60,
        panel_of(
            80, "Memory of the rank that needs most", unit == 1e9 ? "GB" : "MB", unit,
            {{"tables", "#1f5fa8"},
             {"moments", "#7fa6d6"},
             {"flights", "#b3541e"},
             {"syncs", "#e0a878"},
             {"other", "#888888"}},
            [](const sw::GroupChoice& c) {
                return std::vector{c.peak.tables, c.peak.moments, c.peak.flights, c.peak.syncs, c.peak.other};
            },
            room / unit, true) +
            panel_of(
                600, "A step by its parts", "ms", 1e-3,
                {{"compute", "#888888"}, {"look-ups", "#1f5fa8"}, {"exchange", "#b3541e"}, {"sync", "#3c8d40"}},
                [](const sw::GroupChoice& c) {
                    return std::vector{c.step.compute, c.step.lookup * c.step.imbalance, c.step.exchange, c.step.sync};
                },
                0, false));
}

}  // namespace plan_groups
