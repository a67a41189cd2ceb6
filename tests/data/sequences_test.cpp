// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/data/sequences.hpp"

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "data/support.hpp"

namespace shardwise_test {
namespace {

using Items = std::vector<std::int64_t>;

Items items_of(const shardwise::Histories& all, std::int64_t user) {
    const auto items = all.of(user);
    return {items.begin(), items.end()};
}

TEST(Histories, AreThoseOfEachUserInTheOrderOfTime) {
    const Folder folder;
    const auto all = shardwise::read_histories(
        {.files = {folder.write("a", "30 5 1\n7 2 4\n30 9 2\n"), folder.write("b.gz", gzip("7 2\n30 5\n9 0\n"))}});
    EXPECT_EQ(all.users, (Items{30, 7, 9}));
    EXPECT_EQ(all.size(), 3);
    EXPECT_EQ(items_of(all, 0), (Items{5, 9, 5}));
    EXPECT_EQ(items_of(all, 1), (Items{2, 2}));
    EXPECT_EQ(items_of(all, 2), (Items{0}));
    EXPECT_EQ(all.rows, 10);
    EXPECT_EQ(shardwise::read_histories({.files = {folder.write("c", "1 3\n")}, .rows = 50}).rows, 50);
}

RC_GTEST_PROP(Histories, EqualTheNaiveOnes, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    const Folder folder;
    std::map<std::int64_t, Items> naive;
    Items order;
    std::string text;
    for (std::uint64_t left = 1 + random() % 60; left != 0; --left) {
        const auto user = static_cast<std::int64_t>(random() % 8 * 1'000'000'000'000);
        const auto item = static_cast<std::int64_t>(random() % 100);
        if (!naive.contains(user)) order.push_back(user);
        naive[user].push_back(item);
        text += std::to_string(user) + " " + std::to_string(item) + "\n";
    }
    const auto all = shardwise::read_histories({.files = {folder.write("a", text)}});
    RC_ASSERT(all.users == order);
    RC_ASSERT(all.offsets.back() == std::ssize(all.items));
    for (std::int64_t user = 0; user != all.size(); ++user)
        RC_ASSERT(items_of(all, user) == naive.at(order[static_cast<std::size_t>(user)]));
}

TEST(Histories, SayWhatIsWrong) {
    const Folder folder;
    const auto refused = [](const shardwise::HistoryOptions& options) {
        return bad_input([&] { static_cast<void>(shardwise::read_histories(options)); });
    };
    const auto file = folder.write("a", "1 3\n1 5\n");
    EXPECT_EQ(refused({.files = {file}, .rows = 5}), file + ", line 2, column 2 (item): 5 is no item: they are 0 to 4");
    const auto empty = folder.write("empty", "");
    EXPECT_EQ(refused({.files = {empty}}), empty + ": no history: every file is empty");
    EXPECT_EQ(refused({.files = {file}, .rows = -1}),
              "a table of -1 items: give at least 1, or 0 for as many as it takes");
    const auto short_line = folder.write("short", "1 3\n4\n");
    EXPECT_EQ(refused({.files = {short_line}}),
              short_line + ", line 2: 1 column, expected 2 columns: user item and whatever follows");
}

}  // namespace
}  // namespace shardwise_test
