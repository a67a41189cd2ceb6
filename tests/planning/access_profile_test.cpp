// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/planning/access_profile.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/support.hpp"

namespace {

using namespace planning_test;  // NOLINT(google-build-using-namespace)

sw::AccessProfile small() {
    return {.samples = 10,
            .tables = {{.name = "a", .rows = 5, .lookups = 9, .seen = {{1, 6, 5}, {4, 3, 3}}},
                       {.name = "b", .rows = 100, .lookups = 50, .error = 4, .seen = {{99, 10, 10}}}}};
}

std::string refused(const sw::AccessProfile& profile) {
    return bad_input([&] { sw::validate(profile); });
}

TEST(AccessProfile, EveryWrongCountIsFound) {
    sw::validate(small());
    sw::validate({});
    const auto with = [](auto change) {
        sw::AccessProfile profile = small();
        change(profile);
        return refused(profile);
    };
    EXPECT_EQ(with([](auto& p) { p.samples = -1; }), "a profile of -1 samples");
    EXPECT_EQ(with([](auto& p) { p.tables[0].name = ""; }), "the profile's table 0 has no name");
    EXPECT_EQ(with([](auto& p) { p.tables[1].name = "a"; }), "the profile has table 'a' twice");
    const std::string a = "the profile of table 'a': ";
    const std::string b = "the profile of table 'b': ";
    EXPECT_EQ(with([](auto& p) { p.tables[0] = {.name = "a", .rows = -5}; }), a + "a table of -5 rows");
    EXPECT_EQ(with([](auto& p) { p.tables[0].lookups = -9; }), a + "-9 look-ups");
    EXPECT_EQ(with([](auto& p) { p.tables[1].error = -1; }), b + "an error of -1 look-ups of 50");
    EXPECT_EQ(with([](auto& p) { p.tables[1].error = 51; }), b + "an error of 51 look-ups of 50");
    EXPECT_EQ(with([](auto& p) { p.tables[0].seen[1].row = 5; }), a + "row 5 is none: its rows are 0 to 4");
    EXPECT_EQ(with([](auto& p) { p.tables[0].seen[0].row = -1; }), a + "row -1 is none: its rows are 0 to 4");
    EXPECT_EQ(with([](auto& p) { p.tables[0].seen[1].row = 1; }), a + "row 1 stands twice");
    EXPECT_EQ(with([](auto& p) { p.tables[0].seen[1].row = 0; }), a + "row 0 stands behind row 1: rows ascend");
    EXPECT_EQ(with([](auto& p) { p.tables[0].seen[1].samples = 0; }), a + "row 4 with 3 look-ups in 0 samples of 10");
    EXPECT_EQ(with([](auto& p) { p.tables[0].seen[1].samples = 4; }), a + "row 4 with 3 look-ups in 4 samples of 10");
    EXPECT_EQ(with([](auto& p) {
                  p.tables[1].seen[0] = {99, 12, 11};
              }),
              b + "row 99 with 12 look-ups in 11 samples of 10");
    EXPECT_EQ(with([](auto& p) { p.tables[0].lookups = 8; }),
              a + "the look-ups of its rows, up to row 4, are more than all 8");
    EXPECT_EQ(with([](auto& p) { p.tables[0].lookups = 10; }),
              a + "the look-ups of its rows add up to 9, and not to its 10");
    EXPECT_EQ(with([](auto& p) { p.tables[1].error = 0; }),
              b + "the look-ups of its rows add up to 10, and not to its 50");
    EXPECT_EQ(with([](auto& p) {
                  p.tables[1] = {.name = "b", .rows = 2, .lookups = 50, .error = 19, .seen = {{1, 10, 9}}};
              }),
              b + "the look-ups of its rows add up to 10 of its 50, which are too few for 2 rows with an error of 19");
    EXPECT_EQ(with([](auto& p) { p.tables[1] = {.name = "b", .rows = 0, .lookups = 5, .error = 5}; }),
              b + "the look-ups of its rows add up to 0 of its 5, which are too few for 0 rows with an error of 5");
    sw::validate(
        {.samples = 10, .tables = {{.name = "b", .rows = 2, .lookups = 50, .error = 20, .seen = {{1, 10, 9}}}}});
    EXPECT_EQ(with([](auto& p) { p.tables[1] = {.name = "b", .rows = INT64_MAX, .lookups = INT64_MAX, .error = 1}; }),
              "9 and 9223372036854775807 look-ups are more than 9223372036854775807 together");
}

TEST(AccessProfile, SumsThatAreNoNumbersAreRefused) {
    constexpr std::int64_t half = (std::int64_t{1} << 62) + 1;
    const sw::AccessProfile samples{.samples = half};
    EXPECT_EQ(bad_input([&] { static_cast<void>(sw::merged(samples, samples)); }),
              "4611686018427387905 and 4611686018427387905 samples are more than 9223372036854775807 together");
    const sw::AccessProfile lookups{.samples = 1, .tables = {{.name = "t", .rows = half, .lookups = half, .error = 1}}};
    sw::validate(lookups);
    EXPECT_EQ(bad_input([&] { static_cast<void>(sw::merged(lookups, lookups)); }),
              "4611686018427387905 and 4611686018427387905 look-ups are more than 9223372036854775807 together");
    sw::AccessProfile one = lookups;
    one.tables.push_back({.name = "u", .rows = 1});
    sw::AccessProfile other = one;
    std::swap(other.tables[0].lookups, other.tables[1].lookups);
    std::swap(other.tables[0].error, other.tables[1].error);
    EXPECT_THROW(static_cast<void>(sw::merged(one, other)), sw::BadInput);  // of two tables, one each
}

TEST(AccessProfile, IsOfTheTablesOfAModelOrNot) {
    const sw::AccessProfile profile = small();
    const auto refusal = [&](const std::vector<sw::TableConfig>& tables) {
        return bad_input([&] { sw::require_tables(profile, tables); });
    };
    sw::require_tables(profile, std::vector<sw::TableConfig>{{.name = "a", .rows = 5}, {.name = "b", .rows = 100}});
    EXPECT_EQ(refusal({{.name = "a", .rows = 5}}),
              "the profile has 2 tables, and the model 1: give a profile of the model's tables");
    EXPECT_EQ(refusal({{.name = "a", .rows = 5}, {.name = "b", .rows = 99}}),
              "table 1 of the profile is 'b' of 100 rows, and of the model 'b' of 99 rows: give a profile of the "
              "model's tables");
    EXPECT_EQ(refusal({{.name = "b", .rows = 100}, {.name = "a", .rows = 5}}),
              "table 0 of the profile is 'a' of 5 rows, and of the model 'b' of 100 rows: give a profile of the "
              "model's tables");
}

sw::AccessProfile random_profile(std::mt19937_64& random) {
    sw::AccessProfile profile{.samples = 50 + static_cast<std::int64_t>(random() % 50)};
    for (const char* name : {"a", "b"}) {
        sw::TableAccess table{.name = name, .rows = 30};
        for (std::int64_t row = 0; row != 30; ++row) {
            if (random() % 3 != 0) continue;
            const auto samples = 1 + static_cast<std::int64_t>(random() % 50);
            table.seen.push_back({row, samples + static_cast<std::int64_t>(random() % 9), samples});
            table.lookups += table.seen.back().lookups;
        }
        if (random() % 2 == 0) {
            table.lookups += 20;
            table.error = 1 + static_cast<std::int64_t>(random() % 19);
        }
        profile.tables.push_back(table);
    }
    sw::validate(profile);
    return profile;
}

RC_GTEST_PROP(AccessProfile, MergingIsAssociativeAndCommutative, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    const sw::AccessProfile a = random_profile(random);
    const sw::AccessProfile b = random_profile(random);
    const sw::AccessProfile c = random_profile(random);
    const sw::AccessProfile sum = sw::merged(a, b);
    RC_ASSERT(sum == sw::merged(b, a));
    RC_ASSERT(sw::merged(sum, c) == sw::merged(a, sw::merged(b, c)));
    sw::validate(sum);
    RC_ASSERT(sum.samples == a.samples + b.samples);
    for (std::size_t t = 0; t != 2; ++t) {
        RC_ASSERT(sum.tables[t].lookups == a.tables[t].lookups + b.tables[t].lookups);
        RC_ASSERT(sum.tables[t].error == a.tables[t].error + b.tables[t].error);
    }
}

TEST(AccessProfile, OtherTablesAreNotMerged) {
    sw::AccessProfile other = small();
    other.tables[1].rows = 101;
    EXPECT_EQ(bad_input([&] { static_cast<void>(sw::merged(small(), other)); }),
              "profiles of table 'b' of 100 rows and of table 'b' of 101 rows: merge profiles of the same tables");
    other.tables.pop_back();
    EXPECT_EQ(bad_input([&] { static_cast<void>(sw::merged(small(), other)); }),
              "profiles of 2 and of 1 tables: merge profiles of the same tables");
}

}  // namespace
