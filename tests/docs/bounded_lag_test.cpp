// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The fragments of docs/bounded_lag.md, each in a context in which it runs.

#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/bounded_all_to_all.hpp"
#include "shardwise/comm/thread_slots.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/shardwise.hpp"

namespace docs {
namespace {

namespace sw = shardwise;

TEST(BoundedLag, ALoop) {
    const std::vector<sw::TableConfig> tables{{.name = "item", .rows = 100, .dim = 4}};
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        std::vector<sw::JaggedBatch<int>> batches(5);
        for (sw::JaggedBatch<int>& batch : batches)
            batch = {.samples = 2, .features = 1, .values = {comm.rank(), 7}};
        int used = 0;
        const auto use = [&](const auto& pooled) { used += pooled.rows() == 2 ? 1 : 0; };
        // clang-format off
        using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Optimizer<sw::Frozen>, sw::Collective<sw::BoundedLag<2>>>;
        sw::ThreadSlots slots{comm};
        Layer layer{comm, tables, {.bound = {.samples = 512, .ids = {2048}}, .slots = slots}};
        std::deque<Layer::Flight> under_way;
        for (const auto& batch : batches) {
            if (under_way.size() == 3) {  // k + 1
                use(layer.forward(under_way.front()));  // waits for that one alone
                under_way.pop_front();
            }
            under_way.push_back(layer.start(batch.view()));
        }
        for (Layer::Flight& flight : under_way)
            use(layer.forward(flight));
        layer.drain();  // answers others until they are done, too
        // clang-format on
        EXPECT_EQ(used, 5);
    });
}

TEST(BoundedLag, AnExchange) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 3}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const std::vector<float> mine(5, static_cast<float>(comm.rank()));
        const auto use = [](std::span<const float> block) { EXPECT_EQ(block.size(), 5U); };
        // clang-format off
        sw::ThreadSlots slots{comm};
        sw::BoundedAllToAllV<float> exchange{slots, 1, 64};     // k = 1, blocks of at most 64 elements
        const std::vector<std::span<const float>> blocks(3, mine);  // (rank): what it is sent
        exchange.start(blocks);                                 // free once this returns
        exchange.start(blocks);
        const std::span<const std::span<const float>> oldest = exchange.wait();  // (rank): what it sent; until the next start or wait
        use(oldest[1]);
        exchange.drain();  // waits for what is under way, and drops it; before the exchange ends
        // clang-format on
        EXPECT_EQ(oldest.size(), 3U);
    });
}

}  // namespace
}  // namespace docs
