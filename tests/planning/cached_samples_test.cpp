// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/cached_samples.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/setting.hpp"
#include "shardwise/planning/access_counter.hpp"
#include "shardwise/planning/coverage.hpp"

namespace shardwise_test {
namespace {

const std::vector<sw::TableConfig> cached_tables = {{.name = "a", .rows = 12, .dim = 1},
                                                    {.name = "b", .rows = 20, .dim = 1, .features = {"b1", "b2"}}};

RC_GTEST_PROP(cached_samples, are_hot_where_all_their_rows_are, ()) {
    const auto samples = *rc::gen::inRange<std::int64_t>(1, 30);
    sw::JaggedBatch<std::int64_t> drawn{.samples = samples, .features = 3};
    std::vector<std::vector<std::pair<int, std::int64_t>>> of(static_cast<std::size_t>(samples));  // (sample): rows
    for (int f = 0; f < 3; ++f)
        for (auto& rows : of) {
            const int length = f == 0 && &rows == &of.front() ? 1 : *rc::gen::inRange(0, 3);  // some row is seen
            drawn.lengths.push_back(length);
            for (int k = 0; k < length; ++k) {
                const auto row = *rc::gen::inRange<std::int64_t>(0, *rc::gen::element(3, 12));
                drawn.values.push_back(row);
                rows.emplace_back(f == 0 ? 0 : 1, row);
            }
        }
    sw::AccessCounter counter{cached_tables};
    counter.add(drawn.view());
    const sw::AccessProfile profile = counter.profile();
    const std::vector<sw::TableRow> order = sw::hottest_rows(profile, 1000);
    const auto size = *rc::gen::inRange<std::int64_t>(1, std::ssize(order) + 1);
    const auto parts = *rc::gen::inRange<int>(1, static_cast<int>(std::min<std::int64_t>(size, 5)) + 1);
    sw::CachedSamples cached{profile, cached_tables, size, parts};
    const auto split = *rc::gen::inRange<std::int64_t>(0, samples + 1);
    cached.add(drawn.view(), 0, split);
    cached.add(drawn.view(), split, samples);
    RC_ASSERT(cached.samples() == samples);
    std::int64_t hot = 0;
    std::vector<std::int64_t> touching(static_cast<std::size_t>(parts));
    for (const auto& rows : of) {
        std::set<std::int64_t> touched;
        bool all = true;
        for (const auto& [table, row] : rows) {
            const auto found = std::find(order.begin(), order.begin() + size, sw::TableRow{table, row});
            if (found == order.begin() + size)
                all = false;
            else
                touched.insert((found - order.begin()) * parts / size);
        }
        hot += all ? 1 : 0;
        for (const std::int64_t part : touched)
            ++touching[static_cast<std::size_t>(part)];
    }
    RC_ASSERT(cached.hot() == hot);
    RC_ASSERT((std::vector<std::int64_t>{cached.touching().begin(), cached.touching().end()}) == touching);
}

TEST(cached_samples, bad_input) {
    const sw::AccessProfile profile{.samples = 4,
                                    .tables = {{.name = "a", .rows = 12, .lookups = 4, .seen = {{3, 4, 4}}},
                                               {.name = "b", .rows = 20, .lookups = 2, .seen = {{9, 2, 2}}}}};
    const auto made = [&](std::int64_t rows, int parts) {
        return [&, rows, parts] { return sw::CachedSamples{profile, cached_tables, rows, parts}; };
    };
    EXPECT_EQ(bad_input(made(0, 1)), "a cache of 0 rows: give at least 1");
    EXPECT_EQ(bad_input(made(3, 2)), "a cache of 3 rows: the profile saw 2; give at most so many");
    EXPECT_EQ(bad_input(made(2, 3)), "3 parts of a cache of 2 rows: give 1 to as many as there are rows");
    EXPECT_EQ(bad_input(made(2, 0)), "0 parts of a cache of 2 rows: give 1 to as many as there are rows");
    EXPECT_NE(bad_input([&] { return sw::CachedSamples{profile, {cached_tables[1]}, 1}; }), "");
    sw::CachedSamples cached{profile, cached_tables, 2, 2};
    const std::vector<std::int64_t> ids{3, 9, 20};
    const sw::JaggedView<std::int64_t> wrong{
        .samples = 1, .features = 3, .values = ids, .lengths = {}, .offsets = {}, .weights = {}, .keys = {}};
    EXPECT_EQ(bad_input([&] {
                  cached.add(wrong);
                  return 0;
              }).find("feature 'b2', sample 0: id 20 is not a row of table 'b'"),
              0U);
    EXPECT_EQ(bad_input([&] {
                  cached.add(wrong, 0, 2);
                  return 0;
              }),
              "samples [0, 2) of a batch of 1");
    EXPECT_EQ(cached.samples(), 0);
}

}  // namespace
}  // namespace shardwise_test
