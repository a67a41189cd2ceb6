// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/comm/thread_world.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "shardwise/comm/collectives.hpp"

namespace {

/// Leaves this process so much more memory than it has.
void leave_bytes(rlim_t bytes) {
    long pages = 0;
    std::ifstream{"/proc/self/statm"} >> pages;
    const rlimit limit{static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + bytes, RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(1);
}

/// A rank without a thread fails, the ranks that wait for it learn so, and `run` says which it was.
[[noreturn]] void run_many_ranks() {
    namespace sw = shardwise;
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {1, 64}, .deadline = std::chrono::seconds{60}}};
    leave_bytes(rlim_t{64} << 20U);  // a few stacks
    try {
        world.run([](sw::ThreadCommunicator& comm) {
            sw::barrier(comm);
            std::_Exit(2);
        });
    } catch (const std::system_error& error) {
        std::fputs(error.what(), stderr);
        std::_Exit(7);
    }
    std::_Exit(3);
}

TEST(ThreadWorld, SaysWhichRankGetsNoThread) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(run_many_ranks(), ::testing::ExitedWithCode(7), "rank [0-9]+ of 64 gets no thread: ");
}

}  // namespace
