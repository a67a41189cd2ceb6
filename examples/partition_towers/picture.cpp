// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <fmt/format.h>

#include "svg_plot.hpp"

namespace partition_towers {

namespace {

/// Hues as far from each other as may be, in two lightnesses in turn, as #rrggbb: every viewer knows that.
std::string colour(int tower, int towers) {
    const double hue = 12.0 * tower / std::max(1, towers);
    const double light = tower % 2 == 0 ? 0.42 : 0.58;
    const auto channel = [&](double offset) {
        const double k = std::fmod(offset + hue, 12.0);
        const double x =
            light - 0.65 * std::min(light, 1.0 - light) * std::clamp(std::min(k - 3.0, 9.0 - k), -1.0, 1.0);
        return static_cast<int>(std::lround(255.0 * x));
    };
    return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(8), channel(4));
}

}  // namespace

std::string picture(const shardwise::Partition& partition, const std::vector<std::string>& names,
                    const std::string& title) {
    constexpr double side = 640;
    constexpr double margin = 60;
    float low[2] = {std::numeric_limits<float>::max(), std::numeric_limits<float>::max()};
    float high[2] = {std::numeric_limits<float>::lowest(), std::numeric_limits<float>::lowest()};
    for (const shardwise::Point& point : partition.points)
        for (std::size_t axis = 0; axis < 2; ++axis) {
            low[axis] = std::min(low[axis], point[axis]);
            high[axis] = std::max(high[axis], point[axis]);
        }
    const double span = std::max({high[0] - low[0], high[1] - low[1], 1e-6F});  // one scale: distances mean something
    const auto place = [&](const shardwise::Point& point, std::size_t axis) {
        return margin + (side - 2 * margin) * static_cast<double>(point[axis] - low[axis]) / span;
    };
    const int towers = 1 + *std::max_element(partition.tower_of.begin(), partition.tower_of.end());
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        "<text x=\"{2}\" y=\"28\" font-size=\"15\">{3}</text>\n",
        side + 110, side, margin, svg_plot::escaped(title));
    for (std::size_t f = 0; f < names.size(); ++f) {
        const double x = place(partition.points[f], 0);
        const double y = place(partition.points[f], 1);
        const int tower = partition.tower_of[f];
        svg += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"9\" fill=\"{}\"/>"
            "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"white\">{}</text>"
            "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
            x, y, colour(tower, towers), x, y + 4, tower, x, y - 13, svg_plot::escaped(names[f]));
    }
    for (int tower = 0; tower < towers; ++tower)
        svg += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"7\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">tower {}</text>\n",
                           side + 10, margin + 20 * tower, colour(tower, towers), side + 24, margin + 20 * tower + 4,
                           tower);
    return svg + "</svg>\n";
}

}  // namespace partition_towers
