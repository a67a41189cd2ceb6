// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <chrono>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "conformance/checks.hpp"
#include "shardwise/comm/thread_world.hpp"

namespace {

using namespace shardwise;

int ranks() {
    const char* text = std::getenv("SHARDWISE_TEST_RANKS");
    return text == nullptr ? 4 : std::atoi(text);
}

TEST(Conformance, ThreadWorld) {
    for (int hosts = 1; hosts <= ranks(); ++hosts) {
        if (ranks() % hosts != 0) continue;
        const Topology topology = Topology::of(ranks(), hosts);
        for (const auto& check : conformance::checks<ThreadCommunicator>(ranks())) {
            SCOPED_TRACE(check.name + " on " + std::to_string(hosts) + " hosts");
            ThreadWorld world{{.topology = topology, .deadline = std::chrono::seconds{30}}};
            if (check.mismatch)
                ASSERT_THROW(world.run(check.run), Mismatch);
            else
                ASSERT_NO_THROW(world.run(check.run));
        }
    }
}

}  // namespace
