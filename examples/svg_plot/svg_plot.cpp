// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "svg_plot.hpp"

#include <cmath>

#include <fmt/format.h>

namespace svg_plot {

double Axis::share(double value) const {
    return logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
}

std::vector<double> Axis::ticks() const {
    if (!numbered) return {};
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
        all.push_back(n * step + 0.0);  // and no minus before a zero
    return all;
}

Axis with_margin(double low, double high) {
    const double margin = high > low ? 0.08 * (high - low) : 1;
    return {.low = low - margin, .high = high + margin};
}

std::string escaped(const std::string& text) {
    std::string safe;
    for (const char c : text)
        safe += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string{c};
    return safe;
}

Panel::Panel(double left, Axis x, Axis y, const std::string& title, const std::string& x_name,
             const std::string& y_name)
    : left_{left}, x_{x}, y_{y} {
    text(left_ + width / 2, top - 18, title, "middle", 14);
    text(left_ + width / 2, top + height + 40, x_name, "middle");
    svg_ += fmt::format("<text transform=\"translate({:.1f},{:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                        left_ - 50, top + height / 2, y_name);
    for (const double tick : x_.ticks()) {
        straight(at_x(tick), top, at_x(tick), top + height, "#e4e4e4");
        text(at_x(tick), top + height + 16, fmt::format("{:.4g}", tick), "middle");
    }
    for (const double tick : y_.ticks()) {
        straight(left_, at_y(tick), left_ + width, at_y(tick), "#e4e4e4");
        text(left_ - 6, at_y(tick) + 4, fmt::format("{:.4g}", tick), "end");
    }
    svg_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#444\"/>\n", left_,
                        top, width, height);
}

void Panel::line(const std::vector<std::pair<double, double>>& points, const char* colour) {
    const auto inside = [](double share) { return share >= -1e-9 && share <= 1 + 1e-9; };
    svg_ += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"", colour);
    for (const auto& [x, y] : points)
        if (inside(x_.share(x)) && inside(y_.share(y))) svg_ += fmt::format("{:.1f},{:.1f} ", at_x(x), at_y(y));
    svg_ += "\"/>\n";
}

void Panel::dot(double x, double y, double radius, const char* colour, const std::string& name) {
    svg_ +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", at_x(x), at_y(y), radius, colour);
    if (!name.empty()) text(at_x(x) + 9, at_y(y) - 8, name, "start", 13);
}

void Panel::bar(double x1, double x2, double y1, double y2, const char* colour) {
    svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", at_x(x1),
                        at_y(y2), at_x(x2) - at_x(x1), at_y(y1) - at_y(y2), colour);
}

void Panel::level(double y) {
    straight(left_, at_y(y), left_ + width, at_y(y), "#444", true);
}

void Panel::mark(double x, const char* colour) {
    straight(at_x(x), top, at_x(x), top + height, colour, true);
}

void Panel::text(double x, double y, const std::string& words, const char* anchor, int size, const char* colour) {
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"{}\">{}</text>\n",
                        x, y, anchor, size, colour, words);
}

void Panel::straight(double x1, double y1, double x2, double y2, const char* colour, bool dashed) {
    svg_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}/>\n", x1, y1, x2,
                        y2, colour, dashed ? " stroke-dasharray=\"4 3\"" : "");
}

std::string picture(double width, double height, const std::string& panels) {
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
               "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
               width, height) +
           panels + "</svg>\n";
}

}  // namespace svg_plot
