// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/communicator.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/sharding/row.hpp"

/// \file
/// The receiver checks every field of a message's head: what another flight, segment or layer sent is a Mismatch, never
/// ids or vectors.

namespace shardwise_test {
namespace {

namespace sw = shardwise;

using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Optimizer<sw::Sgd>>;
using Change = std::function<void(std::vector<std::byte>& message)>;

/// Sends changed copies of the messages that it is handed.
class TamperingCommunicator {
  public:
    TamperingCommunicator(sw::ThreadCommunicator& below, Change change) : below_{below}, change_{std::move(change)} {}

    [[nodiscard]] int rank() const noexcept { return below_.rank(); }
    [[nodiscard]] int size() const noexcept { return below_.size(); }
    [[nodiscard]] sw::Topology topology() const noexcept { return below_.topology(); }
    sw::Ticket post(const sw::Label& label, std::span<const sw::OutMessage> out, std::span<const sw::InMessage> in) {
        std::vector<sw::OutMessage> changed{out.begin(), out.end()};
        for (sw::OutMessage& message : changed) {
            auto& copy = copies_.emplace_back(message.bytes.begin(), message.bytes.end());
            change_(copy);
            message.bytes = copy;
        }
        return below_.post(label, changed, in);
    }
    [[nodiscard]] bool test(sw::Ticket ticket) { return below_.test(ticket); }
    void wait(sw::Ticket ticket) { below_.wait(ticket); }
    void abandon(sw::Ticket ticket) noexcept { below_.abandon(ticket); }
    void fail(const std::string& reason) { below_.fail(reason); }

  private:
    sw::ThreadCommunicator& below_;
    Change change_;
    std::list<std::vector<std::byte>> copies_;  // a message stays where it is until its round is complete
};
static_assert(sw::Communicator<TamperingCommunicator>);

/// A change of the head alone.
Change of_head(void (*change)(sw::Envelope&)) {
    return [change](std::vector<std::byte>& message) {
        sw::Envelope envelope;
        ASSERT_GE(message.size(), sizeof envelope);
        std::memcpy(&envelope, message.data(), sizeof envelope);
        change(envelope);
        std::memcpy(message.data(), &envelope, sizeof envelope);
    };
}

/// What rank 0 says to a training step in which rank 1 sends changed messages.
std::string complaint(const Change& change) {
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {1, 2}, .deadline = std::chrono::seconds{20}}};
    std::string said;
    const auto step = [&](sw::ThreadCommunicator& below) {
        try {
            TamperingCommunicator comm{below, below.rank() == 1 ? change : [](std::vector<std::byte>&) {}};
            Layer layer{comm, {{.name = "t", .rows = 10, .dim = 4}}};
            const sw::JaggedBatch<std::int64_t> batch{
                .samples = 1, .features = 1, .values = {3}, .lengths = {}, .weights = {}};
            const auto output = layer.forward(batch.view());
            layer.backward(output);
        } catch (const sw::Mismatch& error) {
            if (below.rank() == 0) said = error.what();
            throw;
        }
    };
    try {
        world.run(step);
    } catch (const sw::Mismatch&) {  // rank 1 may be told of it before rank 0 throws
    }
    return said;
}

void expect_part(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is missing in: " << text;
}

TEST(Envelope, OfUnchangedMessagesIsAccepted) {
    EXPECT_EQ(complaint([](std::vector<std::byte>&) {}), "");
    EXPECT_EQ(complaint(of_head([](sw::Envelope&) {})), "");
}

TEST(Envelope, EveryFieldThatTellsFlightsApartIsChecked) {
    expect_part(complaint(of_head([](sw::Envelope& head) { head.segment = 7; })),
                "bytes of flight 1, segment 7: all ranks");
    expect_part(complaint(of_head([](sw::Envelope& head) { head.flight = 9; })),
                "bytes of flight 9, segment 0: all ranks");
    expect_part(complaint(of_head([](sw::Envelope& head) { head.bytes = 8; })),
                "bytes that rank 1 sent say that they are 8 bytes of flight 1, segment 0: all ranks");
    expect_part(complaint(of_head([](sw::Envelope& head) { head.digest ^= 1U; })), "rank 1 runs another layer");
}

// A head that is right about everything, on top of too much.
TEST(Envelope, WhatFollowsItHasToBeTheParts) {
    expect_part(complaint([](std::vector<std::byte>& message) {
                    message.resize(message.size() + 8);
                    of_head([](sw::Envelope& head) { head.bytes += 8; })(message);
                }),
                "does not have the parts that it announces");
}

}  // namespace
}  // namespace shardwise_test
