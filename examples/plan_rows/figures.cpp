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

namespace plan_rows {

namespace {

constexpr double width = 400;  // of a panel's frame
constexpr double height = 320;
constexpr double top = 56;
constexpr const char* of_memory = "#b3541e";
constexpr const char* of_communication = "#1f5fa8";

/// An axis: numbers to pixels, straight or by their logarithms.
struct Axis {
    double low = 0;
    double high = 1;
    bool logarithmic = false;

    [[nodiscard]] double share(double value) const {
        return logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    }
    /// Round numbers inside.
    [[nodiscard]] std::vector<double> ticks() const {
        std::vector<double> all;
        if (logarithmic) {
            for (double tick = std::pow(10, std::ceil(std::log10(low) - 1e-9)); tick <= high * (1 + 1e-9); tick *= 10)
                all.push_back(tick);
            return all;
        }
        const double rough = (high - low) / 8;
        const double power = std::pow(10, std::floor(std::log10(rough)));
        const double step = power * (rough < 2 * power ? 2 : rough < 5 * power ? 5 : 10);
        for (double n = std::ceil(low / step); n * step <= high; ++n)
            all.push_back(n * step);
        return all;
    }
};

/// A frame with axes, and what is drawn in it.
class Panel {
  public:
    Panel(double left, Axis x, Axis y, const std::string& title, const std::string& x_name, const std::string& y_name)
        : left_{left}, x_{x}, y_{y} {
        text(left_ + width / 2, top - 18, title, "middle", 14);
        text(left_ + width / 2, top + height + 40, x_name, "middle");
        svg_ +=
            fmt::format("<text transform=\"translate({:.1f},{:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                        left_ - 50, top + height / 2, y_name);
        for (const double tick : x_.ticks()) {
            straight(at_x(tick), top, at_x(tick), top + height, "#e4e4e4");
            text(at_x(tick), top + height + 16, fmt::format("{:.4g}", tick), "middle");
        }
        for (const double tick : y_.ticks()) {
            straight(left_, at_y(tick), left_ + width, at_y(tick), "#e4e4e4");
            text(left_ - 6, at_y(tick) + 4, fmt::format("{:.4g}", tick), "end");
        }
        svg_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#444\"/>\n",
                            left_, top, width, height);
    }

    [[nodiscard]] double at_x(double value) const { return left_ + width * x_.share(value); }
    [[nodiscard]] double at_y(double value) const { return top + height * (1 - y_.share(value)); }
    [[nodiscard]] bool holds(double x, double y) const {
        return x_.share(x) >= -1e-9 && x_.share(x) <= 1 + 1e-9 && y_.share(y) >= -1e-9 && y_.share(y) <= 1 + 1e-9;
    }

    void line(const std::vector<std::pair<double, double>>& points, const char* colour) {
        svg_ += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"", colour);
        for (const auto& [x, y] : points)
            if (holds(x, y)) svg_ += fmt::format("{:.1f},{:.1f} ", at_x(x), at_y(y));
        svg_ += "\"/>\n";
    }
    void dot(double x, double y, double radius, const char* colour, const std::string& name = "") {
        svg_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", at_x(x), at_y(y), radius,
                            colour);
        if (!name.empty()) text(at_x(x) + 9, at_y(y) - 8, name, "start", 13);
    }
    /// A dashed line across the frame at y, or from top to bottom at x.
    void level(double y) { straight(left_, at_y(y), left_ + width, at_y(y), "#444", true); }
    void mark(double x, const char* colour) { straight(at_x(x), top, at_x(x), top + height, colour, true); }
    void text(double x, double y, const std::string& words, const char* anchor, int size = 11,
              const char* colour = "black") {
        svg_ +=
            fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"{}\">{}</text>\n",
                        x, y, anchor, size, colour, words);
    }
    [[nodiscard]] const std::string& svg() const noexcept { return svg_; }
    [[nodiscard]] double left() const noexcept { return left_; }

  private:
    void straight(double x1, double y1, double x2, double y2, const char* colour, bool dashed = false) {
        svg_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}/>\n", x1, y1,
                            x2, y2, colour, dashed ? " stroke-dasharray=\"4 3\"" : "");
    }

    double left_;
    Axis x_;
    Axis y_;
    std::string svg_;
};

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
    for (Axis* axis : {&x, &y}) {
        const double margin = axis->high > axis->low ? 0.08 * (axis->high - axis->low) : 1;
        *axis = {.low = axis->low - margin, .high = axis->high + margin};
    }
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
    const double all = 600 + width + 30;
    const double high = top + height + 125;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
               "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
               all, high) +
           ratios(result, o) + replication(result, o) + "</svg>\n";
}

}  // namespace plan_rows
