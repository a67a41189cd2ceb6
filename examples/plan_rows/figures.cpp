// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "shardwise/planning/replication_curve.hpp"
#include "shardwise/planning/scaling.hpp"
#include "svg_plot.hpp"

namespace plan_rows {

namespace {

using svg_plot::Axis;
using svg_plot::Panel;
constexpr double width = Panel::width;
constexpr double height = Panel::height;
constexpr double top = Panel::top;
constexpr const char* of_memory = "#b3541e";
constexpr const char* of_communication = "#1f5fa8";

std::string ratios(const Result& r, const Options& o) {
    constexpr double least = 1e-6;
    std::vector<std::pair<double, double>> memory;
    std::vector<std::pair<double, double>> communication;
    for (int i = 0; i <= 300; ++i) {
        const double alpha = least * std::pow(10, 6.0 * i / 300);
        memory.emplace_back(alpha, dp_over_row_memory(r, o, alpha));
        if (const auto ratio = sw::dp_over_row(o.scaling, alpha).communication)
            communication.emplace_back(alpha, *ratio);
    }
    Panel panel{80,
                {.low = least, .high = 1, .logarithmic = true},
                {.low = 1e-5, .high = 1e4, .logarithmic = true},
                "A row in dp over one in row",
                "p, look-ups of the row in a sample",
                "dp / row"};
    panel.level(1);
    const auto neutral = [&](double p, const char* colour, double y) {
        if (!(p > least && p < 1)) return;
        panel.mark(p, colour);
        panel.text(panel.at_x(p) + 5, y, fmt::format("{:.4g}", p), "start", 11, colour);
    };
    neutral(r.neutral.memory_dp_row, of_memory, top + 52);
    if (r.neutral.communication_dp_row) neutral(*r.neutral.communication_dp_row, of_communication, top + 70);
    panel.line(memory, of_memory);
    panel.line(communication, of_communication);
    panel.text(panel.left() + 10, top + height - 26, "memory", "start", 12, of_memory);
    panel.text(panel.left() + 10, top + height - 10,
               communication.empty() ? "communication: not known without bandwidths" : "communication", "start", 12,
               of_communication);
    return panel.svg();
}

/// Up to where the curve is drawn: somewhat behind B, as the interesting part is small against the table.
std::int64_t last_drawn(const Result& r) {
    const std::int64_t all = r.rows.rows();
    if (r.points.b) return std::min(all, r.points.b->rows + r.points.b->rows / 5 + 1);
    if (r.points.a) return all;
    return std::max(r.points.c ? r.points.c->rows : 1, std::min(all, all / 90 + 1));
}

std::string replication(const Result& r, const Options& o) {
    const std::int64_t last = last_drawn(r);
    std::vector<std::int64_t> at;
    for (double i = 0; i <= 400; ++i)  // the first rows move it most
        at.push_back(static_cast<std::int64_t>(static_cast<double>(last) * std::pow(i / 400, 3)));
    const std::vector<sw::CurvePoint> curve = sw::replication_curve(r.rows, o.scaling, r.memory, at);
    const bool seconds = r.points.d.net_seconds.has_value();
    const auto place = [&](const sw::CurvePoint& point) {
        const double saved = -100 * point.lookups / r.rows.lookups();
        return std::pair{seconds ? 1e3 * *point.net_seconds : saved, point.net_bytes / 1e6};
    };
    Axis x{.low = 0, .high = 0};
    Axis y{.low = 0, .high = 0};
    std::vector<std::pair<double, double>> line;
    for (const sw::CurvePoint& point : curve) {
        line.push_back(place(point));
        x = {.low = std::min(x.low, line.back().first), .high = std::max(x.high, line.back().first)};
        y = {.low = std::min(y.low, line.back().second), .high = std::max(y.high, line.back().second)};
    }
    for (Axis* axis : {&x, &y})
        *axis = svg_plot::with_margin(axis->low, axis->high);
    Panel panel{600,
                x,
                y,
                fmt::format("Ever more rows in dp, up to {:.3g}% of all",
                            100 * static_cast<double>(last) / static_cast<double>(r.rows.rows())),
                seconds ? "communication against all rows in row, ms a step"
                        : "all-to-all against all rows in row, % of look-ups",
                "memory against all rows in row, MB a rank"};
    if (y.low < 0 && y.high > 0) panel.level(0);
    panel.line(line, "#222222");
    double each = 0.1;  // percent of all rows from dot to dot, as in the paper, or more where there would be many
    const auto percent_of_rows = [&](double percent) {
        return std::max<std::int64_t>(1, std::llround(percent / 100 * static_cast<double>(r.rows.rows())));
    };
    while (last / percent_of_rows(each) > 20)
        each *= 10;
    at.clear();
    for (std::int64_t rows = percent_of_rows(each); rows <= last; rows += percent_of_rows(each))
        at.push_back(rows);
    for (const sw::CurvePoint& point : sw::replication_curve(r.rows, o.scaling, r.memory, at))
        panel.dot(place(point).first, place(point).second, 2.5, "#222222");
    double below = top + height + 62;
    const auto point = [&](const char* name, const std::optional<sw::CurvePoint>& of) {
        const std::string where = !of ? fmt::format("{}: does not exist, or is not known", name)
                                      : fmt::format("{}: {} rows, {:.1f}% of look-ups, {}{}{}", name, of->rows,
                                                    100 * of->lookups / r.rows.lookups(), bytes_text(of->net_bytes),
                                                    seconds ? fmt::format(", {:.4g} ms", 1e3 * *of->net_seconds) : "",
                                                    of->rows > last ? ", outside" : "");
        panel.text(panel.left() - 40, below, where, "start");
        below += 16;
        if (of && of->rows <= last) panel.dot(place(*of).first, place(*of).second, 5, "#a01c5c", name);
    };
    point("A", r.points.a);
    point("B", r.points.b);
    point("C", r.points.c);
    point("D", r.points.d);
    panel.text(panel.left() + width, top + 16, fmt::format("a dot each {:.1f}% of rows", each), "end", 11, "#666666");
    return panel.svg();
}

}  // namespace

std::string figures(const Result& result, const Options& o) {
    return svg_plot::picture(600 + width + 30, top + height + 125, ratios(result, o) + replication(result, o));
}

}  // namespace plan_rows
