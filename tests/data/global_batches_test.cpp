// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/data/global_batches.hpp"

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/data/generator.hpp"
#include "shardwise/data/loader.hpp"

namespace {

namespace sw = shardwise;

static_assert(sw::BatchLoader<sw::PrefetchingLoader<sw::ClickGenerator>>);
static_assert(!sw::BatchLoader<sw::ClickGenerator>);

/// Lends batches of given sizes, and cannot read one of them.
struct Script {
    std::vector<std::int64_t> sizes;
    std::int64_t fails_at = -1;
    std::string why = {};
    std::int64_t position = 0;
    sw::ClickBatch batch = {};

    const sw::ClickBatch* next() {
        if (position == fails_at) throw sw::BadInput{why};
        if (position == static_cast<std::int64_t>(sizes.size())) return nullptr;
        batch.resize_single(sizes[static_cast<std::size_t>(position++)], 2, 3);
        return &batch;
    }
    void rewind() { position = 0; }
};
using Batches = sw::GlobalBatches<Script>;

constexpr std::int64_t columns = 2;
constexpr std::int64_t features = 3;

RC_GTEST_PROP(global_batches, every_rank_knows_the_samples_of_all, ()) {
    const int hosts = *rc::gen::inRange(1, 4);
    const int locals = *rc::gen::inRange(1, 3);
    const sw::Topology topology{hosts, locals};
    const auto steps = *rc::gen::inRange<std::size_t>(0, 5);
    const auto sizes = *rc::gen::container<std::vector<std::vector<std::int64_t>>>(
        static_cast<std::size_t>(topology.ranks()),
        rc::gen::container<std::vector<std::int64_t>>(steps, rc::gen::inRange<std::int64_t>(0, 9)));
    sw::ThreadWorld world{topology};
    std::vector<int> wrong(static_cast<std::size_t>(topology.ranks()));
    world.run([&](sw::ThreadCommunicator& below) {
        sw::CountingCommunicator comm{below};
        const auto rank = static_cast<std::size_t>(comm.rank());
        Script script{.sizes = sizes[rank]};
        Batches batches{comm, script, columns, features};
        sw::ClickBatch batch;
        const auto expect = [&](bool right) { wrong[rank] += right ? 0 : 1; };
        for (int pass = 0; pass < 2; ++pass, batches.rewind())
            for (std::size_t step = 0; step <= steps; ++step) {
                comm.reset();
                const bool more = batches.announce(batch);
                expect(more == (step < steps));
                expect(batch.samples() == (more ? sizes[rank][step] : 0));
                expect(batch.dense_columns == columns && batch.ids.features == features);
                std::int64_t all = 0;
                for (const auto& theirs : sizes)
                    all += more ? theirs[step] : 0;
                expect(batches.global_samples() == all);
                for (std::size_t other = 0; other < sizes.size(); ++other)
                    expect(batches.samples_by_rank()[other] == (more ? sizes[other][step] : 0));
                expect(!batches.failed());
                expect(comm.sent().sent_by(comm.rank()) == Batches::predict(topology).sent_by(comm.rank()));
            }
    });
    RC_ASSERT(std::accumulate(wrong.begin(), wrong.end(), 0) == 0);
}

TEST(global_batches, what_one_rank_cannot_read_is_everybodys_error) {
    for (const int culprit : {0, 3, 5}) {
        sw::ThreadWorld world{sw::Topology{3, 2}};
        world.run([&](sw::ThreadCommunicator& comm) {
            Script script{.sizes = {4, 4, 4}};
            if (comm.rank() >= culprit) {  // of several, the first one is heard
                script.fails_at = 1;
                script.why = "line 7 of rank " + std::to_string(comm.rank());
            }
            Batches batches{comm, script, columns, features};
            sw::ClickBatch batch;
            EXPECT_TRUE(batches.announce(batch));
            EXPECT_EQ(batches.global_samples(), 24);
            EXPECT_FALSE(batches.failed());
            EXPECT_TRUE(batches.announce(batch));  // a rank that cannot read has an empty batch, and goes on
            EXPECT_EQ(batch.samples(), comm.rank() >= culprit ? 0 : 4);
            EXPECT_EQ(batch.ids.features, features);
            EXPECT_EQ(batches.global_samples(), 4 * culprit);
            ASSERT_TRUE(batches.failed());
            try {
                batches.fail();
            } catch (const sw::BadInput& error) {
                EXPECT_EQ(error.what(), "line 7 of rank " + std::to_string(culprit));
            }
            batches.rewind();  // from the beginning all is well
            EXPECT_TRUE(batches.announce(batch));
            EXPECT_EQ(batches.global_samples(), 24);
            EXPECT_FALSE(batches.failed());
        });
    }
}

TEST(global_batches, data_that_ends_on_some_ranks_is_an_error_on_all) {
    sw::ThreadWorld world{sw::Topology{1, 4}};
    world.run([](sw::ThreadCommunicator& comm) {
        Script script{.sizes = std::vector<std::int64_t>(comm.rank() >= 2 ? 1 : 2, 5)};
        Batches batches{comm, script, columns, features};
        sw::ClickBatch batch;
        batches.announce(batch);
        EXPECT_EQ(batches.global_samples(), 20);
        EXPECT_EQ(batches.announce(batch), comm.rank() < 2);
        try {
            static_cast<void>(batches.global_samples());
            FAIL();
        } catch (const sw::BadInput& error) {
            EXPECT_STREQ(error.what(),
                         "the data of rank 2 has ended, and that of other ranks has not: give all ranks the same "
                         "files");
        }
    });
}

TEST(global_batches, other_exchanges_go_on_between_announcement_and_number) {
    sw::ThreadWorld world{sw::Topology{2, 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::PrefetchingLoader loader{
            sw::ClickGenerator{{.rows = std::vector<std::int64_t>(features, 50),
                                .dense_columns = columns,
                                .samples = 31,
                                .slice = {.batch = 3, .rank = comm.rank(), .ranks = comm.size()}}}};
        sw::GlobalBatches batches{comm, loader, columns, features};
        sw::ClickBatch batch;
        std::int64_t all = 0;
        std::int64_t mine = 0;
        for (;;) {
            batches.announce(batch);
            mine += batch.samples();
            sw::barrier(comm);
            const std::int64_t samples = batches.global_samples();
            if (samples == 0) break;
            EXPECT_EQ(samples, all < 24 ? 12 : 7);
            all += samples;
        }
        EXPECT_EQ(all, 31);
        EXPECT_EQ(mine, comm.rank() < 2 ? 9 : comm.rank() == 2 ? 7 : 6);
        EXPECT_GT(batches.input_seconds(), 0);
        EXPECT_GT(batches.sync_seconds(), 0);
        batches.forget_seconds();
        EXPECT_EQ(batches.input_seconds() + batches.sync_seconds(), 0);
    });
}

/// Counts rounds that are withdrawn.
struct Watched : sw::CountingCommunicator<sw::ThreadCommunicator> {
    using CountingCommunicator::CountingCommunicator;
    int abandoned = 0;
    void abandon(sw::Ticket ticket) noexcept {
        ++abandoned;
        CountingCommunicator::abandon(ticket);
    }
};

TEST(global_batches, an_announcement_that_nobody_waits_for_is_withdrawn) {
    sw::ThreadWorld world{sw::Topology{1, 2}};
    world.run([](sw::ThreadCommunicator& below) {
        Watched comm{below};
        Script script{.sizes = {1}};
        sw::ClickBatch batch;
        {
            Batches batches{comm, script, columns, features};
            batches.announce(batch);
            static_cast<void>(batches.global_samples());
        }
        EXPECT_EQ(comm.abandoned, 0);
        {
            Batches batches{comm, script, columns, features};
            batches.announce(batch);
        }
        EXPECT_EQ(comm.abandoned, 1);
        sw::barrier(comm);
    });
}

}  // namespace
