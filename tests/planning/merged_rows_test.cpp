// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/merged_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/setting.hpp"

namespace shardwise_test {
namespace {

RC_GTEST_PROP(merged_rows, are_the_means_of_chunks_by_falling_p, ()) {
    const auto chunk = *rc::gen::inRange<std::int64_t>(1, 40);
    std::vector<sw::RowTable> tables;
    for (int t = *rc::gen::inRange(1, 4); t > 0; --t)
        tables.push_back({.name = "t", .distribution = any_distribution(), .dim = t});
    const sw::MergedRows merged{tables, chunk};

    std::vector<std::vector<double>> found(tables.size());  // (table, row): p
    double last = 1e9;
    std::int64_t rows = 0;
    double lookups = 0;
    for (const sw::MergedRows::Run& run : merged.runs()) {
        RC_ASSERT(run.p <= last * (1 + 1e-15));
        last = run.p;
        const auto t = static_cast<std::size_t>(run.table);
        RC_ASSERT(merged.dim(run) == tables[t].dim);
        found[t].insert(found[t].end(), static_cast<std::size_t>(run.rows), run.p);
        const bool ends = static_cast<std::int64_t>(found[t].size()) == tables[t].distribution.rows();
        RC_ASSERT(run.rows % chunk == 0 || (ends && run.rows < chunk));
        rows += run.rows;
        lookups += run.p * static_cast<double>(run.rows);
    }
    RC_ASSERT(rows == merged.rows());
    RC_ASSERT(std::abs(lookups - merged.lookups()) <= 1e-12 * lookups);  // whose products may be fused
    for (std::size_t t = 0; t < tables.size(); ++t) {
        const std::vector<double> p = rows_of(tables[t].distribution);
        RC_ASSERT(found[t].size() == p.size());
        for (std::size_t i = 0; i < p.size(); i += static_cast<std::size_t>(chunk)) {
            const auto first = p.begin() + static_cast<std::ptrdiff_t>(i);
            const auto end = p.begin() + std::min(static_cast<std::ptrdiff_t>(i) + chunk, std::ssize(p));
            const double mean = std::accumulate(first, end, 0.0) / static_cast<double>(end - first);
            for (std::ptrdiff_t j = 0; j < end - first; ++j)
                RC_ASSERT(std::abs(found[t][i + static_cast<std::size_t>(j)] - mean) <= 1e-14 * mean);
        }
    }
}

TEST(merged_rows, refuse_what_makes_no_sense) {
    const sw::RowDistribution one{{{0.5, 3}}};
    EXPECT_EQ(bad_input([] { return sw::MergedRows({}, 1); }), "no table to plan for: give at least one");
    EXPECT_EQ(bad_input([&] { return sw::MergedRows({{"a", one, 4}}, 0); }), "chunks of 0 rows: give at least 1");
    EXPECT_EQ(bad_input([&] {
                  return sw::MergedRows({{"a", one, 0}}, 1);
              }),
              "table 'a' has dimension 0: give at least 1");
    const sw::RowDistribution large{{{0.5, INT64_MAX}}};
    EXPECT_NE(bad_input([&] {
                  return sw::MergedRows({{"a", large, 1}, {"b", one, 1}}, 1);
              }).find("more than"),
              std::string::npos);
}

}  // namespace
}  // namespace shardwise_test
