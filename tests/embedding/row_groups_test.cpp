// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/embedding/kernels/row_groups.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/core/buffer.hpp"

/// \file
/// Contributions by row: few and many, rows that fit the filter and rows that share its slots.

namespace {

namespace sw = shardwise;

struct Case {
    std::int64_t contributions;
    std::int64_t rows;
    std::int64_t drawn_from;  // rows 0, stride, 2 stride, ... below this number of them
};

TEST(RowGroups, EveryContributionStandsAtItsRowOnceAndInOrder) {
    std::mt19937_64 engine{7};
    const std::vector<Case> cases{{0, 10, 10},
                                  {1, 1, 1},
                                  {300, 1, 1},
                                  {40, 50, 50},
                                  {200, 1 << 20, 1000},
                                  {255, 90, 90},
                                  {256, 90, 90},
                                  {5000, 3000, 3000},
                                  {5000, 1 << 24, 4000},
                                  {3000, 1 << 30, 7},
                                  {70'000, 1 << 22, 60'000},
                                  {2000, 4'000'000'000, 1500}};
    for (const Case& c : cases) {
        SCOPED_TRACE(testing::Message() << c.contributions << " contributions, " << c.rows << " rows");
        sw::MemoryAccount memory;
        sw::RowGroups groups;
        groups.on(memory.work()).begin(c.contributions, c.contributions, 1);
        const std::span<sw::Contribution> contributions = groups.contribute(c.contributions);
        std::vector<sw::LocalRow> rows;
        std::map<sw::LocalRow, std::vector<std::int64_t>> expected;
        for (std::int64_t i = 0; i < c.contributions; ++i) {
            const auto row = static_cast<sw::LocalRow>(
                static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(c.drawn_from)) *
                (c.rows / c.drawn_from));
            rows.push_back(row);
            contributions[static_cast<std::size_t>(i)].source = static_cast<std::int32_t>(i);
            expected[row].push_back(i);
        }
        const sw::RowSet set = groups.group(3, 5, c.rows, c.contributions, [&](auto use) {
            for (std::size_t i = 0; i < rows.size(); ++i)
                use(rows[i], i);
        });
        EXPECT_EQ(set.slot, 3);
        EXPECT_EQ(set.dim, 5);

        std::map<sw::LocalRow, std::vector<std::int64_t>> found;
        std::int64_t last_single = -1;
        std::int64_t last_row = -1;
        for (std::int64_t i = 0; i < set.touched(); ++i) {
            const sw::RowTerms terms = set.terms(i);
            auto& of_row = found[terms.row];
            EXPECT_TRUE(of_row.empty()) << "row " << terms.row << " comes twice";
            if (!terms.several) {
                ASSERT_EQ(terms.end, terms.first + 1);
                const auto number = static_cast<std::int64_t>(sw::RowSet::number(set.single[terms.first]));
                EXPECT_GT(number, last_single);
                last_single = number;
                of_row.push_back(set.contributions[number].source);
                continue;
            }
            EXPECT_GT(static_cast<std::int64_t>(terms.row), last_row);
            last_row = terms.row;
            for (std::int64_t k = terms.first; k < terms.end; ++k)
                of_row.push_back(set.sorted(k).source);
        }
        EXPECT_TRUE(found == expected);
        std::int64_t alone = 0;
        for (const auto& [row, numbers] : expected)
            alone += numbers.size() == 1 ? 1 : 0;
        EXPECT_LE(set.singles, alone);
        EXPECT_GE(set.singles, alone * 7 / 10) << "the filter tells too few rows apart";

        sw::MemoryTally tally;
        sw::RowGroups::Needs needs;
        needs.add(c.contributions, c.contributions, c.rows);
        needs.tally(tally);
        EXPECT_EQ(tally.bytes(), memory.dynamic_bytes());
    }
}

/// Rows of one, two and three digits of the sort, many and few: no set writes where one before it stands.
TEST(RowGroups, SetsStandBesideEachOther) {
    std::mt19937_64 engine{11};
    const std::vector<std::int64_t> rows{1, 900, 60'000, 1 << 24, 900, 2000, 1 << 23, 70'000};
    constexpr std::int64_t ids = 2000;
    sw::MemoryAccount memory;
    sw::RowGroups groups;
    for (int time = 0; time < 2; ++time) {
        const std::int64_t sets = std::ssize(rows);
        groups.on(memory.work()).begin(sets * (ids + sets), sets * (ids + sets), rows.size());
        std::vector<sw::RowSet> all;
        std::vector<std::vector<sw::LocalRow>> drawn;
        for (std::int64_t k = 0; k < sets; ++k) {
            const std::int64_t count = k % 4 == 3 ? 100 : ids + k;
            for (sw::Contribution& c : groups.contribute(count))
                c.source = static_cast<std::int32_t>(k);
            auto& of_set = drawn.emplace_back();
            for (std::int64_t i = 0; i < count; ++i)
                of_set.push_back(static_cast<sw::LocalRow>(
                    engine() % 700 * static_cast<std::uint64_t>(rows[static_cast<std::size_t>(k)]) / 700));
            all.push_back(groups.group(static_cast<int>(k), 4, rows[static_cast<std::size_t>(k)], count, [&](auto use) {
                for (std::size_t i = 0; i < of_set.size(); ++i)
                    use(of_set[i], i);
            }));
        }
        for (std::size_t k = 0; k < all.size(); ++k) {
            SCOPED_TRACE(k);
            std::vector<std::pair<sw::LocalRow, std::uint64_t>> expected;
            for (std::size_t i = 0; i < drawn[k].size(); ++i)
                expected.emplace_back(drawn[k][i], i);
            std::vector<std::pair<sw::LocalRow, std::uint64_t>> found;
            for (std::int64_t i = 0; i < all[k].singles; ++i)
                found.emplace_back(sw::RowSet::row(all[k].single[i]), sw::RowSet::number(all[k].single[i]));
            for (std::uint32_t i = 0; i < all[k].first[all[k].several]; ++i)
                found.emplace_back(sw::RowSet::row(all[k].keys[i]), sw::RowSet::number(all[k].keys[i]));
            EXPECT_TRUE(std::is_sorted(found.begin() + all[k].singles, found.end()));
            std::sort(found.begin(), found.end());
            std::sort(expected.begin(), expected.end());
            EXPECT_EQ(found, expected);
            EXPECT_EQ(all[k].contributions[drawn[k].size() - 1].source, static_cast<int>(k));
        }
    }
}

}  // namespace
