// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: no vector travels where all rows are replicated, and nobody waits for anybody
#include "shardwise/comm/thread_slots.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/frozen.hpp"

namespace sw = shardwise;

#ifndef SHARDWISE_EXPECT_FAIL
using Layer = sw::EmbeddingLayer<sw::Collective<sw::BoundedLag<1>>, sw::Optimizer<sw::Frozen>, sw::Sharding<sw::Row>>;
#else
using Layer = sw::EmbeddingLayer<sw::Collective<sw::BoundedLag<1>>, sw::Optimizer<sw::Frozen>, sw::Sharding<sw::DP>>;
#endif

int main() {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::ThreadSlots slots{comm};
        sw::LayerOptions options;
        options.bound.samples = 1;
        options.slots.emplace(slots);
        Layer layer{comm, {{.name = "a", .rows = 4, .dim = 2}}, options};
        const sw::JaggedView<std::int64_t> none{
            .samples = 0, .features = 1, .values = {}, .lengths = {}, .offsets = {}, .weights = {}, .keys = {}};
        static_cast<void>(layer.forward(none));
        layer.drain();
    });
}
