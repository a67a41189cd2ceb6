// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/plan/chrome_trace.hpp"

#include <string>

#include <gtest/gtest.h>

#include "checkpoint/support.hpp"
#include "shardwise/comm/thread_world.hpp"

namespace {

namespace sw = shardwise;

TEST(ChromeTrace, ASpanAStepWithPredictedBesideMovedBytes) {
    const checkpoint_test::TemporaryFile file{"trace"};
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 1}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::Tracer tracer;
        tracer.record(true);
        tracer.add("Exchange \"ids\"", sw::SpanKind::pack, 7, tracer.now(), 100 + comm.rank());
        tracer.add("Lookup", sw::SpanKind::compute, 7, tracer.now());
        tracer.add("Exchange", sw::SpanKind::pack, 7, tracer.now(), 5);
        tracer.add("Exchange", sw::SpanKind::pack, 8, tracer.now(), 6);
        tracer.add("Exchange", sw::SpanKind::pack, 7, tracer.now(), 9, sw::SpanOf::sync);
        tracer.add("Exchange", sw::SpanKind::wait, 8, tracer.now());
        sw::write_chrome_trace(comm, file.path(), tracer, {.flights = {{7, {100, 200}}}, .syncs = {{7, {300}}}});
    });
    const auto trace = nlohmann::json::parse(file.read());
    const auto& events = trace.at("traceEvents");
    ASSERT_EQ(events.size(), 16U);
    for (int rank = 0; rank < 2; ++rank) {
        const auto at = [&](std::size_t i) { return events.at(static_cast<std::size_t>(rank) * 8 + i); };
        EXPECT_EQ(at(0).at("args").at("name"), "host " + std::to_string(rank));
        EXPECT_EQ(at(1).at("args").at("name"), "rank " + std::to_string(rank));
        EXPECT_EQ(at(2).at("name"), "Exchange \"ids\" pack");
        EXPECT_EQ(at(2).at("cat"), "pack");
        EXPECT_EQ(at(3).at("name"), "Lookup");
        EXPECT_EQ(at(7).at("name"), "Exchange wait");
        EXPECT_EQ(at(7).at("cat"), "wait");
        EXPECT_EQ(at(2).at("pid"), rank);
        EXPECT_EQ(at(2).at("tid"), rank);
        EXPECT_EQ(at(2).at("args").at("moved_bytes"), 100 + rank);
        EXPECT_EQ(at(2).at("args").at("predicted_bytes"), 100);
        EXPECT_FALSE(at(3).at("args").contains("moved_bytes"));
        EXPECT_GE(at(3).at("dur").get<double>(), 0.0);
        EXPECT_EQ(at(4).at("args").at("predicted_bytes"), 200);
        EXPECT_FALSE(at(5).at("args").contains("predicted_bytes"));
        EXPECT_EQ(at(6).at("args").at("sync_after_step"), 7);
        EXPECT_EQ(at(6).at("args").at("predicted_bytes"), 300);
    }
}

}  // namespace
