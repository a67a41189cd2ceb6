// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/cache_sizing.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/setting.hpp"
#include "shardwise/planning/row_law.hpp"

namespace shardwise_test {
namespace {

sw::CacheTable of_law(const std::string& law, int dim = 1) {
    return sw::cache_table("t", sw::row_law(law), dim);
}

sw::CacheCosts costs_of(const std::string& law, int dim, const sw::CacheSetting& setting) {
    return sw::CacheCosts{{of_law(law, dim)}, setting};
}

double near_1e9(double expected) {
    return 1e-9 * expected;
}

TEST(cache_sizing, distinct_rows_of_laws) {
    const std::vector<std::pair<sw::CacheTable, std::pair<double, double>>> published = {
        {of_law("zipf:1000"), {256, 130.064071702}},
        {of_law("zipf:100000"), {4096, 2070.226243863}},
        {of_law("exponential:100000:1000"), {4096, 1990.703404458}},
        {of_law("half_normal:100000:1000"), {4096, 1380.490434319}},
    };
    for (const auto& [table, of] : published)
        EXPECT_NEAR(table.unique(of.first), of.second, near_1e9(of.second));
    const auto growth = [](const std::string& law, double samples) {
        const sw::CacheTable table = of_law(law);
        return table.unique(5 * samples) / table.unique(samples);
    };
    EXPECT_NEAR(growth("exponential:100000:200", 3200), 1.480, 5e-4);
    EXPECT_NEAR(growth("half_normal:100000:200", 3200), 1.220, 5e-4);
    EXPECT_NEAR(growth("zipf:10000", 20000), 1.99, 5e-3);
    const double literal = of_law("zipf:500000").unique(5 * 4096) / of_law("zipf:100000").unique(4096);
    EXPECT_TRUE(4.3 < literal && literal < 4.7) << literal;
    // A rare row's chance is its own, not what is left of 1 minus it.
    EXPECT_NEAR(of_law("zipf:1:1:1e-18").unique(1), 1e-18, 1e-27);
}

TEST(cache_sizing, published_optima) {
    struct Case {
        const char* law;
        double activation;
        double least;
        std::int64_t cached;
        double cost;
        double uncached;
    };
    for (const Case& of : {Case{"zipf:3000", 200, 1, 1559, 5.879258805, 33.557549},
                           Case{"zipf:3000", 200, 64, 1362, 6.875179576, 33.557549},
                           Case{"exponential:3000:600", 4, 1, 1562, 5.334647, 7.220535}}) {
        const sw::CacheCosts costs =
            costs_of(of.law, 64, {.memory = 100000, .activation = of.activation, .least_batch = of.least});
        const sw::CacheSize best = sw::best_cache(costs);
        EXPECT_EQ(best.cached, of.cached) << of.law;
        EXPECT_NEAR(best.cost, of.cost, 1e-7 * of.cost) << of.law;
        EXPECT_NEAR(best.cost_uncached, of.uncached, 1e-7 * of.uncached) << of.law;
        EXPECT_EQ(best.batch, (100000 - 64.0 * static_cast<double>(best.cached)) / of.activation);
        EXPECT_EQ(best.cost, costs.cost(best.cached));
    }
    const sw::CacheCosts zipf = costs_of("zipf:3000", 64, {.memory = 100000, .activation = 200});
    EXPECT_NEAR(sw::best_cache(zipf).cost, 5.879258805, near_1e9(5.9));
    EXPECT_NEAR(zipf.cost(0), 33.557549040, near_1e9(33.6));
    // An epoch of Q samples moves Q times as much.
    const sw::CacheCosts million = costs_of("zipf:3000", 64, {.memory = 100000, .activation = 200, .samples = 1e6});
    EXPECT_DOUBLE_EQ(million.cost(1000), 1e6 * zipf.cost(1000));
}

/// (6) as it stands in the paper: a row at a time.
double plain_cost(const std::vector<double>& q, double size, std::int64_t cached, const sw::CacheSetting& setting,
                  double lookups) {
    const double samples = (setting.memory - static_cast<double>(cached) * size) / setting.activation;
    double moved = 0.0;
    for (auto row = static_cast<std::size_t>(cached); row < q.size(); ++row)
        moved += 1.0 - std::pow(1.0 - q[row], samples);
    return setting.samples * lookups + setting.samples / samples * moved * size;
}

/// Tables whose rows are of one size, and the q of all their rows, falling.
struct Instance {
    std::vector<sw::CacheTable> tables;
    std::vector<double> q;
    double size;
    sw::CacheSetting setting;
};

double any_double(double low, double high) {
    return low + (high - low) * (*rc::gen::inRange(0, 1 << 20) / static_cast<double>(1 << 20));
}

Instance any_instance() {
    Instance of{.tables = {}, .q = {}, .size = *rc::gen::inRange(1, 100) * 1.0, .setting = {}};
    const int tables = *rc::gen::element(1, 1, 2, 3);
    for (int t = 0; t < tables; ++t) {
        const int rows = *rc::gen::inRange(1, 60);
        const int shape = *rc::gen::inRange(0, 3);
        const double scale = any_double(0.05, 2.0);
        std::vector<double> p;
        for (int i = 1; i <= rows; ++i) {
            const double x = i / (scale * rows);
            p.push_back(shape == 0 ? std::pow(i, -scale) : std::exp(shape == 1 ? -x : -x * x));
        }
        const double sum = std::accumulate(p.begin(), p.end(), 0.0);
        std::vector<sw::RowRun> runs;
        for (const double of_row : p) {
            runs.push_back({.p = of_row / sum, .rows = 1});
            of.q.push_back(of_row / sum);
        }
        of.tables.push_back(
            sw::cache_table("t" + std::to_string(t), sw::RowDistribution{runs}, static_cast<int>(of.size)));
    }
    std::sort(of.q.begin(), of.q.end(), std::greater<>{});
    of.setting.activation = of.size * std::exp(any_double(-4, 4));
    of.setting.least_batch = *rc::gen::element(1.0, 1.0, 2.5, 16.0, 100.0);
    const double least = of.setting.least_batch * of.setting.activation;
    of.setting.memory = least + of.size * static_cast<double>(of.q.size()) * any_double(0, 1.5);
    of.setting.samples = any_double(1, 1e6);
    return of;
}

/// How often the costs turn from falling to rising or back, but for rounding.
int sign_changes(const std::vector<double>& costs) {
    int changes = 0;
    double last = 0.0;
    for (std::size_t at = 1; at < costs.size(); ++at) {
        const double difference = costs[at] - costs[at - 1];
        if (std::abs(difference) <= 1e-13 * costs[at]) continue;
        if (last * difference < 0.0) ++changes;
        last = difference;
    }
    return changes;
}

RC_GTEST_PROP(cache_sizing, is_the_least_of_all_sizes, ()) {
    for (int ten = 0; ten < 10; ++ten) {
        const Instance of = any_instance();
        const sw::CacheCosts costs{of.tables, of.setting};
        const sw::CacheSize found = sw::best_cache(costs);
        const auto rows = std::ssize(of.q);
        RC_ASSERT(costs.rows() == rows);
        std::int64_t most = 0;
        while (most < rows && of.setting.memory - of.size * static_cast<double>(most + 1) >=
                                  of.setting.least_batch * of.setting.activation)
            ++most;
        RC_ASSERT(costs.most_cached() == most);
        std::vector<double> all;
        for (std::int64_t cached = 0; cached <= most; ++cached) {
            all.push_back(plain_cost(of.q, of.size, cached, of.setting, static_cast<double>(of.tables.size())));
            RC_ASSERT(std::abs(costs.cost(cached) - all.back()) <= 1e-10 * all.back());
        }
        const double least = *std::min_element(all.begin(), all.end());
        if (sign_changes(all) <= 1) RC_ASSERT(found.cost <= least * (1 + 1e-12));
        RC_ASSERT(found.cost <= costs.cost(0) && found.cost <= costs.cost(most));
        if (found.cached > 0 && found.cached < most)
            for (const std::int64_t next : {found.cached - 1, found.cached + 1})
                RC_ASSERT(found.cost <= costs.cost(next) * (1 + 1e-12));
        RC_ASSERT(found.cost == costs.cost(found.cached));
        RC_ASSERT(found.cost_uncached == costs.cost(0));
        RC_ASSERT(found.batch == costs.batch(found.cached) && found.batch >= of.setting.least_batch * (1 - 1e-12));
        RC_ASSERT(found.evaluations <= std::bit_width(static_cast<std::uint64_t>(rows)) + 3);
        const std::vector<std::int64_t> by_table = costs.rows_of_tables(found.cached);
        RC_ASSERT(std::accumulate(by_table.begin(), by_table.end(), std::int64_t{0}) == found.cached);
    }
}

TEST(cache_sizing, is_the_fewer_of_equal_ones) {
    // Behind 100 rows nothing is left to save, up to the 150 that fit.
    const sw::CacheTable table = sw::cache_table("t", sw::RowDistribution{{{0.01, 100}, {0.0, 900}}}, 10);
    const sw::CacheCosts costs{{table}, {.memory = 1520, .activation = 20}};
    EXPECT_EQ(costs.most_cached(), 150);
    EXPECT_EQ(costs.cost(100), costs.cost(150));
    EXPECT_EQ(sw::best_cache(costs).cached, 100);
}

TEST(cache_sizing, may_miss_one_of_two_valleys) {
    // 3 hot rows before 30 that are equally likely, and samples that take a fifth of a row.
    const sw::CacheTable table = sw::cache_table("t", sw::RowDistribution{{{0.1, 3}, {0.7 / 30, 30}}}, 10);
    const sw::CacheCosts costs{{table}, {.memory = 66, .activation = 2}};
    std::vector<double> all;
    for (std::int64_t cached = 0; cached <= costs.most_cached(); ++cached)
        all.push_back(costs.cost(cached));
    EXPECT_EQ(sign_changes(all), 2);  // they fall, rise and fall again
    const sw::CacheSize found = sw::best_cache(costs);
    EXPECT_EQ(found.cached, 0);
    EXPECT_EQ(found.cost, costs.cost(0));
    EXPECT_LT(costs.cost(3), costs.cost(0));
}

RC_GTEST_PROP(cache_sizing, steps_are_differences_of_costs, ()) {
    const Instance of = any_instance();
    const sw::CacheCosts costs{of.tables, of.setting};
    for (std::int64_t cached = 0; cached < costs.most_cached(); ++cached) {
        const sw::CacheCosts::Step step = costs.step(cached);
        // (8): both sides of (11), a batch, as an epoch has so many of them.
        const double batches = of.setting.samples / costs.batch(cached);
        const double difference = costs.cost(cached + 1) - costs.cost(cached);
        RC_ASSERT(std::abs(batches * (step.lost - step.saved) - difference) <= 1e-9 * costs.cost(cached));
        RC_ASSERT(step.lost <= step.sufficient * (1 + 1e-9));  // (13) is enough for (11)
        if (step.surely_pays()) RC_ASSERT(step.pays());
    }
}

TEST(cache_sizing, several_tables_are_cached_by_look_ups_a_unit) {
    const sw::CacheTable small = sw::cache_table("small", sw::RowDistribution{{{0.4, 1}, {0.2, 2}, {0.1, 2}}}, 2);
    const sw::CacheTable large = sw::cache_table("large", sw::RowDistribution{{{0.9, 1}, {0.1, 1}}}, 8);
    const sw::CacheCosts costs{{small, large}, {.memory = 20, .activation = 1}};
    EXPECT_EQ(costs.rows(), 7);
    EXPECT_EQ(costs.most_cached(), 6);  // 5 of 2, one of 8: 18
    using Rows = std::vector<std::int64_t>;
    EXPECT_EQ(costs.rows_of_tables(0), (Rows{0, 0}));
    EXPECT_EQ(costs.rows_of_tables(1), (Rows{1, 0}));  // 0.2 a unit
    EXPECT_EQ(costs.rows_of_tables(2), (Rows{1, 1}));  // 0.1125
    EXPECT_EQ(costs.rows_of_tables(4), (Rows{3, 1}));  // 0.1
    EXPECT_EQ(costs.rows_of_tables(6), (Rows{5, 1}));  // 0.05
    EXPECT_EQ(costs.batch(2), 10);
    EXPECT_EQ(costs.batch(6), 2);
    // 2.0 look-ups a sample, and what is left: 2 rows of small of p = 0.2, 2 of 0.1, one of large
    const auto chance = [](double p) { return 1 - std::pow(1 - p, 10); };
    EXPECT_NEAR(costs.cost(2), 2.0 + (4 * chance(0.2) + 4 * chance(0.1) + 8 * chance(0.1)) / 10, 1e-12);
}

TEST(cache_sizing, rows_without_numbers_are_not_cached) {
    // 60 of 100 look-ups are listed; the others are spread over all 10 rows.
    const sw::TableAccess counted{
        .name = "c", .rows = 10, .lookups = 100, .error = 50, .seen = {{2, 40, 40}, {7, 20, 20}}};
    const sw::CacheTable table = sw::cache_table(counted, 1000, 4);
    EXPECT_EQ(table.rows(), 10);
    EXPECT_EQ(table.cacheable, 2);
    EXPECT_NEAR(table.lookups(), 0.1, 1e-12);
    const sw::CacheCosts costs{{table}, {.memory = 1000, .activation = 1}};
    EXPECT_EQ(costs.most_cached(), 2);
    EXPECT_THROW(static_cast<void>(costs.cost(3)), sw::BadInput);
    // An exact profile has no look-ups of other rows.
    const sw::TableAccess exact{.name = "e", .rows = 10, .lookups = 60, .seen = {{2, 40, 30}, {7, 20, 20}}};
    const sw::CacheTable seen = sw::cache_table(exact, 100, 4);
    EXPECT_EQ(seen.rows(), 10);
    EXPECT_EQ(seen.cacheable, 2);
    EXPECT_DOUBLE_EQ(seen.unique(1), 0.5);      // by samples that hold a row
    EXPECT_DOUBLE_EQ(seen.lookups(), 0.6);      // by look-ups
    EXPECT_NEAR(seen.unique(1e9), 2.0, 1e-12);  // and not ten
}

TEST(cache_sizing, bad_input) {
    const auto error = [](std::vector<sw::CacheTable> tables, const sw::CacheSetting& setting) {
        return bad_input([&] { return sw::CacheCosts{tables, setting}; });
    };
    const sw::CacheTable good = of_law("zipf:10", 4);
    const sw::CacheSetting setting{.memory = 100, .activation = 10};
    EXPECT_EQ(error({}, setting), "a cache for no table: give at least one");
    EXPECT_EQ(error({good}, {.memory = 9, .activation = 10}),
              "memory of 9 is too little: one sample takes 10; give at least that");
    EXPECT_EQ(error({good}, {.memory = 100, .activation = 10, .least_batch = 64}),
              "memory of 100 is too little: a batch of 64 samples takes 640; give at least that");
    EXPECT_EQ(error({good}, {.memory = 100, .activation = 10, .least_batch = 0.5}),
              "a least batch of 0.5 samples: give at least 1");
    EXPECT_EQ(error({good}, {.memory = 100, .activation = 0}),
              "the memory that a sample takes is 0: give a number above 0");
    EXPECT_EQ(error({good}, {.memory = NAN, .activation = 1}),
              "the memory for cached rows and batches is nan: give a number above 0");
    EXPECT_EQ(error({good}, {.memory = 10, .activation = 1, .samples = -2}),
              "the number of samples of an epoch is -2: give a number above 0");
    const auto table = [](std::vector<sw::RowUse> runs, double size = 1, std::int64_t cacheable = 0) {
        return sw::CacheTable{.name = "x", .runs = std::move(runs), .size = size, .cacheable = cacheable};
    };
    EXPECT_EQ(error({table({{.p = 1.5, .q = 1.2, .rows = 1}})}, setting),
              "table 'x': rows in a share of 1.2 of the samples; give 0 to 1");
    EXPECT_EQ(error({table({{.p = 0.1, .q = 0.1, .rows = 1}, {.p = 0.2, .q = 0.2, .rows = 1}})}, setting),
              "table 'x': rows of 0.2 look-ups a sample after rows of 0.1; give the rows by falling look-ups, none "
              "negative");
    EXPECT_EQ(error({table({{.p = 0.1, .q = 0.1, .rows = 0}})}, setting),
              "table 'x': a run of 0 rows; give at least 1");
    EXPECT_EQ(error({table({{.p = 0.1, .q = 0.1, .rows = 1}}, 0)}, setting),
              "table 'x': rows of size 0; give a number above 0");
    EXPECT_EQ(error({table({{.p = 0.1, .q = 0.1, .rows = 1}}, 1, 2)}, setting),
              "table 'x': 2 rows may be cached, of 1");
    EXPECT_EQ(bad_input([] { return of_law("zipf:10", 0); }), "table 't': a dimension of 0; give at least 1");
    const sw::CacheCosts costs{{good}, setting};
    EXPECT_EQ(costs.most_cached(), 10);
    EXPECT_EQ(bad_input([&] { return costs.cost(11); }),
              "11 cached rows: there are 10 that may be cached; give 0 to 10");
    EXPECT_EQ(bad_input([&] { return costs.batch(-1); }),
              "-1 cached rows: give 0 to 10, which leaves memory for a batch of 1 samples");
    EXPECT_EQ(bad_input([&] { return costs.step(10); }),
              "10 cached rows: give 0 to 9, which leaves memory for a batch of 1 samples");
}

}  // namespace
}  // namespace shardwise_test
