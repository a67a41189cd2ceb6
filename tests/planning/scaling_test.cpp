// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/scaling.hpp"

#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/setting.hpp"

namespace shardwise_test {
namespace {

using sw::Strategy;

constexpr double bytes_of_row = 1024;

/// Tables 2 and 3, formula by formula, with parameters that no two of are alike.
TEST(scaling, costs_are_those_of_the_tables) {
    constexpr double e = 1e6;
    constexpr double d = 48;
    constexpr double l = 70;
    constexpr double u = 15;
    constexpr double w = 5;
    constexpr double b = 256;
    constexpr double dtype = 2;
    const sw::Scaling s{
        .topology = {.hosts = 3, .ranks_per_host = 5},
        .batch = 256,
        .multiplier = 7,
        .element_bytes = dtype,
        .bandwidths = {
            .all_to_all_global = 1e9, .all_to_all_intra = 3e9, .all_reduce_global = 2e9, .all_reduce_cross = 11e9}};
    const auto check = [&](Strategy strategy, double fixed, double dynamic, double ids, double forward,
                           double backward) {
        const sw::StrategyCost cost = sw::cost_of(strategy, s, e, d, l);
        EXPECT_NEAR(cost.static_bytes, fixed, 1e-12 * fixed) << name_of(strategy);
        EXPECT_NEAR(cost.dynamic_bytes, dynamic, 1e-12 * dynamic);
        EXPECT_NEAR(cost.elements_accessed, b * l * d, 1e-12 * b * l * d);
        EXPECT_EQ(cost.ids, ids);
        EXPECT_NEAR(*cost.dynamic_seconds, forward, 1e-12 * forward);
        EXPECT_NEAR(*cost.static_seconds, backward, 1e-12 * backward);
        EXPECT_NEAR(*cost.seconds(), 2 * forward + backward, 1e-12);
        EXPECT_EQ(cost.bytes(), cost.static_bytes + cost.dynamic_bytes);
    };
    const double vectors = b * l * d * dtype;
    check(Strategy::row, e / u * d * dtype, 2 * vectors, b * l, vectors / 1e9, 0);
    check(Strategy::col, e * d / u * dtype, 2 * vectors, u * b * l, vectors / 1e9, 0);
    check(Strategy::dp, 7 * e * d * dtype, vectors, 0, 0, e * d * dtype / 2e9);
    check(Strategy::flex, 7 * e / w * d * dtype, 2 * vectors, b * l, vectors / 3e9, e * d * dtype / 11e9);
}

TEST(scaling, what_has_no_bandwidth_has_no_time) {
    const sw::Scaling none = paper_setting();
    for (const Strategy strategy : {Strategy::dp, Strategy::flex, Strategy::row, Strategy::col})
        EXPECT_FALSE(sw::cost_of(strategy, none, 1, 1, 1).seconds()) << name_of(strategy);
    const sw::Scaling global = paper_setting(3);
    EXPECT_TRUE(sw::cost_of(Strategy::dp, global, 1, 1, 1).seconds());
    EXPECT_TRUE(sw::cost_of(Strategy::row, global, 1, 1, 1).seconds());
    EXPECT_FALSE(sw::cost_of(Strategy::flex, global, 1, 1, 1).seconds());
    EXPECT_FALSE(sw::dp_over_row(none, 0.5).communication);
}

/// The memory of a row against that in Row, in rows: 6 - 1/U and 6/W - 1/U static, -B p and 0 dynamic.
TEST(scaling, a_replicated_row_costs_what_the_paper_says) {
    const sw::Scaling s = paper_setting();
    for (const double p : {0.0, 1e-5, 1e-3, 0.7}) {
        const auto more = [&](Strategy strategy) {
            const sw::StrategyCost cost = sw::cost_of(strategy, s, 1, 256, p);
            const sw::StrategyCost row = sw::cost_of(Strategy::row, s, 1, 256, p);
            EXPECT_NEAR((cost.static_bytes - row.static_bytes) / bytes_of_row,
                        strategy == Strategy::dp ? 5.96875 : 0.71875, 1e-12);
            return (cost.dynamic_bytes - row.dynamic_bytes) / bytes_of_row;
        };
        EXPECT_NEAR(more(Strategy::dp), -4096 * p, 1e-12 * 4096 * p);
        EXPECT_EQ(more(Strategy::flex), 0);
    }
}

TEST(scaling, figure_3) {
    const sw::Scaling s = paper_setting(3);
    const auto memory = [&](double alpha) { return sw::dp_over_row(s, alpha).memory; };
    EXPECT_NEAR(memory(1e-5), 53.3795, 5e-5);
    EXPECT_NEAR(memory(1e-4), 7.5367, 5e-5);
    EXPECT_NEAR(memory(1.457214e-3), 1, 1e-6);
    EXPECT_NEAR(memory(1), 0.5007, 5e-5);
    for (const double alpha : {1e-6, 1e-5, 4.06901e-5, 1e-2, 1.0}) {
        const double exact = (6 + 4096 * alpha) / (1.0 / 32 + 2 * 4096 * alpha);
        EXPECT_NEAR(memory(alpha), exact, 1e-12 * exact);
        const double communication = 1 / (6 * 4096 * alpha);
        EXPECT_NEAR(*sw::dp_over_row(s, alpha).communication, communication, 1e-12 * communication);
    }
}

/// Figure 1: a table's sequences take 2 B L D 4 bytes, and B L D 4 travel in a direction, linear in L. Table 4: 4.19 GB
/// of vectors of RM-1 (L about 1000), 2.10 of RM-3 (about 500).
TEST(scaling, figure_1_and_table_4) {
    const sw::Scaling s = paper_setting(3);
    const auto dynamic = [&](double l) { return sw::cost_of(Strategy::row, s, 3e7, 256, l).dynamic_bytes; };
    EXPECT_NEAR(dynamic(1000) / 2, 4.19e9, 0.005e9);
    EXPECT_NEAR(dynamic(500) / 2, 2.10e9, 0.005e9);
    EXPECT_EQ(dynamic(2000), 2 * dynamic(1000));
    EXPECT_EQ(dynamic(1000), 2.0 * 4096 * 1000 * 256 * 4);
}

/// A table costs what its parts cost together (section 4.2).
RC_GTEST_PROP(scaling, is_linear, ()) {
    const auto number = [](int most) { return static_cast<double>(*rc::gen::inRange(0, most)); };
    sw::Scaling s = paper_setting(*rc::gen::inRange(1, 5));
    s.bandwidths.all_to_all_intra = 72e9;
    s.bandwidths.all_reduce_cross = 200e9;
    const auto strategy = *rc::gen::element(Strategy::dp, Strategy::flex, Strategy::row, Strategy::col);
    const double e1 = number(1000);
    const double e2 = number(1000);
    const double l1 = number(100) / 8;
    const double l2 = number(100) / 8;
    const auto one = sw::cost_of(strategy, s, e1, 16, l1);
    const auto other = sw::cost_of(strategy, s, e2, 16, l2);
    const auto both = sw::cost_of(strategy, s, e1 + e2, 16, l1 + l2);
    const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-12 * std::abs(a); };
    RC_ASSERT(near(both.static_bytes, one.static_bytes + other.static_bytes));
    RC_ASSERT(near(both.dynamic_bytes, one.dynamic_bytes + other.dynamic_bytes));
    RC_ASSERT(near(both.ids, one.ids + other.ids));
    RC_ASSERT(near(*both.seconds(), *one.seconds() + *other.seconds()));
}

TEST(scaling, refuses_numbers_that_make_no_sense) {
    const auto error = [](auto change) {
        sw::Scaling s = paper_setting(3);
        change(s);
        return bad_input([&] { return sw::checked(s).batch; });
    };
    EXPECT_NE(error([](auto& s) { s.batch = 0; }).find("a batch of 0 samples"), std::string::npos);
    EXPECT_NE(error([](auto& s) { s.batch = std::int64_t{1} << 60; }).find("on each of 32 ranks: give at most"),
              std::string::npos);
    EXPECT_NE(error([](auto& s) { s.multiplier = 0.5; }).find("multiplier of 0.5"), std::string::npos);
    EXPECT_NE(error([](auto& s) { s.multiplier = std::numeric_limits<double>::quiet_NaN(); }).find("multiplier"),
              std::string::npos);
    EXPECT_NE(error([](auto& s) { s.element_bytes = 0; }).find("bytes an element"), std::string::npos);
    EXPECT_NE(error([](auto& s) { s.bandwidths.all_reduce_cross = -1; }).find("a bandwidth of -1"), std::string::npos);
    EXPECT_NE(error([](auto& s) { s.topology.hosts = 0; }).find("0 hosts"), std::string::npos);
    EXPECT_EQ(sw::checked(paper_setting(3)).batch, 4096);
}

}  // namespace
}  // namespace shardwise_test
