// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: Requests<Coalesced> asks for each distinct id once, and with Ids<AtOwner> nobody asks
#include <vector>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"

namespace sw = shardwise;

#ifndef SHARDWISE_EXPECT_FAIL
using Layer = sw::EmbeddingLayer<sw::Requests<sw::Raw>, sw::Ids<sw::AtOwner>>;
#else
using Layer = sw::EmbeddingLayer<sw::Requests<sw::Coalesced>, sw::Ids<sw::AtOwner>>;
#endif

int main() {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        Layer layer{comm, {{.name = "a", .rows = 4, .dim = 2}}};
        static_cast<void>(layer.forward(sw::JaggedView<std::int64_t>{}, std::vector<std::int64_t>{0, 0}));
        layer.backward({});
    });
}
