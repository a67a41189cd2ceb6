// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <utility>
#include <vector>

/// \file
/// Pictures of the example programs (SVG): frames with axes, side by side, and lines in them.

namespace svg_plot {

/// An axis: numbers to shares of its length, straight or by their logarithms.
struct Axis {
    double low = 0;
    double high = 1;
    bool logarithmic = false;
    bool numbered = true;  ///< it has ticks

    [[nodiscard]] double share(double value) const;
    /// Round numbers inside.
    [[nodiscard]] std::vector<double> ticks() const;
};

/// The axis of numbers from low to high, and a margin.
[[nodiscard]] Axis with_margin(double low, double high);

/// Text that may hold any character, as SVG takes it.
[[nodiscard]] std::string escaped(const std::string& text);

/// A frame with axes, and what is drawn in it.
class Panel {
  public:
    static constexpr double width = 400;  ///< of the frame
    static constexpr double height = 320;
    static constexpr double top = 56;

    /// \param left  where the frame begins; some 80 pixels before it are for names
    Panel(double left, Axis x, Axis y, const std::string& title, const std::string& x_name, const std::string& y_name);

    [[nodiscard]] double at_x(double value) const { return left_ + width * x_.share(value); }
    [[nodiscard]] double at_y(double value) const { return top + height * (1 - y_.share(value)); }
    [[nodiscard]] double left() const noexcept { return left_; }

    /// Through those of the points that lie in the frame.
    void line(const std::vector<std::pair<double, double>>& points, const char* colour);
    void dot(double x, double y, double radius, const char* colour, const std::string& name = "");
    /// From x to x, and from y to y.
    void bar(double x1, double x2, double y1, double y2, const char* colour);
    /// A dashed line across the frame at y, or from top to bottom at x.
    void level(double y);
    void mark(double x, const char* colour);
    /// Words at a place of the picture. \param anchor  start, middle or end
    void text(double x, double y, const std::string& words, const char* anchor, int size = 11,
              const char* colour = "black");

    [[nodiscard]] const std::string& svg() const noexcept { return svg_; }

  private:
    void straight(double x1, double y1, double x2, double y2, const char* colour, bool dashed = false);

    double left_;
    Axis x_;
    Axis y_;
    std::string svg_;
};

/// A picture of what panels have.
[[nodiscard]] std::string picture(double width, double height, const std::string& panels);

}  // namespace svg_plot
