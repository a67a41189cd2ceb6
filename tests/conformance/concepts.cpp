// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A type with exactly one member less, or another type of one, is no communicator.

#include <span>
#include <string>

#include <gtest/gtest.h>

#include "shardwise/comm/checking.hpp"
#include "shardwise/comm/communicator.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"

namespace {

using namespace shardwise;

// Each archetype takes every member from here, but one.
struct WithRank {
    [[nodiscard]] int rank() const { return 0; }
};
struct WithSize {
    [[nodiscard]] int size() const { return 1; }
};
struct WithTopology {
    [[nodiscard]] Topology topology() const { return {}; }
};
struct WithPost {
    Ticket post(const Label&, std::span<const OutMessage>, std::span<const InMessage>) { return {}; }
};
struct WithTest {
    bool test(Ticket) { return true; }
};
struct WithWait {
    void wait(Ticket) {}
};
struct WithAbandon {
    void abandon(Ticket) noexcept {}
};
struct WithFail {
    void fail(const std::string&) {}
};

template <class... Parts>
struct Archetype : Parts... {};

static_assert(
    Communicator<Archetype<WithRank, WithSize, WithTopology, WithPost, WithTest, WithWait, WithAbandon, WithFail>>);
static_assert(!Communicator<Archetype<WithSize, WithTopology, WithPost, WithTest, WithWait, WithAbandon, WithFail>>);
static_assert(!Communicator<Archetype<WithRank, WithTopology, WithPost, WithTest, WithWait, WithAbandon, WithFail>>);
static_assert(!Communicator<Archetype<WithRank, WithSize, WithPost, WithTest, WithWait, WithAbandon, WithFail>>);
static_assert(!Communicator<Archetype<WithRank, WithSize, WithTopology, WithTest, WithWait, WithAbandon, WithFail>>);
static_assert(!Communicator<Archetype<WithRank, WithSize, WithTopology, WithPost, WithWait, WithAbandon, WithFail>>);
static_assert(!Communicator<Archetype<WithRank, WithSize, WithTopology, WithPost, WithTest, WithAbandon, WithFail>>);
static_assert(!Communicator<Archetype<WithRank, WithSize, WithTopology, WithPost, WithTest, WithWait, WithFail>>);
static_assert(!Communicator<Archetype<WithRank, WithSize, WithTopology, WithPost, WithTest, WithWait, WithAbandon>>);

// The capabilities on their own.
static_assert(Ranked<Archetype<WithRank, WithSize, WithTopology>>);
static_assert(Exchanging<Archetype<WithPost, WithTest, WithWait, WithAbandon>>);
static_assert(Failing<Archetype<WithFail>>);
static_assert(!Ranked<Archetype<WithRank, WithSize>>);
static_assert(!Exchanging<Archetype<WithPost, WithTest, WithWait>>);
static_assert(!Failing<Archetype<WithRank>>);

// A member of another type.
struct LongRank {
    [[nodiscard]] long rank() const { return 0; }
};
struct MutableSize {
    int size() { return 1; }
};
struct ThrowingAbandon {
    void abandon(Ticket) {}
};
struct VoidTest {
    void test(Ticket) {}
};
static_assert(!Ranked<Archetype<LongRank, WithSize, WithTopology>>);
static_assert(!Ranked<Archetype<WithRank, MutableSize, WithTopology>>);
static_assert(!Exchanging<Archetype<WithPost, WithTest, WithWait, ThrowingAbandon>>);
static_assert(!Exchanging<Archetype<WithPost, VoidTest, WithWait, WithAbandon>>);

// Decorators and references of communicators are communicators, on top of each other too.
static_assert(Communicator<ThreadCommunicator>);
static_assert(Communicator<CommunicatorRef>);
static_assert(Communicator<CountingCommunicator<CommunicatorRef>>);
static_assert(Communicator<CheckingCommunicator<CountingCommunicator<ThreadCommunicator>>>);

TEST(Concepts, ArchetypesWork) {
    Archetype<WithRank, WithSize, WithTopology, WithPost, WithTest, WithWait, WithAbandon, WithFail> comm;
    CommunicatorRef reference{comm};
    EXPECT_EQ(reference.rank(), 0);
    EXPECT_TRUE(reference.test(reference.post({}, {}, {})));
}

}  // namespace
