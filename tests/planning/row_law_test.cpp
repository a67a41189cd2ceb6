// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/row_law.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "planning/setting.hpp"

namespace shardwise_test {
namespace {

std::vector<double> rows_of_law(const std::string& text) {
    return rows_of(sw::row_law(text));
}

/// Row i has p(i), within one part in 10^6.
void expect_rows(const std::vector<double>& rows, const std::function<double(double)>& p) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double expected = p(static_cast<double>(i + 1));
        ASSERT_NEAR(rows[i], expected, 1.01e-6 * expected) << "row " << i + 1;
    }
}

TEST(row_law, slopes_are_four_power_laws_that_meet) {
    const std::vector<double> rows = rows_of_law("slopes:5000:50:400:1500:0.25:0.5:1.25:2:0.75");
    ASSERT_EQ(rows.size(), 5000U);
    EXPECT_EQ(rows[49], 0.25);
    EXPECT_EQ(rows[0], 1.0);  // 0.25 * 50^0.5 is above 1
    expect_rows(rows, [](double i) {
        double p = 0.25;
        if (i <= 50) return std::min(1.0, p * std::pow(50 / i, 0.5));
        p *= std::pow(50 / std::min(i, 400.0), 1.25);
        if (i > 400) p *= std::pow(400 / std::min(i, 1500.0), 2);
        if (i > 1500) p *= std::pow(1500 / i, 0.75);
        return p;
    });
}

TEST(row_law, zipf_mandelbrot_shifts_ranks) {
    expect_rows(rows_of_law("zipf_mandelbrot:3000:0.90929:40.5:19.9201"),
                [](double i) { return std::min(1.0, 19.9201 / std::pow(i + 40.5, 0.90929)); });
}

TEST(row_law, laws_with_lookups_add_up_to_them) {
    const auto check = [](const std::string& text, const std::function<double(double)>& shape) {
        const std::vector<double> rows = rows_of_law(text);
        double sum = 0;
        for (std::size_t i = 0; i < rows.size(); ++i)
            sum += shape(static_cast<double>(i + 1));
        expect_rows(rows, [&](double i) { return 12.5 * shape(i) / sum; });
        EXPECT_NEAR(sw::row_law(text).lookups(), 12.5, 1e-12);
    };
    check("zipf:2000:1:12.5", [](double i) { return 1 / i; });
    check("exponential:2000:300:12.5", [](double i) { return std::exp(-i / 300); });
    check("half_normal:2000:700.5:12.5", [](double i) { return std::exp(-i * i / 700.5 / 700.5); });
    EXPECT_NEAR(sw::row_law("exponential:100000:0.01:3").lookups(), 3, 1e-12);  // all but the first row are 0
}

TEST(row_law, one_run_a_row_where_rows_differ_and_few_where_they_do_not) {
    EXPECT_EQ(sw::row_law("zipf_mandelbrot:20000:0.9:0:0.5").runs().size(), 20000U);
    EXPECT_EQ(sw::row_law("zipf_mandelbrot:20000:0:0:0.5").runs().size(), 1U);
    const sw::RowDistribution large = sw::row_law("zipf:30000000:1:1000");
    EXPECT_EQ(large.rows(), 30'000'000);
    EXPECT_LT(large.runs().size(), 6'000'000U);
    EXPECT_NEAR(large.runs().front().p, 1000 / (std::log(3e7) + 0.57721566490153286 + 0.5 / 3e7), 1e-9);
}

TEST(row_law, refuses_what_it_does_not_know) {
    const auto error = [](const std::string& text) { return bad_input([&] { return sw::row_law(text); }); };
    EXPECT_EQ(error("exponential:10"),
              "law 'exponential:10': it takes 2 to 3 numbers, not 1; its form is exponential:E:scale[:L]");
    EXPECT_NE(error("zipf:10:1:").find("'' is no number"), std::string::npos);
    EXPECT_NE(error("zipf:10:1:2:3").find("takes 1 to 3 numbers, not 4"), std::string::npos);
    EXPECT_NE(error("zipf").find("numbers, not 0"), std::string::npos);
    EXPECT_NE(error("zipf:10:x:1").find("'x' is no number"), std::string::npos);
    EXPECT_NE(error("zipf:1.5:1:1").find("E is 1.5: give a whole number"), std::string::npos);
    EXPECT_NE(error("zipf:0:1:1").find("E is 0"), std::string::npos);
    EXPECT_NE(error("zipf:nan:1:1").find("E is nan"), std::string::npos);
    EXPECT_NE(error("zipf:10:-1:1").find("s is -1: give a number of at least 0"), std::string::npos);
    EXPECT_NE(error("zipf:10:1:0").find("L is 0: give a number above 0"), std::string::npos);
    EXPECT_NE(error("zipf:10:1:inf").find("L is inf"), std::string::npos);
    EXPECT_NE(error("exponential:10:0:1").find("scale is 0"), std::string::npos);
    EXPECT_NE(error("zipf_mandelbrot:10:1:-0.5:1").find("q is -0.5"), std::string::npos);
    EXPECT_NE(error("slopes:10:4:3:5:0.5:1:1:1:1").find("n1, n2 and n3 are to rise"), std::string::npos);
    EXPECT_NE(error("slopes:10:1:2:3:1.5:1:1:1:1").find("p1 is 1.5: give at most 1"), std::string::npos);
    EXPECT_NE(error("slopes:10:1:2:3:0.5:1:1:1:-1").find("s3 is -1"), std::string::npos);
    EXPECT_NE(error("gauss:10").find("there is none of this name; give one of slopes:E:n1"), std::string::npos);
    EXPECT_NE(error("").find("there is none of this name"), std::string::npos);
}

}  // namespace
}  // namespace shardwise_test
