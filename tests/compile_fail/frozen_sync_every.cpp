// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: SyncEvery<n> and a choice of synced rows have no effect where the optimizer is Frozen: leave them out
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/frozen.hpp"

namespace sw = shardwise;

#ifndef SHARDWISE_EXPECT_FAIL
using Layer = sw::EmbeddingLayer<sw::Optimizer<sw::Frozen>, sw::Groups<2, sw::InsideHosts>>;
#else
using Layer = sw::EmbeddingLayer<sw::Optimizer<sw::Frozen>, sw::Groups<2, sw::InsideHosts, sw::SyncEvery<4>>>;
#endif

int main() {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        Layer layer{comm, {{.name = "a", .rows = 4, .dim = 2}}};
        static_cast<void>(layer.forward(sw::JaggedView<std::int64_t>{}));
    });
}
