// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/replication_curve.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/setting.hpp"

namespace shardwise_test {
namespace {

sw::CurvePoints points_of(const std::vector<sw::RowRun>& runs, double faster = 0, std::int64_t chunk = 1) {
    const sw::Scaling scaling = paper_setting(faster);
    return sw::curve_points({{{"t", sw::RowDistribution{runs}, 256}}, chunk}, scaling, sw::paper_row_memory(scaling));
}

/// A is the lowest point of the curve, B its last at or below 0 after A, C the leftmost, D the end.
RC_GTEST_PROP(replication_curve, has_its_points, ()) {
    const sw::RowDistribution d = any_distribution();
    const sw::Scaling scaling = paper_setting(*rc::gen::inRange(1, 1000) / 100.0);
    const sw::RowMemory memory = sw::paper_row_memory(scaling);
    const sw::MergedRows rows{{{"t", d, 256}}, 1};
    std::vector<std::int64_t> all(static_cast<std::size_t>(d.rows()) + 1);
    std::iota(all.begin(), all.end(), 0);
    const std::vector<sw::CurvePoint> curve = sw::replication_curve(rows, scaling, memory, all);
    RC_ASSERT(curve.size() == all.size());
    RC_ASSERT(curve.front().net_bytes == 0);
    const sw::CurvePoints points = sw::curve_points(rows, scaling, memory);
    const std::vector<double> p = rows_of(d);
    double net = 0;
    double lookups = 0;
    double lowest = 0;
    double leftmost = 0;
    std::int64_t last = 0;
    for (std::size_t n = 1; n < curve.size(); ++n) {
        net += (5.96875 - 4096 * p[n - 1]) * 1024;
        lookups += p[n - 1];
        RC_ASSERT(curve[n].rows == all[n]);
        RC_ASSERT(curve[n].net_bytes == net);
        RC_ASSERT(curve[n].lookups == lookups);
        lowest = std::min(lowest, net);
        leftmost = std::min(leftmost, *curve[n].net_seconds);
        if (net <= 0) last = all[n];
    }
    RC_ASSERT(points.a.has_value() == (lowest < 0 || p.front() >= 5.96875 / 4096));
    if (points.a) RC_ASSERT(points.a->net_bytes == lowest);
    RC_ASSERT(points.b.has_value() == (points.a && (last != d.rows() || net == 0)));
    if (points.b) RC_ASSERT(points.b->rows == last);
    if (points.c) RC_ASSERT(std::abs(*points.c->net_seconds - leftmost) <= 1e-15);
    if (!points.c) RC_ASSERT(leftmost == 0);
    RC_ASSERT(points.d.rows == d.rows());
    RC_ASSERT(points.d.net_bytes == net);
}

TEST(replication_curve, points_that_do_not_exist) {
    const sw::CurvePoints cold = points_of({{1e-4, 1000}});  // no row saves memory
    EXPECT_FALSE(cold.a);
    EXPECT_FALSE(cold.b);
    EXPECT_FALSE(cold.c);  // not known
    EXPECT_EQ(cold.d.rows, 1000);
    EXPECT_FALSE(cold.d.net_seconds);
    const sw::CurvePoints hot = points_of({{0.5, 100}, {1e-4, 10}}, 3);  // all rows together save memory
    EXPECT_EQ(hot.a->rows, 100);
    EXPECT_FALSE(hot.b);
    EXPECT_EQ(hot.c->rows, 110);
    EXPECT_FALSE(points_of({{1e-5, 1000}}, 3).c);  // no row saves communication
    const double neutral = 5.96875 / 4096;
    EXPECT_EQ(points_of({{2 * neutral, 10}, {0.0, 10}}).b->rows, 20);  // back at 0 with the last row
}

/// The points are of all rows, also of those that no plan replicates.
TEST(replication_curve, has_rows_that_nobody_saw) {
    const double neutral = 5.96875 / 4096;
    const sw::RowDistribution rows{{{2 * neutral, 10}, {0.0, 20}}};
    const sw::Scaling scaling = paper_setting(3);
    const sw::RowMemory memory = sw::paper_row_memory(scaling);
    const sw::CurvePoints points =
        sw::curve_points({{{.name = "t", .distribution = rows, .dim = 256, .least_p = 0}}, 1}, scaling, memory);
    EXPECT_EQ(points.a->rows, 10);
    EXPECT_EQ(points.b->rows, 20);
    EXPECT_EQ(points.d.rows, 30);
}

TEST(replication_curve, is_of_rising_numbers_of_rows) {
    const sw::MergedRows rows{{{"t", sw::RowDistribution{{{0.5, 10}}}, 256}}, 1};
    const sw::Scaling scaling = paper_setting();
    for (const std::vector<std::int64_t>& at : {std::vector<std::int64_t>{3, 2}, {-1}, {4, 11}})
        EXPECT_NE(bad_input([&] {
                      return sw::replication_curve(rows, scaling, sw::paper_row_memory(scaling), at).size();
                  }).find("of 10: give rising numbers from 0 to all rows"),
                  std::string::npos);
}

TEST(replication_curve, counts_in_chunks) {
    const sw::CurvePoints points = points_of({{0.5, 100}, {1e-4, 100000}}, 3, 32);
    EXPECT_EQ(points.a->rows, 128);  // the fourth chunk has 4 hot rows, and saves memory
    EXPECT_EQ(points.b->rows % 32, 0);
    EXPECT_EQ(points.d.rows, 100100);
}

}  // namespace
}  // namespace shardwise_test
