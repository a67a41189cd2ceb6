// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "shardwise/planning/coverage.hpp"
#include "svg_plot.hpp"

namespace profile_rows {

namespace {

constexpr double width = 760;
constexpr double height = 520;
constexpr double left = 80;
constexpr double top = 50;
constexpr double bottom = height - 60;
constexpr double right = width - 110;

/// Whole decades, as exponents, that hold all values.
struct Decades {
    int first = 0;
    int last = 1;

    [[nodiscard]] static Decades of(double low, double high) {
        const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
        return {first, std::max(first + 1, static_cast<int>(std::ceil(std::log10(high) - 1e-9)))};
    }
    /// Where a value stands between 0 and 1.
    [[nodiscard]] double place(double value) const { return (std::log10(value) - first) / (last - first); }
};

double x_of(const Decades& decades, double value) {
    return left + (right - left) * decades.place(value);
}
double y_of(const Decades& decades, double value) {
    return bottom - (bottom - top) * decades.place(value);
}

/// "0.01", "10" or "1e-5".
std::string power_text(int exponent) {
    return exponent < -2 || exponent > 3 ? fmt::format("1e{}", exponent)
                                         : fmt::format("{:g}", std::pow(10.0, exponent));
}

std::string axes(const Decades& ranks, const Decades& frequencies) {
    std::string svg;
    const auto line = [&](double x1, double y1, double x2, double y2, const char* colour) {
        svg += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1,
                           x2, y2, colour);
    };
    const auto label = [&](double x, double y, const char* anchor, int exponent) {
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                           power_text(exponent));
    };
    for (int exponent = ranks.first; exponent <= ranks.last; ++exponent) {
        const double x = x_of(ranks, std::pow(10.0, exponent));
        line(x, top, x, bottom, "#e4e4e4");
        label(x, bottom + 18, "middle", exponent);
    }
    for (int exponent = frequencies.first; exponent <= frequencies.last; ++exponent) {
        const double y = y_of(frequencies, std::pow(10.0, exponent));
        line(left, y, right, y, "#e4e4e4");
        label(left - 8, y + 4, "end", exponent);
    }
    line(left, top, left, bottom, "#444444");
    line(left, bottom, right, bottom, "#444444");
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">row, in the order of look-ups</text>\n",
                       (left + right) / 2, height - 18);
    return svg + fmt::format(
                     "<text transform=\"translate(24 {:.1f}) rotate(-90)\" text-anchor=\"middle\">p, look-ups a "
                     "sample</text>\n",
                     (top + bottom) / 2);
}

/// Points evenly spread over a logarithmic axis: of a million rows, no more than can be seen.
std::string curve(const std::vector<double>& sorted, const Decades& ranks, const Decades& frequencies,
                  const std::string& colour) {
    std::string points;
    std::size_t row = 0;
    for (;;) {
        const std::size_t shown = std::min(row, sorted.size() - 1);
        points += fmt::format("{:.1f},{:.1f} ", x_of(ranks, static_cast<double>(shown + 1)),
                              y_of(frequencies, sorted[shown]));
        if (shown == sorted.size() - 1) break;
        row = std::max(row + 1, static_cast<std::size_t>(static_cast<double>(row + 1) * 1.02));
    }
    points.pop_back();
    const char* end = sorted.size() == 1 ? " stroke-linecap=\"round\"" : "";  // one row is a point
    if (sorted.size() == 1) points += " " + points;
    return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"{}/>\n", points, colour,
                       end);
}

}  // namespace

std::string picture(const shardwise::AccessProfile& profile, const std::string& title) {
    std::vector<std::vector<double>> curves;
    double most_rows = 2;
    double high = 0;
    double low = 0;
    for (const shardwise::TableAccess& table : profile.tables) {
        const std::vector<double>& sorted = curves.emplace_back(sorted_frequencies(table, profile.samples));
        if (sorted.empty()) continue;
        most_rows = std::max(most_rows, static_cast<double>(sorted.size()));
        high = std::max(high, sorted.front());
        low = low == 0 ? sorted.back() : std::min(low, sorted.back());
    }
    const Decades ranks = Decades::of(1, most_rows);
    const Decades frequencies = high == 0 ? Decades{} : Decades::of(low, high);
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        "<text x=\"{2}\" y=\"28\" font-size=\"15\">{3}</text>\n",
        width, height, left, svg_plot::escaped(title));
    svg += axes(ranks, frequencies);
    const double step = std::min(18.0, (bottom - top) / std::max<double>(1, static_cast<double>(curves.size())));
    for (std::size_t t = 0; t != curves.size(); ++t) {
        if (curves[t].empty()) continue;
        const double share = static_cast<double>(t) / static_cast<double>(curves.size());
        // Round the wheel of hues, in channels that every viewer knows.
        const auto channel = [&](double turn) {
            return static_cast<int>(std::lround(105 + 95 * std::cos(6.283185307179586 * (share + turn))));
        };
        const std::string colour = fmt::format("#{:02x}{:02x}{:02x}", channel(0.5), channel(0.17), channel(0.83));
        svg += curve(curves[t], ranks, frequencies, colour);
        const double y = top + 10 + step * static_cast<double>(t);
        svg += fmt::format(
            "<line x1=\"{0:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\" stroke-width=\"3\"/>"
            "<text x=\"{4:.1f}\" y=\"{5:.1f}\">{6}</text>\n",
            right + 14, right + 34, y, colour, right + 40, y + 4, svg_plot::escaped(profile.tables[t].name));
    }
    return svg + "</svg>\n";
}

}  // namespace profile_rows
