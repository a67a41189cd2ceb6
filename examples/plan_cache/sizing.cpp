// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sizing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "shardwise/planning/expected_touches.hpp"
#include "shardwise/planning/row_plans.hpp"
#include "shardwise/planning/workloads.hpp"
#include "svg_plot.hpp"

namespace plan_cache {

namespace {

using nlohmann::ordered_json;
using Step = sw::CacheCosts::Step;

/// Expected traffic of a batch by the paper, in elements, and of this library, in bytes, where all rows are elsewhere.
struct BatchTraffic {
    double raw = 0;        ///< (4): a row a look-up
    double coalesced = 0;  ///< (3), with the factor d of (5): an index a look-up, a row a distinct one
    double ids = 0;        ///< bytes: an id of 4 a distinct row
    double rows = 0;       ///< bytes: a row a distinct one, and a gradient of the same size back
};

BatchTraffic traffic_of(const Sizing& s) {
    BatchTraffic traffic;
    for (const sw::CacheTable& table : s.tables) {
        const double unique = table.unique(s.batch);
        traffic.raw += s.batch * table.lookups() * table.size;
        traffic.coalesced += s.batch * table.lookups() + unique * table.size;
        traffic.ids += 4 * unique;
        traffic.rows += 4 * unique * table.size;
    }
    return traffic;
}

/// What the last cached row does, and what the next would; none at an end.
struct Steps {
    std::optional<Step> last;
    std::optional<Step> next;
};

Steps steps_at(const Sizing& s) {
    Steps steps;
    if (s.size.cached > 0) steps.last = s.costs->step(s.size.cached - 1);
    if (s.size.cached < s.costs->most_cached()) steps.next = s.costs->step(s.size.cached);
    return steps;
}

ordered_json step_json(const std::optional<Step>& step) {
    if (!step) return {};
    return {{"saved", step->saved},
            {"lost", step->lost},
            {"sufficient", step->sufficient},
            {"pays", step->pays()},
            {"surely_pays", step->surely_pays()}};
}

std::string step_text(const Step& step) {
    return fmt::format("saves {:.4g} a batch (11), smaller batches cost {:.4g} (12): it {}; at most {:.4g} (13): {}",
                       step.saved, step.lost, step.pays() ? "pays" : "does not pay", step.sufficient,
                       step.surely_pays() ? "surely" : "not sure by this alone");
}

std::vector<Size> curve_of(const sw::CacheCosts& costs, std::int64_t size) {
    constexpr std::int64_t points = 200;
    std::vector<std::int64_t> rows{size};
    for (std::int64_t i = 0; i <= points; ++i)
        rows.push_back(static_cast<std::int64_t>(static_cast<double>(costs.most_cached()) * static_cast<double>(i) /
                                                 static_cast<double>(points)));
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    std::vector<Size> curve;
    for (const std::int64_t cached : rows)
        curve.push_back({.cached = cached, .batch = costs.batch(cached), .cost = costs.cost(cached)});
    return curve;
}

}  // namespace

double Sizing::unique() const {
    double sum = 0;
    for (const sw::CacheTable& table : tables)
        sum += table.unique(batch);
    return sum;
}

double Sizing::lookups() const {
    double sum = 0;
    for (const sw::CacheTable& table : tables)
        sum += table.lookups();
    return sum;
}

Sizing size_cache(const Options& o) {
    Sizing s{.tables = tables_of(o),
             .batch = static_cast<double>(o.batch),
             .costs = std::nullopt,
             .best = {},
             .size = {},
             .curve = {}};
    if (!o.setting) return s;
    s.costs.emplace(s.tables, *o.setting);
    s.best = sw::best_cache(*s.costs);
    const std::int64_t cached = o.cached.value_or(s.best.cached);
    s.size = {.cached = cached, .batch = s.costs->batch(cached), .cost = s.costs->cost(cached)};
    s.curve = curve_of(*s.costs, cached);
    if (o.batch == 0) s.batch = s.size.batch;
    return s;
}

void print(const Sizing& s, const Options& o) {
    std::int64_t rows = 0;
    for (const sw::CacheTable& table : s.tables)
        rows += table.rows();
    fmt::print("{} rows in {} table{}, {:.6g} look-ups a sample\n", rows, s.tables.size(),
               s.tables.size() == 1 ? "" : "s", s.lookups());
    fmt::print("a batch of {:.6g} samples has {:.6g} look-ups of U = {:.6f} distinct rows\n", s.batch,
               s.batch * s.lookups(), s.unique());
    if (o.dims_given) {
        const BatchTraffic traffic = traffic_of(s);
        fmt::print("  as the paper counts, elements a batch: {:.6g} uncoalesced (4), {:.6g} coalesced (3)\n",
                   traffic.raw, traffic.coalesced);
        fmt::print(
            "  --requests coalesced of this library, bytes a batch, all rows elsewhere: {:.6g} of ids, {:.6g} of rows, "
            "as many of gradients\n",
            traffic.ids, traffic.rows);
    }
    if (!s.costs) return;
    if (!o.runs.empty()) fmt::print("a sample takes {:.6g} elements, by both runs\n", o.setting->activation);
    fmt::print("\n{:<28} {:>12} {:>14} {:>22}\n", "cache", "rows", "batch", "elements an epoch");
    const auto line = [](const char* name, const Size& size) {
        fmt::print("  {:<26} {:>12} {:>14.6g} {:>22.10g}\n", name, size.cached, size.batch, size.cost);
    };
    line("none", {.cached = 0, .batch = s.costs->batch(0), .cost = s.best.cost_uncached});
    line("the best", {.cached = s.best.cached, .batch = s.best.batch, .cost = s.best.cost});
    if (o.cached) line("--cached", s.size);
    line("the most there is room for", s.curve.back());
    const Steps steps = steps_at(s);
    fmt::print("\n");
    if (steps.last) fmt::print("the last row: {}\n", step_text(*steps.last));
    if (steps.next) fmt::print("one row more: {}\n", step_text(*steps.next));
    fmt::print("{} evaluations of a difference, {} cached rows at most\n", s.best.evaluations, s.costs->most_cached());
    if (!o.least_batch_given && !o.cached && s.best.batch <= 8)
        fmt::print(
            "the least traffic leaves batches of {:.3g} samples: give --least-batch with the smallest that trains "
            "well\n",
            s.best.batch);
    if (s.tables.size() > 1) {
        const std::vector<std::int64_t> cached = s.costs->rows_of_tables(s.size.cached);
        fmt::print("\n{:<44} {:>12} {:>12} {:>10}\n", "table", "rows", "cached", "look-ups");
        for (std::size_t t = 0; t < s.tables.size(); ++t)
            fmt::print("  {:<42} {:>12} {:>12} {:>10.4g}\n", s.tables[t].name, s.tables[t].rows(), cached[t],
                       s.tables[t].lookups());
    }
}

ordered_json to_json(const Sizing& s, const Options& o) {
    ordered_json tables = ordered_json::array();
    const std::vector<std::int64_t> cached =
        s.costs ? s.costs->rows_of_tables(s.size.cached) : std::vector<std::int64_t>(s.tables.size());
    for (std::size_t t = 0; t < s.tables.size(); ++t) {
        const sw::CacheTable& table = s.tables[t];
        tables.push_back({{"name", table.name},
                          {"rows", table.rows()},
                          {"dim", o.dims_given ? ordered_json(o.tables.dims[t]) : ordered_json()},
                          {"lookups_per_sample", table.lookups()},
                          {"unique", table.unique(s.batch)},
                          {"cached", s.costs ? ordered_json(cached[t]) : ordered_json()}});
    }
    ordered_json json = {
        {"config",
         {{"distributions", o.tables.distributions},
          {"laws", o.tables.laws},
          {"profile", o.tables.profile},
          {"names", o.tables.names},
          {"dims", o.dims_given ? ordered_json(o.tables.dims) : ordered_json()},
          {"batch", o.batch == 0 ? ordered_json() : ordered_json(o.batch)}}},
        {"lookups_per_sample", s.lookups()},
        {"unique", s.unique()},
        {"unique_of", s.batch},
        {"batch", s.batch},
        {"tables", tables},
    };
    if (o.dims_given) {
        const BatchTraffic traffic = traffic_of(s);
        json["batch_elements"] = {{"uncoalesced", traffic.raw}, {"coalesced", traffic.coalesced}};
        json["batch_bytes"] = {{"ids", traffic.ids}, {"rows", traffic.rows}, {"gradients", traffic.rows}};
    }
    if (!s.costs) return json;
    const Steps steps = steps_at(s);
    ordered_json curve = ordered_json::array();
    for (const Size& size : s.curve)
        curve.push_back({{"cached", size.cached}, {"batch", size.batch}, {"cost", size.cost}});
    json["config"].update({{"memory", o.setting->memory},
                           {"activation", o.setting->activation},
                           {"runs", o.runs},
                           {"samples", o.setting->samples},
                           {"least_batch", o.setting->least_batch}});
    json["batch"] = s.size.batch;
    json.update({{"cached", s.size.cached},
                 {"cost", s.size.cost},
                 {"cost_uncached", s.best.cost_uncached},
                 {"best", {{"cached", s.best.cached}, {"batch", s.best.batch}, {"cost", s.best.cost}}},
                 {"most_cached", s.costs->most_cached()},
                 {"evaluations", s.best.evaluations},
                 {"last_row", step_json(steps.last)},
                 {"next_row", step_json(steps.next)},
                 {"curve", curve}});
    return json;
}

std::string picture(const Sizing& s) {
    using svg_plot::Panel;
    constexpr const char* of_cost = "#b3541e";
    constexpr const char* of_batch = "#1f5fa8";
    const auto panel_of = [&](double left, double Size::*value, const char* title, const char* name,
                              const char* colour) {
        double most = 0;
        std::vector<std::pair<double, double>> line;
        for (const Size& size : s.curve) {
            line.emplace_back(static_cast<double>(size.cached), size.*value);
            most = std::max(most, size.*value);
        }
        const svg_plot::Axis x = svg_plot::with_margin(0, static_cast<double>(s.costs->most_cached()));
        Panel panel{left, x, {.low = 0, .high = 1.08 * most}, title, "cached rows", name};
        panel.line(line, colour);
        const auto at = static_cast<double>(s.size.cached);
        panel.mark(at, "#a01c5c");
        panel.dot(at, s.size.*value, 5, "#a01c5c");
        const bool right = panel.at_x(at) > left + Panel::width / 2;
        panel.text(panel.at_x(at) + (right ? -9 : 9), Panel::top + 18,
                   fmt::format("{} rows: {:.6g}", s.size.cached, s.size.*value), right ? "end" : "start", 12,
                   "#a01c5c");
        return panel.svg();
    };
    return svg_plot::picture(600 + Panel::width + 30, Panel::top + Panel::height + 60,
                             panel_of(80, &Size::cost, "Expected traffic", "elements an epoch", of_cost) +
                                 panel_of(600, &Size::batch, "Batch that there is room for", "samples", of_batch));
}

sw::RowPlan row_plan(const Sizing& s, const Options& o) {
    const std::vector<std::int64_t> cached = s.costs->rows_of_tables(s.size.cached);
    std::vector<std::vector<std::int64_t>> tiers;
    for (std::size_t t = 0; t < cached.size(); ++t)
        tiers.push_back({cached[t], s.tables[t].rows() - cached[t]});
    const auto with_touches = [&](sw::RowPlan plan, const std::vector<sw::TableUse>& use) {
        const auto samples = std::max<std::int64_t>(1, std::llround(o.batch != 0 ? s.batch : s.size.batch));
        if (o.topology) sw::expect_touches(plan, use, samples, *o.topology);
        return plan;
    };
    if (!o.tables.profile.empty())
        return with_touches(sw::plan_by_frequency(o.tables.access, {"dp", "row"}, tiers), sw::use_of(o.tables.access));
    sw::RowPlan plan{.tiers = {"dp", "row"}, .tables = {}};
    std::vector<sw::TableUse> use;
    for (std::size_t t = 0; t < cached.size(); ++t) {
        sw::TableRowPlan& table = plan.tables.emplace_back();
        table.table = s.tables[t].name;
        table.rows = s.tables[t].rows();
        table.tiers = tiers[t];
        use.push_back({.table = table.table, .runs = s.tables[t].runs, .rows = {}});
    }
    return with_touches(std::move(plan), use);
}

}  // namespace plan_cache
