// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/planning/merge_ranks.hpp"

#include <cstdint>
#include <mutex>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planning/support.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"

namespace {

using namespace planning_test;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t rows = 60;

sw::AccessProfile random_profile(std::mt19937_64& random, std::size_t tables) {
    sw::AccessProfile profile{.samples = 1 + static_cast<std::int64_t>(random() % 9)};
    for (std::size_t t = 0; t != tables; ++t) {
        std::vector<Sample> samples(static_cast<std::size_t>(profile.samples));
        for (Sample& sample : samples)
            for (std::uint64_t left = random() % 9; left != 0; --left)
                sample.push_back(skewed_row(random, rows));
        profile.tables.push_back(naive_table("t" + std::to_string(t), rows, samples));
        if (random() % 3 == 0) {
            profile.tables.back().lookups += 7;
            profile.tables.back().error = 1 + static_cast<std::int64_t>(random() % 6);
        }
    }
    return profile;
}

RC_GTEST_PROP(MergeRanks, EveryRankHasTheSumOfAll, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    const sw::Topology topology{.hosts = 1 + static_cast<int>(random() % 2),
                                .ranks_per_host = 1 + static_cast<int>(random() % 3)};
    const std::size_t tables = random() % 4;
    std::vector<sw::AccessProfile> profiles;
    for (int rank = 0; rank != topology.ranks(); ++rank)
        profiles.push_back(random_profile(random, tables));
    sw::AccessProfile sum = profiles[0];
    for (std::size_t rank = 1; rank != profiles.size(); ++rank)
        sum = sw::merged(sum, profiles[rank]);
    std::vector<sw::AccessProfile> results(profiles.size());
    sw::ThreadWorld world{topology};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto rank = static_cast<std::size_t>(comm.rank());
        results[rank] = sw::merged_across_ranks(comm, profiles[rank]);
    });
    for (const sw::AccessProfile& result : results)
        RC_ASSERT(result == sum);
}

// What the page says: five messages a peer, and 24 bytes a row to and from the rank that adds it up.
TEST(MergeRanks, MovesWhatItSays) {
    std::mt19937_64 random{3};
    const int ranks = 3;
    std::vector<sw::AccessProfile> profiles;
    for (int rank = 0; rank != ranks; ++rank)
        profiles.push_back(random_profile(random, 2));
    std::vector<sw::TierTraffic> sent(ranks);
    sw::AccessProfile sum;
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = ranks}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::CountingCommunicator counting{comm};
        const auto rank = static_cast<std::size_t>(comm.rank());
        const sw::AccessProfile result = sw::merged_across_ranks(counting, profiles[rank]);
        if (rank == 0) sum = result;
        for (int peer = 0; peer != ranks; ++peer)
            sent[rank] += counting.sent().at(comm.rank(), peer);
    });
    for (std::size_t rank = 0; rank != sent.size(); ++rank) {
        std::int64_t to_others = 0;  // rows that others add up
        std::int64_t own = 0;        // rows that it adds up
        for (std::size_t t = 0; t != 2; ++t) {
            for (const sw::RowAccess& row : profiles[rank].tables[t].seen)
                to_others += row.row % ranks != static_cast<std::int64_t>(rank) ? 1 : 0;
            for (const sw::RowAccess& row : sum.tables[t].seen)
                own += row.row % ranks == static_cast<std::int64_t>(rank) ? 1 : 0;
        }
        const std::int64_t names = 2 * 8;  // "2 t0 60\n"
        const std::int64_t each = names + 8 * (1 + 2 * 2) + 8 * 2 + 24 * (2 + own);
        EXPECT_EQ(sent[rank].messages, 5 * (ranks - 1));
        EXPECT_EQ(sent[rank].payload + sent[rank].control, (ranks - 1) * each + 24 * to_others);
    }
}

TEST(MergeRanks, OtherTablesAreAnErrorOnEveryRank) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 3}};
    std::mutex mutex;
    std::vector<std::string> errors;
    world.run([&](sw::ThreadCommunicator& comm) {
        const sw::AccessProfile mine{.samples = 1, .tables = {{.name = "a", .rows = comm.rank() == 1 ? 7 : 8}}};
        const std::string error = bad_input([&] { static_cast<void>(sw::merged_across_ranks(comm, mine)); });
        const std::lock_guard lock{mutex};
        errors.push_back(error);
    });
    const std::string expected =
        "rank 1: its profile is of other tables than rank 0's: merge profiles of the same tables";
    EXPECT_EQ(errors, (std::vector<std::string>{expected, expected, expected}));
}

}  // namespace
