// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/data/loader.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>

#include "data/support.hpp"
#include "shardwise/data/criteo.hpp"
#include "shardwise/data/generator.hpp"

namespace shardwise_test {
namespace {

using shardwise::BatchSource;
using shardwise::ClickGenerator;
using shardwise::CriteoReader;
using shardwise::PrefetchingLoader;
using namespace std::chrono_literals;

static_assert(BatchSource<CriteoReader>);
static_assert(BatchSource<ClickGenerator>);
static_assert(BatchSource<ClickGenerator&>);
struct NoRewind {
    bool next(shardwise::ClickBatch&) { return false; }
};
struct NextIsVoid {
    void next(shardwise::ClickBatch&) {}
    void rewind() {}
};
static_assert(!BatchSource<NoRewind>);
static_assert(!BatchSource<NextIsVoid>);
static_assert(!BatchSource<ClickGenerator, int>);

// What a Numbers source does; shared with the test, which looks on from its own thread.
struct Script {
    std::int64_t count = 10;
    std::int64_t fails_at = -1;
    bool rewind_fails = false;
    std::chrono::microseconds takes{0};
    std::atomic<std::int64_t> made{0};
    std::atomic<std::int64_t> rewinds{0};
};

struct Numbers {
    Script* script;
    std::int64_t position = 0;

    bool next(std::int64_t& batch) {
        if (script->takes.count() != 0) std::this_thread::sleep_for(script->takes);
        if (position == script->fails_at) throw shardwise::BadInput{"batch " + std::to_string(position)};
        if (position == script->count) return false;
        batch = position++;
        ++script->made;
        return true;
    }
    void rewind() {
        ++script->rewinds;
        if (script->rewind_fails) throw std::runtime_error{"no way back"};
        position = 0;
    }
};

using Loader = PrefetchingLoader<Numbers, std::int64_t>;

std::vector<std::int64_t> drain_numbers(Loader& loader) {
    std::vector<std::int64_t> numbers;
    while (const std::int64_t* number = loader.next())
        numbers.push_back(*number);
    return numbers;
}
std::vector<std::int64_t> up_to(std::int64_t count) {
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i != count; ++i)
        numbers.push_back(i);
    return numbers;
}

TEST(Loader, HandsOutEveryBatchInOrder) {
    for (const std::int64_t count : {0, 1, 2, 3, 10, 1000}) {
        for (const int ahead : {1, 2, 3, 16}) {
            Script script;
            script.count = count;
            Loader loader{Numbers{&script}, ahead};
            EXPECT_EQ(drain_numbers(loader), up_to(count));
            EXPECT_EQ(loader.next(), nullptr);
            EXPECT_EQ(loader.next(), nullptr);
        }
    }
}

TEST(Loader, RewindsAtAnyMoment) {
    Script script;
    Loader loader{Numbers{&script}, 2};
    for (int taken = 0; taken != 13; ++taken) {
        for (int i = 0; i != taken; ++i) {
            const std::int64_t* number = loader.next();
            ASSERT_EQ(number == nullptr, i >= 10);
            if (number != nullptr) {
                EXPECT_EQ(*number, i);
            }
        }
        loader.rewind();
        if (taken % 3 == 0) loader.rewind();
    }
    EXPECT_EQ(drain_numbers(loader), up_to(10));
    loader.rewind();
    EXPECT_EQ(drain_numbers(loader), up_to(10));
}

TEST(Loader, ThrowsWhatTheSourceThrewInItsPlace) {
    for (const std::int64_t fails_at : {0, 1, 7}) {
        Script script;
        script.fails_at = fails_at;
        Loader loader{Numbers{&script}, 3};
        for (int pass = 0; pass != 2; ++pass) {
            for (std::int64_t i = 0; i != fails_at; ++i)
                EXPECT_EQ(*loader.next(), i);
            const std::string expected = "batch " + std::to_string(fails_at);
            EXPECT_EQ(bad_input([&] { static_cast<void>(loader.next()); }), expected);
            EXPECT_EQ(bad_input([&] { static_cast<void>(loader.next()); }), expected);
            loader.rewind();
        }
    }
}

TEST(Loader, ThrowsWhatRewindingThrew) {
    Script script;
    script.rewind_fails = true;
    Loader loader{Numbers{&script}};
    EXPECT_EQ(drain_numbers(loader), up_to(10));
    loader.rewind();
    EXPECT_THROW(static_cast<void>(loader.next()), std::runtime_error);
    EXPECT_THROW(static_cast<void>(loader.next()), std::runtime_error);
}

TEST(Loader, ReadsAheadAsFarAsItSaysAndNoFurther) {
    for (const int ahead : {1, 4}) {
        Script script;
        script.count = 1000;
        Loader loader{Numbers{&script}, ahead};
        std::set<const std::int64_t*> places;
        for (std::int64_t taken = 1; taken != 50; ++taken) {
            const std::int64_t* number = loader.next();
            ASSERT_NE(number, nullptr);
            places.insert(number);
            // While this one is used, `ahead` more are made; the one in use is left alone.
            for (const auto end = std::chrono::steady_clock::now() + 30s;
                 script.made != taken + ahead && std::chrono::steady_clock::now() < end;)
                std::this_thread::yield();
            if (taken % 10 == 0) std::this_thread::sleep_for(2ms);
            EXPECT_EQ(script.made, taken + ahead);
            EXPECT_EQ(*number, taken - 1);
        }
        EXPECT_EQ(places.size(), static_cast<std::size_t>(ahead) + 1);
    }
}

TEST(Loader, MeasuresTheTimeThatItsCallerWaits) {
    Script script;
    script.count = 5;
    script.takes = 20ms;
    Loader loader{Numbers{&script}, 1};
    EXPECT_EQ(loader.waited(), 0ns);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(drain_numbers(loader), up_to(5));
    const auto elapsed = std::chrono::steady_clock::now() - start;
    EXPECT_GE(loader.waited(), 80ms);
    EXPECT_LE(loader.waited(), elapsed);
    const auto before = loader.waited();
    EXPECT_EQ(loader.next(), nullptr);  // known already
    EXPECT_EQ(loader.waited(), before);
}

TEST(Loader, EndsAtAnyMoment) {
    std::mt19937_64 random{1};
    for (int i = 0; i != 200; ++i) {
        Script script;
        script.takes = std::chrono::microseconds{random() % 2 * 50};
        script.fails_at = static_cast<std::int64_t>(random() % 20);
        Loader loader{Numbers{&script}, static_cast<int>(1 + random() % 3)};
        try {
            for (auto taken = random() % 12; taken != 0; --taken)
                static_cast<void>(loader.next());
        } catch (const shardwise::BadInput&) {
        }
        if (random() % 2 == 0) loader.rewind();
        if (random() % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds{random() % 200});
    }
}

TEST(Loader, WorksOnASourceOfSomeoneElse) {
    ClickGenerator generator{{.rows = {10, 20}, .samples = 50, .slice = {.batch = 8}}};
    const auto expected = drain(generator);
    generator.rewind();
    PrefetchingLoader<ClickGenerator&> loader{generator};
    std::vector<std::vector<Sample>> batches;
    while (const auto* batch = loader.next())
        batches.push_back(samples_of(*batch));
    EXPECT_EQ(batches, expected);
}

TEST(Loader, ReadsClickLogs) {
    const Folder folder;
    auto lines = random_lines(50, 1);
    const shardwise::CriteoOptions options{
        .files = {folder.write("a", text_of(lines))}, .rows = {100}, .slice = {.batch = 8, .rank = 1, .ranks = 2}};
    CriteoReader reader{options};
    const auto expected = drain(reader);
    PrefetchingLoader loader{CriteoReader{options}};
    for (int epoch = 0; epoch != 3; ++epoch) {
        std::vector<std::vector<Sample>> batches;
        while (const auto* batch = loader.next())
            batches.push_back(samples_of(*batch));
        EXPECT_EQ(batches, expected);
        loader.rewind();
    }
}

TEST(Loader, NeedsRoomForABatch) {
    Script script;
    EXPECT_EQ(bad_input([&] { Loader(Numbers{&script}, 0); }), "0 batches ahead: give at least 1");
}

#ifdef SCHED_BATCH
// The thread that reads does not take the core from the one that wakes it; the caller's own policy stays.
TEST(Loader, ReadsInTheBackground) {
    struct Policy {
        bool next(int& batch) {
            batch = ::sched_getscheduler(0);
            return true;
        }
        void rewind() {}
    };
    const int mine = ::sched_getscheduler(0);
    PrefetchingLoader<Policy, int> loader{Policy{}, 1};
    const int* policy = loader.next();
    ASSERT_NE(policy, nullptr);
    EXPECT_EQ(*policy, mine == SCHED_OTHER ? SCHED_BATCH : mine);
    EXPECT_EQ(::sched_getscheduler(0), mine);
}
#endif

}  // namespace
}  // namespace shardwise_test
