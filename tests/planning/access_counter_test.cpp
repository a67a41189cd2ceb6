// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/planning/access_counter.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/support.hpp"
#include "shardwise/planning/access_profile.hpp"

namespace {

using namespace planning_test;  // NOLINT(google-build-using-namespace)

const std::vector<sw::TableConfig> shop = {{.name = "user", .rows = 10},
                                           {.name = "item", .rows = 40, .features = {"bought", "seen"}}};

/// Random bags of three features, and what they mean, table by table.
struct Drawn {
    sw::JaggedBatch<std::int64_t> batch;
    std::vector<Sample> tables[2];  // (sample)
};
Drawn draw(std::mt19937_64& random, std::int64_t samples, bool single) {
    Drawn drawn;
    drawn.batch.samples = samples;
    drawn.batch.features = 3;
    for (std::vector<Sample>& table : drawn.tables)
        table.resize(static_cast<std::size_t>(samples));
    for (std::size_t f = 0; f != 3; ++f)
        for (std::size_t s = 0; s != static_cast<std::size_t>(samples); ++s) {
            const auto length = single ? 1 : static_cast<std::int32_t>(random() % 4);
            if (!single) drawn.batch.lengths.push_back(length);
            for (std::int32_t i = 0; i != length; ++i) {
                const std::int64_t row = skewed_row(random, f == 0 ? 10 : 40);
                drawn.batch.values.push_back(row);
                drawn.tables[f == 0 ? 0 : 1][s].push_back(row);
            }
        }
    return drawn;
}

sw::AccessProfile naive_profile(const std::vector<Drawn>& all) {
    sw::AccessProfile profile;
    std::vector<Sample> samples[2];
    for (const Drawn& drawn : all)
        for (std::size_t t = 0; t != 2; ++t)
            samples[t].insert(samples[t].end(), drawn.tables[t].begin(), drawn.tables[t].end());
    profile.samples = std::ssize(samples[0]);
    for (std::size_t t = 0; t != 2; ++t)
        profile.tables.push_back(naive_table(shop[t].name, shop[t].rows, samples[t]));
    return profile;
}

TEST(AccessCounter, CountsLookUpsAndSamples) {
    sw::AccessCounter counter{shop};
    // sample 0: user 3, bought 7 7, seen 7 8; sample 1: user 3, bought nothing, seen 8
    const sw::JaggedBatch<int> batch{
        .samples = 2, .features = 3, .values = {3, 3, 7, 7, 7, 8, 8}, .lengths = {1, 1, 2, 0, 2, 1}};
    counter.add(batch.view());
    const sw::AccessProfile profile = counter.profile();
    EXPECT_EQ(profile.samples, 2);
    ASSERT_EQ(profile.tables.size(), 2U);
    EXPECT_EQ(profile.tables[0].seen, (std::vector<sw::RowAccess>{{3, 2, 2}}));
    EXPECT_EQ(profile.tables[1].seen, (std::vector<sw::RowAccess>{{7, 3, 1}, {8, 2, 2}}));
    EXPECT_EQ(profile.tables[1].lookups, 5);
    EXPECT_EQ(sw::lookups_per_sample(profile.tables[1], profile.samples), 2.5);
    EXPECT_EQ(sw::lookups_per_sample(profile), 3.5);
    EXPECT_EQ(sw::unseen_rows(profile.tables[1]), 38);
}

RC_GTEST_PROP(AccessCounter, EqualsTheNaiveCounts, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    std::vector<Drawn> all;
    sw::AccessCounter counter{shop};
    for (std::uint64_t left = 1 + random() % 4; left != 0; --left) {
        const Drawn& drawn =
            all.emplace_back(draw(random, static_cast<std::int64_t>(random() % 12), random() % 3 == 0));
        sw::JaggedView<std::int64_t> view = drawn.batch.view();
        std::vector<std::int64_t> offsets{0};
        if (!view.lengths.empty() && random() % 2 == 0) {
            for (const std::int32_t length : view.lengths)
                offsets.push_back(offsets.back() + length);
            view.lengths = {};
            view.offsets = offsets;
        }
        // whole, or in two parts
        const auto cut = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(view.samples + 1));
        if (random() % 2 == 0) {
            counter.add(view);
        } else {
            counter.add(view, 0, cut);
            counter.add(view, cut, view.samples);
        }
    }
    const sw::AccessProfile profile = counter.profile();
    sw::validate(profile);
    RC_ASSERT(profile == naive_profile(all));
    RC_ASSERT(counter.samples() == profile.samples);
}

RC_GTEST_PROP(AccessCounter, TwoHalvesMergedAreTheWhole, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    const auto counters = static_cast<std::int64_t>(random() % 2 * (1 + random() % 12));
    std::vector<Drawn> all;
    sw::AccessProfile sum{.samples = 0, .tables = {{.name = "user", .rows = 10}, {.name = "item", .rows = 40}}};
    for (int part = 0; part != 3; ++part) {
        sw::AccessCounter counter{shop, {.counters = counters}};
        all.push_back(draw(random, 20, false));
        counter.add(all.back().batch.view());
        sum = sw::merged(sum, counter.profile());
    }
    sw::validate(sum);
    const sw::AccessProfile exact = naive_profile(all);
    if (counters == 0) RC_ASSERT(sum == exact);
    for (std::size_t t = 0; t != 2; ++t) {
        std::vector<Sample> samples;
        for (const Drawn& drawn : all)
            samples.insert(samples.end(), drawn.tables[t].begin(), drawn.tables[t].end());
        RC_ASSERT(broken_bound(sum.tables[t], naive_counts(samples)) == "");
        RC_ASSERT(counters == 0 || 3 * sum.tables[t].error * counters <= 4 * sum.tables[t].lookups);
    }
}

TEST(AccessCounter, FeaturesMayBeNamed) {
    const std::vector<std::string> keys{"seen", "user", "bought"};
    const sw::JaggedBatch<int> batch{.samples = 1, .features = 3, .values = {30, 3, 20}};
    sw::JaggedView<int> view = batch.view();
    view.keys = keys;
    sw::AccessCounter counter{shop};
    counter.add(view);
    EXPECT_EQ(counter.profile().tables[0].seen, (std::vector<sw::RowAccess>{{3, 1, 1}}));
    EXPECT_EQ(counter.profile().tables[1].seen, (std::vector<sw::RowAccess>{{20, 1, 1}, {30, 1, 1}}));
}

TEST(AccessCounter, ABadBatchCountsNothing) {
    sw::AccessCounter counter{shop};
    const sw::JaggedBatch<int> good{.samples = 2, .features = 3, .values = {3, 3, 7, 7, 7, 8}};
    counter.add(good.view());
    const sw::AccessProfile before = counter.profile();
    const sw::JaggedBatch<int> bad{.samples = 2, .features = 3, .values = {3, 3, 7, 7, 7, 40}};
    EXPECT_EQ(bad_input([&] { counter.add(bad.view()); }),
              "feature 'seen', sample 1: id 40 is not a row of table 'item'; its rows are 0 to 39");
    const sw::JaggedBatch<int> few{.samples = 2, .features = 2, .values = {3, 3, 7, 7}};
    bad_input([&] { counter.add(few.view()); });
    EXPECT_EQ(bad_input([&] { counter.add(good.view(), 1, 3); }), "samples [1, 3) of a batch of 2");
    EXPECT_EQ(counter.profile(), before);
}

TEST(AccessCounter, RefusesTablesThatMakeNoSense) {
    using Tables = std::vector<sw::TableConfig>;
    const auto refused = [](const Tables& tables) { return bad_input([&] { sw::AccessCounter{tables}; }); };
    EXPECT_EQ(refused({{.name = "", .rows = 1}}), "table 0 has no name: give every table one");
    EXPECT_EQ(refused({{.name = "a", .rows = 0}}), "table 'a' has 0 rows: give it at least one");
    EXPECT_EQ(refused({{.name = "a", .rows = 1}, {.name = "a", .rows = 1}}),
              "table 'a' stands twice: give every table one name");
    EXPECT_EQ(refused({{.name = "a", .rows = 1, .features = {"f", "f"}}}),
              "feature 'f' stands twice in the tables: give every feature one name");
}

}  // namespace
